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
from tidemill.core.placement.plan import QueuedTask
from tidemill.core.placement.task_demand import read_demand
from tidemill.store.database import Database
from tidemill.store.jobs import tasks
from tidemill.store.jobs.tasks import QueueRow
from tidemill.store.placement import sellers
from tidemill.store.placement.sellers import Exclusions
from tidemill.store.query import Connection

FRONT_MAX = 10_000
"""How many tasks of the queue are looked at, when those in front find no room."""

AT_ONCE = 2_000
BODIES_MAX_BYTES = 64 * 1024 * 1024
NUMBERS_MAX = 100_000

DemandClass: TypeAlias = int
"""Tasks of one class find room together, or none of them does."""


class FrontTask(NamedTuple):
    """A task in the front of the queue. Tasks of one demand class and one job have the same number in `alike`."""

    row: QueueRow
    queued_task: QueuedTask
    demand_class: DemandClass
    alike: int


class QueueFront:
    """The front of the queue, the most urgent first."""

    def __init__(self, database: Database) -> None:
        self._database = database
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
            keys = await tasks.front(transaction, FRONT_MAX)
            known = self._tasks
            new = [key for key in keys if key not in known or known[key].row.tries]
            new_tasks = await self._read_new(transaction, new, now) if new else {}
        self._tasks = {key: task for key in keys if (task := new_tasks.get(key) or known.get(key))}
        self._shown.clear()

    def page(self, most: int, hopeless: Container[DemandClass]) -> list[FrontTask]:
        """The first tasks. Of classes that find no room, only one of each job, to explain why it waits."""
        return list(islice(self._next(hopeless), most))

    def forget(self, gone: Iterable[QueueRow]) -> None:
        """Remove tasks that have left the queue."""
        for row in gone:
            self._tasks.pop(row.key, None)

    async def _read_new(self, transaction: Connection, keys: Iterable[bytes], now: Instant) -> dict[bytes, FrontTask]:
        """Read new tasks, the most urgent first, as many as memory allows."""
        new_tasks: dict[bytes, FrontTask] = {}
        left_bytes = BODIES_MAX_BYTES - sum(len(task.row.body) for task in self._tasks.values())
        pages = iter(keys)
        while left_bytes > 0 and (page := list(islice(pages, AT_ONCE))):
            rows = await tasks.waiting(transaction, page)
            again = [row.task_id for row in rows if row.tries]
            tried = await sellers.exclusions_of(transaction, again, now) if again else {}
            new_tasks.update((task.row.key, task) for task in self._in_front(rows, tried))
            left_bytes -= sum(len(row.body) for row in rows)
        return new_tasks

    def _next(self, hopeless: Container[DemandClass]) -> Iterator[FrontTask]:
        shown = self._shown
        for task in self._tasks.values():
            if task.alike not in shown or task.demand_class not in hopeless:
                shown.add(task.alike)
                yield task

    def _in_front(self, rows: Iterable[QueueRow], tried: Mapping[UUID, Exclusions]) -> Iterator[FrontTask]:
        for row in rows:
            queued_task = _queued_task(row, tried)
            demand_class = self._demand_class(queued_task)
            yield FrontTask(row, queued_task, demand_class, self._number(self._alike, (demand_class, row.job_id)))

    def _demand_class(self, queued_task: QueuedTask) -> DemandClass:
        like = None if queued_task.demand is None else queued_task.demand.like
        return self._number(
            self._demand_classes,
            (like, queued_task.account_id, queued_task.cost_max_uc, queued_task.excluded, queued_task.for_house),
        )

    def _number(self, numbers: dict[Hashable, int], key: Hashable) -> int:
        """A number that stands for a key. If there are too many, all are forgotten: a key may then get a second number,
        which only costs time."""
        if len(numbers) >= NUMBERS_MAX:
            numbers.clear()
        known = numbers.get(key)
        return numbers.setdefault(key, next(self._numbers)) if known is None else known


def _queued_task(row: QueueRow, tried: Mapping[UUID, Exclusions]) -> QueuedTask:
    before = tried.get(row.task_id, Exclusions())
    whose = (row.task_id, row.job_id, row.account_id)
    for_house = row.is_audit or before.for_house
    return QueuedTask(*whose, read_demand(row.body), row.cost_max_uc, row.since, before.node_ids, row.tries, for_house)
