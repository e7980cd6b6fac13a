"""What was refused, gathered for the audit trail: a flood of refusals becomes a few lines that say how many."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.store.events import events

What = TypeVar("What", bound=Hashable)

_EVERY_S = 5.0
_KINDS_MAX = 100
_KINDS_EACH_TIME = 5
"""The trail cannot be shortened: a flood that goes on adds about one line a second and no more."""


class RefusalTally(Generic[What]):
    """Counts refusals of each kind until the loop writes them down; `others` stands for those beyond what is told."""

    def __init__(self, others: What) -> None:
        self._others = others
        self._counts: Counter[What] = Counter()
        self._room = _KINDS_MAX

    def count(self, what: What) -> None:
        full = len(self._counts) >= self._room and what not in self._counts
        self._counts[self._others if full else what] += 1

    def take(self) -> Counter[What]:
        counts, self._counts = self._counts, Counter()
        self._room = min(max(self._room - len(counts), 0) + _KINDS_EACH_TIME, _KINDS_MAX)
        return counts

    def put_back(self, counts: Counter[What]) -> None:
        self._counts.update(counts)


class RefusalTallyLoop(Loop, Generic[What]):
    """Writes down what was refused. What cannot be written now is kept for the next time."""

    needs_trusted_clock = False

    def __init__(self, parts: Parts, tally: RefusalTally[What]) -> None:
        super().__init__(parts, every_s=_EVERY_S)
        self._tally = tally

    @abstractmethod
    def told(self, what: What, times: int) -> Event:
        """The line for one kind."""

    async def tick(self, now: Instant) -> Tick:
        counts = self._tally.take()
        if not counts:
            return Tick()
        told = [self.told(what, times) for what, times in counts.items()]
        try:
            async with self.parts.loop_database.transaction() as transaction:
                await events.append(transaction, told, self.parts.ids, now)
        except BaseException:
            self._tally.put_back(counts)
            raise
        return Tick(seen=len(told), applied=len(told))
