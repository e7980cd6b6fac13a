"""Counts refusals for the audit trail: a flood of refusals becomes a few lines with counts."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.store.events import events

RefusalKind = TypeVar("RefusalKind", bound=Hashable)

_EVERY_S = 5.0
_KINDS_MAX = 100
_KINDS_EACH_TIME = 5
"""The trail cannot be shortened, so a lasting flood adds at most about one line a second."""


class RefusalTally(Generic[RefusalKind]):
    """Counts refusals of each kind until the loop writes them. `others` stands for kinds beyond the limit."""

    def __init__(self, others: RefusalKind) -> None:
        self._others = others
        self._counts: Counter[RefusalKind] = Counter()
        self._room = _KINDS_MAX

    def count(self, kind: RefusalKind) -> None:
        full = len(self._counts) >= self._room and kind not in self._counts
        self._counts[self._others if full else kind] += 1

    def take(self) -> Counter[RefusalKind]:
        counts, self._counts = self._counts, Counter()
        self._room = min(max(self._room - len(counts), 0) + _KINDS_EACH_TIME, _KINDS_MAX)
        return counts

    def put_back(self, counts: Counter[RefusalKind]) -> None:
        self._counts.update(counts)


class RefusalTallyLoop(Loop, Generic[RefusalKind]):
    """Writes counts of refusals to the log of events. Counts that cannot be written now are kept for the next time."""

    needs_trusted_clock = False

    def __init__(self, parts: Parts, tally: RefusalTally[RefusalKind]) -> None:
        super().__init__(parts, every_s=_EVERY_S)
        self._tally = tally

    @abstractmethod
    def event_of(self, kind: RefusalKind, times: int) -> Event:
        """The event for one kind."""

    async def tick(self, now: Instant) -> Tick:
        counts = self._tally.take()
        if not counts:
            return Tick()
        tallied = [self.event_of(kind, times) for kind, times in counts.items()]
        try:
            async with self.parts.loop_database.transaction() as transaction:
                await events.append(transaction, tallied, self.parts.ids, now)
        except BaseException:
            self._tally.put_back(counts)
            raise
        return Tick(seen=len(tallied), applied=len(tallied))
