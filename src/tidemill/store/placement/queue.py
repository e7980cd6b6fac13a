"""The queue as placing reads it: the keys of waiting tasks, the tasks themselves, and what they demand."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.placement.plan import QueuedTask
from tidemill.core.placement.task_demand import TaskDemand, read_demand
from tidemill.core.trust.checks.judgement import THE_POOL
from tidemill.store.query import Connection, Query

_KEY_BYTES = 20


class _StoredDemand(NamedTuple):
    id: UUID
    body: Mapping[str, Any]


_FRONT = Query("placement/queue/front", bytes)
_WAITING = Query("placement/queue/waiting", QueuedTask, by_key=True)
_FIND_DEMANDS = Query("placement/queue/demands", _StoredDemand)


async def front(connection: Connection, limit: int) -> list[bytes]:
    """The keys of tasks that wait for a node, the most urgent first."""
    packed = await _FRONT.only(connection, limit=limit)
    return [packed[at : at + _KEY_BYTES] for at in range(0, len(packed), _KEY_BYTES)]


async def waiting(transaction: Connection, keys: Sequence[bytes]) -> list[QueuedTask]:
    """The tasks of these keys that still wait, in no order."""
    return await _WAITING.rows(
        transaction,
        ranks=[int.from_bytes(key[:2], "big") for key in keys],
        task_ids=[UUID(bytes=key[4:]) for key in keys],
        the_pool=THE_POOL,
    )


async def demands(connection: Connection, demand_ids: Iterable[UUID]) -> Mapping[UUID, TaskDemand | None]:
    """What tasks demand, by id; None if this version cannot read it."""
    stored = await _FIND_DEMANDS.rows(connection, ids=sorted(demand_ids))
    return {demand.id: read_demand(demand.id, demand.body) for demand in stored}
