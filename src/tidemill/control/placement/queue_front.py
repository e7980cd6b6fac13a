"""The front of the queue in the memory of the placing process, so that a waiting task is read once.

The keys of all waiting tasks are read each time, as one value; only new tasks are read in full. It is a cache: a task
that has left the queue is noticed when it is placed. A task that was tried before is read every time, because the nodes
it must not go to change with time.
"""

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.plan import QueuedTask, house_after
from tidemill.core.placement.task_demand import TaskDemand
from tidemill.store.database import Database
from tidemill.store.placement import queue, sellers
from tidemill.store.placement.sellers import Exclusions
from tidemill.store.query import Connection

FRONT_MAX = 10_000
"""How many tasks of the queue are looked at, when those in front find no room."""

AT_ONCE = 2_000
BODIES_MAX_BYTES = 64 * 1024 * 1024
NUMBERS_MAX = 100_000
_NOWHERE_TRIED = Exclusions()

DemandClass: TypeAlias = int
"""Tasks of one class find room together, or none of them does."""


class FrontTask(NamedTuple):
    """A task in the front of the queue. Tasks of one demand class and one job have the same number in `alike`."""

    queued_task: QueuedTask
    demand_class: DemandClass
    alike: int


class DemandMemory:
    """What tasks demand, as far as this process has read it. A demand never changes."""

    def __init__(self) -> None:
        self._known: dict[UUID, TaskDemand | None] = {}

    async def find(self, connection: Connection, demand_ids: Iterable[UUID]) -> Mapping[UUID, TaskDemand | None]:
        """What has these ids, and perhaps more. If there are too many, all others are forgotten."""
        asked = set(demand_ids)
        if unknown := asked - self._known.keys():
            if len(self._known) + len(unknown) > NUMBERS_MAX:
                self._known, unknown = {}, asked
            self._known |= await queue.demands(connection, unknown)
        return self._known


class QueueFront:
    """The front of the queue, the most urgent first."""

    def __init__(self, database: Database, demands: DemandMemory) -> None:
        self._database, self._demands = database, demands
        self._tasks: dict[bytes, FrontTask] = {}
        self._demand_classes: dict[Hashable, DemandClass] = {}
        self._alike: dict[Hashable, int] = {}
        self._numbers = count()
        self._shown: set[int] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    async def look(self, now: Instant) -> None:
        """Read which tasks wait now."""
        async with self._database.transaction() as transaction:
            keys = await queue.front(transaction, FRONT_MAX)
            known = self._tasks
            new = [key for key in keys if key not in known or known[key].queued_task.tries]
            new_tasks = await self._read_new(transaction, new, now) if new else {}
        self._tasks = {key: task for key in keys if (task := new_tasks.get(key) or known.get(key))}
        self._shown.clear()

    def page(self, most: int, hopeless: Container[DemandClass]) -> list[FrontTask]:
        """The first tasks. Of classes that find no room, only one of each job, to explain why it waits."""
        return list(islice(self._next(hopeless), most))

    def forget(self, gone: Iterable[QueuedTask]) -> None:
        """Remove tasks that have left the queue."""
        for task in gone:
            self._tasks.pop(task.key, None)

    async def _read_new(self, transaction: Connection, keys: Iterable[bytes], now: Instant) -> dict[bytes, FrontTask]:
        """Read new tasks, the most urgent first, as many as memory allows."""
        new_tasks: dict[bytes, FrontTask] = {}
        left_bytes = BODIES_MAX_BYTES - sum(len(task.queued_task.body) for task in self._tasks.values())
        pages = iter(keys)
        while left_bytes > 0 and (page := list(islice(pages, AT_ONCE))):
            waiting = await queue.waiting(transaction, page)
            demands = await self._demands.find(transaction, {task.demand_id for task in waiting})
            again = [task.task_id for task in waiting if task.tries]
            tried = await sellers.exclusions_of(transaction, again, now) if again else {}
            new_tasks.update((task.key, self._in_front(_looked_up(task, demands, tried))) for task in waiting)
            left_bytes -= sum(len(task.body) for task in waiting)
        return new_tasks

    def _next(self, hopeless: Container[DemandClass]) -> Iterator[FrontTask]:
        shown = self._shown
        for task in self._tasks.values():
            if task.alike not in shown or task.demand_class not in hopeless:
                shown.add(task.alike)
                yield task

    def _in_front(self, task: QueuedTask) -> FrontTask:
        like = (task.demand_id, task.customer_id, task.cost_max_uc, task.excluded, task.for_house, task.prefers_house)
        demand_class = self._number(self._demand_classes, like)
        job_id = None if task.is_audit else task.job_id  # why an audit waits is told to nobody
        return FrontTask(task, demand_class, self._number(self._alike, (demand_class, job_id)))

    def _number(self, numbers: dict[Hashable, int], key: Hashable) -> int:
        """A number that stands for a key. If there are too many, all are forgotten: a key may then get a second number,
        which only costs time."""
        if len(numbers) >= NUMBERS_MAX:
            numbers.clear()
        known = numbers.get(key)
        return numbers.setdefault(key, next(self._numbers)) if known is None else known


def _looked_up(
    task: QueuedTask, demands: Mapping[UUID, TaskDemand | None], tried: Mapping[UUID, Exclusions]
) -> QueuedTask:
    """The task with its demand, and with the nodes that it must avoid."""
    before = tried.get(task.task_id, _NOWHERE_TRIED)
    return task._replace(
        demand=demands[task.demand_id],
        excluded=before.node_ids,
        for_house=task.is_audit or before.for_house,
        prefers_house=before.failures >= house_after(demands[task.demand_id]),
    )
