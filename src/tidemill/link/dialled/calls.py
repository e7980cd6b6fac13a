"""Which address an agent calls next, and when. It calls an absent pool less and less often; draws spread all agents.

Pure: the caller brings the draws. Addresses take turns. The agent waits as long as the pool asks, within bounds. A
member gives up only when its pool says that the node was removed; anybody else who answers is called again, seldom. A
newcomer also gives up when it is refused for good, or when every address leads to another pool or to one whose link it
does not speak.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidemill.core.pace import Backoff

NODE_REMOVED = "node_removed"
LEAVING = "leaving"

_BY_ADDRESS = frozenset({"wrong_pool", "version"})
_BACKOFF = Backoff(first_s=2, most_s=60)
_LIVED_S = 60.0
_REFUSED_S = 300.0
_RETRY_MOST_S = 3_600.0


@dataclass(frozen=True)
class CallEnd:
    """How a call or a link ended. `refused` says that our own pool turned us away."""

    code: str
    sentence: str
    retry_ms: int | None = None
    refused: bool = False
    lived_s: float = 0.0


@dataclass(frozen=True)
class CallAgain:
    after_s: float


@dataclass(frozen=True)
class GiveUp:
    """There is nothing left to try."""

    code: str
    sentence: str


class Calls:
    """The addresses of a pool, and how calls to them ended."""

    def __init__(self, urls: Sequence[str], draw: Callable[[], float], *, newcomer: bool) -> None:
        """`draw` answers a number in [0, 1). A newcomer that is refused for good does not try again."""
        self._urls = urls
        self._draw = draw
        self._newcomer = newcomer
        self._turn = 0
        self._failures = 0
        self._hopeless: set[str] = set()

    @property
    def url(self) -> str:
        """The address to call now."""
        return self._urls[self._turn % len(self._urls)]

    def move(self, urls: Sequence[str]) -> None:
        """Use the pool's new addresses. The first of them is the one called last."""
        self._urls, self._turn = urls, 0
        self._hopeless &= set(urls)

    def let_in(self) -> None:
        """The pool knows us now."""
        self._newcomer = False
        self._hopeless.clear()

    def after(self, end: CallEnd) -> CallAgain | GiveUp:
        """Decide what to do after a call has ended."""
        if end.code in _BY_ADDRESS:
            self._hopeless.add(self.url)
        else:
            self._hopeless.discard(self.url)
        refused_for_good = end.refused and end.retry_ms is None
        if end.code == NODE_REMOVED or (self._newcomer and (refused_for_good or self._is_hopeless)):
            return GiveUp(end.code, end.sentence)
        self._failures = 1 if end.lived_s >= _LIVED_S else self._failures + 1
        self._turn += 1
        return CallAgain(self._pause_s(end))

    @property
    def _is_hopeless(self) -> bool:
        """Whether every address was wrong when it was last called."""
        return self._hopeless >= set(self._urls)

    def _pause_s(self, end: CallEnd) -> float:
        if end.retry_ms is not None:
            return min(end.retry_ms / 1000, _RETRY_MOST_S) * (1 + self._draw() / 4)
        if end.refused or self._is_hopeless:
            return _REFUSED_S * (1 - self._draw() / 2)
        if end.code == LEAVING and self._failures == 1:
            return self._draw()  # the pool has others that answer
        return _BACKOFF.after(self._failures, self._draw())
