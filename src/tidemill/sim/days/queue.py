"""Tasks that wait for a node, in lines: one for all tasks with the same demand, of one job, barred from the same nodes.

Production's rule says whose turn it is. A task type that found no node is closed, and opened when a suitable node comes
or gives something back: until then none can be found, so none is looked for.
"""

from collections import deque
from collections.abc import Mapping, Sequence, Set
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.demand import Demand, PriorityLevel
from tidemill.core.placement.index.node import PoolNode, suits
from tidemill.core.placement.turns import in_turn

PER_LINE_MAX = 16
PER_BUCKET_MAX = 128
"""How many tasks of a line, and of one priority of a type, are looked at in one round."""

_BUCKETS = len(PriorityLevel) + 1


class QueueLine:
    """`is_plain` says that the demand bars no node that its type does not bar."""

    __slots__ = ("demand", "is_plain", "job", "task_type", "tasks")

    def __init__(self, job: int, task_type: int, demand: Demand, tasks: Sequence[int], *, is_plain: bool) -> None:
        self.job, self.task_type, self.demand, self.is_plain = job, task_type, demand, is_plain
        self.tasks = deque(tasks)


class SimulatedQueue:
    """`count` is how many tasks wait; the caller says when one no longer does."""

    def __init__(self, demands: Sequence[Demand]) -> None:
        self.demands = demands
        self._lines: list[tuple[deque[QueueLine], ...]] = [tuple(deque() for _ in range(_BUCKETS)) for _ in demands]
        self._waiting: dict[int, None] = {}
        """Task types that may have waiting tasks, in the order in which they came."""
        self._closed: set[int] = set()
        self._resting: set[int] = set()
        self.count = 0

    def join(self, line: QueueLine) -> bool:
        """Join the queue; whether that is worth a round. Tasks that were tried before stand in front."""
        bucket = _BUCKETS - 1 if len(line.tasks) == 1 and not line.is_plain else int(line.demand.priority)
        self._lines[line.task_type][bucket].append(line)
        self.count += len(line.tasks)
        self._waiting[line.task_type] = None
        self._resting.discard(line.task_type)
        return line.task_type not in self._closed

    def turns(self, at_work: Mapping[UUID, float], now: Instant) -> list[QueueLine]:
        """The next lines of open task types, each as often as its tasks are next. `at_work` is what customers have."""
        lines: dict[int, QueueLine] = {}
        due: list[Demand] = []
        for task_type in self._waiting:
            if self._is_open(task_type):
                for bucket in self._lines[task_type]:
                    _look(bucket, lines, due)
        if len(lines) == 1:
            return [lines[id(demand)] for demand in due]
        return [lines[id(demand)] for demand in in_turn(due, at_work, now)]

    def lose(self) -> None:
        """A task no longer waits."""
        self.count -= 1

    def close(self, task_type: int) -> None:
        """No node can be found for this task type, whoever orders it."""
        self._closed.add(task_type)

    def rest(self, nowhere: Set[QueueLine]) -> None:
        """No node was found for these lines. A task type rests when no other line of it waits."""
        for task_type in {line.task_type for line in nowhere} - self._closed:
            if not any(line.tasks and line not in nowhere for bucket in self._lines[task_type] for line in bucket):
                self._resting.add(task_type)

    def reopen(self, task_type: int) -> None:
        self._closed.discard(task_type)
        self._resting.discard(task_type)

    def heard(self, node: PoolNode, now: Instant) -> bool:
        """A node gives something back. Whether a waiting task may be able to use it."""
        shut = self._closed | self._resting if self._resting else self._closed
        return (
            self._open([task_type for task_type in shut if suits(node, self.demands[task_type], now)])
            if shut
            else False
        )

    def came(self, task_types: Sequence[int]) -> bool:
        """A node came that could carry out these types. Whether a waiting task may be able to use it."""
        return self._open([task_type for task_type in task_types if not self._is_open(task_type)])

    @property
    def has_open(self) -> bool:
        """Whether a task waits for which there might be a node."""
        for task_type in [task_type for task_type in self._waiting if not any(map(_stand, self._lines[task_type]))]:
            del self._waiting[task_type]
        return any(map(self._is_open, self._waiting))

    def _is_open(self, task_type: int) -> bool:
        return task_type not in self._closed and task_type not in self._resting

    def _open(self, task_types: Sequence[int]) -> bool:
        self._closed.difference_update(task_types)
        self._resting.difference_update(task_types)
        return any(any(self._lines[task_type]) for task_type in task_types)


def _stand(bucket: deque[QueueLine]) -> bool:
    """Whether any task waits here; empty lines in front are dropped."""
    while bucket and not bucket[0].tasks:
        bucket.popleft()
    return bool(bucket)


def _look(bucket: deque[QueueLine], lines: dict[int, QueueLine], due: list[Demand]) -> None:
    """Add the first demands of a bucket."""
    _stand(bucket)
    enough = len(due) + PER_BUCKET_MAX
    for line in bucket:
        lines[id(line.demand)] = line
        due += [line.demand] * min(len(line.tasks), PER_LINE_MAX)
        if len(due) >= enough:
            break
