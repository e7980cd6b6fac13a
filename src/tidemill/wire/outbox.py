"""Reports arrive once: numbered by the agent, kept until the pool says they are safe, sent again after a broken link.

Numbers begin at 1 and have no gaps. The pool keeps the number of the last report it received in the same transaction as
the report's effects. By it `core.nodes.reports` tells which reports of a batch are new.
"""

from collections import deque

from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import FRAME_MAX, Report, Reports, encode

IN_FLIGHT_MAX = 4 * 1024 * 1024
"""The most bytes of reports that wait for an acknowledgement; the rest stays where it is spooled."""

_BATCH_MAX = 500
_HEADROOM = 1024


class Outbox:
    """The agent's side: reports from the spool, in order, until the pool acknowledges them."""

    def __init__(self, received: int) -> None:
        self._kept: deque[tuple[Report, int]] = deque()
        self._first = received + 1
        self._sent = 0
        self._bytes = 0

    @property
    def next_number(self) -> int:
        """The number of the report that is added next."""
        return self._first + len(self._kept)

    @property
    def has_room(self) -> bool:
        return self._bytes < IN_FLIGHT_MAX

    def add(self, report: Report) -> int:
        """Take a report to be sent. Answers its number."""
        size = len(encode(report))
        number = self.next_number
        self._kept.append((report, size))
        self._bytes += size
        return number

    def batch(self) -> Reports | None:
        """The next reports to send, as many as fit a frame."""
        items: list[Report] = []
        room = FRAME_MAX - _HEADROOM
        first = self._first + self._sent
        while self._sent < len(self._kept) and len(items) < _BATCH_MAX:
            report, size = self._kept[self._sent]
            if items and size > room:
                break
            room -= size
            items.append(report)
            self._sent += 1
        return Reports(first, items) if items else None

    def acknowledge(self, received: int) -> None:
        """Forget received reports. A pool that acknowledges what was never sent is not ours, or was restored."""
        if received >= self._first + self._sent:
            raise ProtocolError("unknown_reports", "The pool acknowledged reports that were never sent.")
        while self._kept and self._first <= received:
            _, size = self._kept.popleft()
            self._bytes -= size
            self._first += 1
            self._sent -= 1
