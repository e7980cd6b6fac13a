"""The front of the queue as the placer in charge remembers it, so that a task which waits is read once.

Which tasks wait is looked at again and again, in one value; only of those that are new the rest is read. It is a cache:
what has left the queue is found out when it is to be placed. A task that was tried before is read every time, because
whom it must not go to changes with time.
"""

from collections.abc import Container, Hashable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.placer import QueuedTask
from tidemill.core.placement.task_demand import read_demand
from tidemill.store.database import Database
from tidemill.store.jobs import tasks
from tidemill.store.jobs.tasks import QueueRow
from tidemill.store.placement import sellers
from tidemill.store.placement.sellers import Exclusions
from tidemill.store.query import Connection

FRONT_MAX = 10_000
"""A queue whose front finds no room is looked at so far behind it, and no further."""

AT_ONCE = 2_000
BODIES_MAX_BYTES = 64 * 1024 * 1024
NUMBERS_MAX = 100_000

DemandClass: TypeAlias = int
"""Tasks of one sort find room together, or none of them does."""


class FrontTask(NamedTuple):
    """A task in the front of the queue. Those that are of one sort and of one job have the same number as `alike`."""

    row: QueueRow
    queued_task: QueuedTask
    demand_class: DemandClass
    alike: int


class QueueFront:
    """The front of the queue, the most urgent first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tasks: dict[bytes, FrontTask] = {}
        self._sorts: dict[Hashable, DemandClass] = {}
        self._alike: dict[Hashable, int] = {}
        self._numbers = count()
        self._shown: set[int] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    async def look(self, now: Instant) -> None:
        """See what waits now."""
        async with self._database.transaction() as transaction:
            keys = await tasks.front(transaction, FRONT_MAX)
            known = self._tasks
            new = [key for key in keys if key not in known or known[key].row.tries]
            read = await self._read(transaction, new, now) if new else {}
        self._tasks = {key: one for key in keys if (one := read.get(key) or known.get(key))}
        self._shown.clear()

    def page(self, most: int, hopeless: Container[DemandClass]) -> list[FrontTask]:
        """The first tasks; of sorts that find no room one of each job, which may be told so."""
        return list(islice(self._next(hopeless), most))

    def forget(self, gone: Iterable[QueueRow]) -> None:
        """These are in the queue no more."""
        for one in gone:
            self._tasks.pop(one.key, None)

    async def _read(self, transaction: Connection, keys: Iterable[bytes], now: Instant) -> dict[bytes, FrontTask]:
        """Tasks that are new, the most urgent first, as many as there is memory for."""
        found: dict[bytes, FrontTask] = {}
        left_bytes = BODIES_MAX_BYTES - sum(len(one.row.body) for one in self._tasks.values())
        pages = iter(keys)
        while left_bytes > 0 and (page := list(islice(pages, AT_ONCE))):
            read = await tasks.waiting(transaction, page)
            again = [one.task_id for one in read if one.tries]
            tried = await sellers.exclusions_of(transaction, again, now) if again else {}
            found.update((one.row.key, one) for one in self._in_front(read, tried))
            left_bytes -= sum(len(one.body) for one in read)
        return found

    def _next(self, hopeless: Container[DemandClass]) -> Iterator[FrontTask]:
        shown = self._shown
        for one in self._tasks.values():
            if one.alike not in shown or one.demand_class not in hopeless:
                shown.add(one.alike)
                yield one

    def _in_front(self, read: Iterable[QueueRow], tried: Mapping[UUID, Exclusions]) -> Iterator[FrontTask]:
        for one in read:
            want = _want(one, tried)
            sort = self._sort(want)
            yield FrontTask(one, want, sort, self._number(self._alike, (sort, one.job_id)))

    def _sort(self, want: QueuedTask) -> DemandClass:
        like = None if want.demand is None else want.demand.like
        return self._number(self._sorts, (like, want.account_id, want.cost_max_uc, want.excluded, want.for_house))

    def _number(self, numbers: dict[Hashable, int], key: Hashable) -> int:
        """A number that stands for a key. Where too many are known, those that come get new ones: one key may then have
        two, which costs time only."""
        if len(numbers) >= NUMBERS_MAX:
            numbers.clear()
        known = numbers.get(key)
        return numbers.setdefault(key, next(self._numbers)) if known is None else known


def _want(one: QueueRow, tried: Mapping[UUID, Exclusions]) -> QueuedTask:
    before = tried.get(one.task_id, Exclusions())
    whose = (one.task_id, one.job_id, one.account_id)
    for_house = one.is_audit or before.for_house
    return QueuedTask(*whose, read_demand(one.body), one.cost_max_uc, one.since, before.node_ids, one.tries, for_house)
