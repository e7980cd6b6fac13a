"""What was refused, gathered for the audit trail: a flood of refusals becomes a few lines that say how many."""

from collections import Counter

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.accounts.events import AuthorisationFailed
from tidemill.core.clock import Instant
from tidemill.core.refusals import Refusal
from tidemill.store import events

_EVERY_S = 5.0
_KINDS_MAX = 100
_KINDS_EACH_TIME = 5
"""The trail cannot be shortened: a flood that goes on adds about one line a second and no more."""

_OTHERS = ("many callers", "many addresses", "many routes", "many refusals")


class Denials:
    """Counts refusals by caller, address, route and reason until the loop writes them down."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._room = _KINDS_MAX

    def note(self, caller: str, address: str, route: str, refusal: Refusal) -> None:
        what = (caller, address, route, refusal.code)
        full = len(self._counts) >= self._room and what not in self._counts
        self._counts[_OTHERS if full else what] += 1

    def take(self) -> Counter[tuple[str, str, str, str]]:
        counts, self._counts = self._counts, Counter()
        self._room = min(max(self._room - len(counts), 0) + _KINDS_EACH_TIME, _KINDS_MAX)
        return counts

    def put_back(self, counts: Counter[tuple[str, str, str, str]]) -> None:
        self._counts.update(counts)


class DenialLoop(Loop):
    """Writes down what was refused. What cannot be written now is kept for the next time."""

    name = "denials"
    needs_trusted_clock = False

    def __init__(self, parts: Parts, denials: Denials) -> None:
        super().__init__(parts, every_s=_EVERY_S)
        self._denials = denials

    async def tick(self, now: Instant) -> Tick:
        counts = self._denials.take()
        if not counts:
            return Tick()
        told = [AuthorisationFailed(*what, times) for what, times in counts.items()]
        try:
            async with self.parts.database.transaction() as transaction:
                await events.append(transaction, told, self.parts.ids, now)
        except BaseException:
            self._denials.put_back(counts)
            raise
        return Tick(seen=len(told), applied=len(told))
