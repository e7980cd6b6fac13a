"""A clock that a test sets by hand."""

from tidemill.core.clock import Instant


class HandClock:
    """Shows what it was set to."""

    def __init__(self, at: Instant) -> None:
        self.at = at
        self.trusted = True

    def now(self) -> Instant:
        return self.at
