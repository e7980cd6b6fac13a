"""Tasks that wait for a node, in lines: one for all tasks that ask the same, of one job, of the same nodes.

Whose turn it is, production's rule says. A sort of task that found nobody is closed, and opened when a node comes or
gives something back that would suit it: until then nobody can be found, so nobody is looked for.
"""

from collections import deque
from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.demand import Demand, PriorityLevel
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.objections import suits
from tidemill.core.placement.turns import in_turn

PER_LINE_MAX = 16
PER_BUCKET_MAX = 128
"""So many tasks of a line, and of one priority of a sort, are looked at in one round."""

_BUCKETS = len(PriorityLevel) + 1


class QueueLine:
    """`is_plain` says that the request bars nobody whom its sort does not bar."""

    __slots__ = ("is_plain", "job", "request", "sort", "tasks")

    def __init__(self, job: int, sort: int, request: Demand, tasks: Sequence[int], *, is_plain: bool) -> None:
        self.job, self.sort, self.request, self.is_plain = job, sort, request, is_plain
        self.tasks = deque(tasks)


class SimulatedQueue:
    """`count` is how many tasks wait; the caller says when one does no more."""

    def __init__(self, requests: Sequence[Demand]) -> None:
        self.requests = requests
        self._lines: list[tuple[deque[QueueLine], ...]] = [tuple(deque() for _ in range(_BUCKETS)) for _ in requests]
        self._waiting: dict[int, None] = {}
        """Sorts of which somebody may be waiting, in the order in which they came."""
        self._closed: set[int] = set()
        self._resting: set[int] = set()
        self.count = 0

    def join(self, line: QueueLine) -> bool:
        """Whether it is worth a round. Who has been tried before stands in front of who has not."""
        bucket = _BUCKETS - 1 if len(line.tasks) == 1 and not line.is_plain else int(line.request.priority)
        self._lines[line.sort][bucket].append(line)
        self.count += len(line.tasks)
        self._waiting[line.sort] = None
        self._resting.discard(line.sort)
        return line.sort not in self._closed

    def turns(self, at_work: Mapping[UUID, float], now: Instant) -> list[QueueLine]:
        """The next lines of open sorts, each as often as its tasks are next. `at_work` is what customers have now."""
        lines: dict[int, QueueLine] = {}
        wanted: list[Demand] = []
        for sort in self._waiting:
            if self._is_open(sort):
                for bucket in self._lines[sort]:
                    _look(bucket, lines, wanted)
        if len(lines) == 1:
            return [lines[id(one)] for one in wanted]
        return [lines[id(one)] for one in in_turn(wanted, at_work, now)]

    def lose(self) -> None:
        """A task waits no more."""
        self.count -= 1

    def close(self, sort: int) -> None:
        """Nobody can be found for this sort, whoever asks."""
        self._closed.add(sort)

    def rest(self, nowhere: Set[QueueLine]) -> None:
        """Nobody was found for these lines. A sort rests when no other line of it waits."""
        for sort in {line.sort for line in nowhere} - self._closed:
            if not any(line.tasks and line not in nowhere for bucket in self._lines[sort] for line in bucket):
                self._resting.add(sort)

    def reopen(self, sort: int) -> None:
        self._closed.discard(sort)
        self._resting.discard(sort)

    def heard(self, node: PoolNode, now: Instant) -> bool:
        """A node gives something back. Whether somebody may be able to use it."""
        shut = self._closed | self._resting if self._resting else self._closed
        return self._open([sort for sort in shut if suits(node, self.requests[sort], now)]) if shut else False

    def came(self, sorts: Sequence[int]) -> bool:
        """A node came, which could carry out these sorts. Whether somebody may be able to use it."""
        return self._open([sort for sort in sorts if not self._is_open(sort)])

    @property
    def has_open(self) -> bool:
        """Whether somebody waits for whom there might be a node."""
        for sort in [one for one in self._waiting if not any(map(_stand, self._lines[one]))]:
            del self._waiting[sort]
        return any(map(self._is_open, self._waiting))

    def _is_open(self, sort: int) -> bool:
        return sort not in self._closed and sort not in self._resting

    def _open(self, sorts: Sequence[int]) -> bool:
        self._closed.difference_update(sorts)
        self._resting.difference_update(sorts)
        return any(any(self._lines[sort]) for sort in sorts)


def _stand(bucket: deque[QueueLine]) -> bool:
    """Whether anybody stands here; lines in front in which nobody does are let go."""
    while bucket and not bucket[0].tasks:
        bucket.popleft()
    return bool(bucket)


def _look(bucket: deque[QueueLine], lines: dict[int, QueueLine], wanted: list[Demand]) -> None:
    """The first of a bucket."""
    _stand(bucket)
    enough = len(wanted) + PER_BUCKET_MAX
    for line in bucket:
        lines[id(line.request)] = line
        wanted += [line.request] * min(len(line.tasks), PER_LINE_MAX)
        if len(wanted) >= enough:
            break
