"""Time as a link server counts it: only while it could hear.

For a process that was stopped or got no processor time, hardly any time has passed afterwards: no node counts as silent
for a time in which we did not listen. What waits in the sockets is read before much more time passes.
"""

from collections.abc import Callable

from tidemill.core.clock import SECOND, Instant

_STEP_MAX = SECOND


class ListeningTime:
    """Goes on by at most a second between two marks, and never back."""

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._monotonic_us = monotonic_us
        self._marked_us = monotonic_us()
        self._counted_us = 0

    def now(self) -> Instant:
        return Instant(self._counted_us + min(self._monotonic_us() - self._marked_us, _STEP_MAX))

    def mark(self) -> Instant:
        """To be called several times a second while we listen."""
        self._counted_us = self.now()
        self._marked_us = self._monotonic_us()
        return Instant(self._counted_us)
