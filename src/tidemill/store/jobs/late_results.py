"""Loads results that come late: an attempt that was given up delivers after all, before any other has.

Whoever takes the task's row from the queue, or locks the other attempt's lease, has the task. A task that has ended, or
that another attempt has delivered, is not found. Holders are locked after the leases that reports name, so two batches
may wait for each other: the database ends one, and its reports come again.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidemill.core.jobs.plans.deliveries import LateReceipt, is_for
from tidemill.core.jobs.plans.happenings import LateDelivery, Lease
from tidemill.store.query import Connection, Query

RANKS = (0, 1, 2)


class _TakenTask(NamedTuple):
    task_id: UUID
    rank: int
    failures: int
    tries: int


_FIND = Query("jobs/late/find", Lease)
_UNQUEUE = Query("jobs/late/unqueue", _TakenTask)
_HOLDERS = Query("jobs/late/holders", Lease)


async def take(transaction: Connection, late: Mapping[tuple[UUID, UUID], LateReceipt]) -> list[LateDelivery]:
    """Take the tasks of late receipts that are still wanted."""
    if not late:
        return []
    given_up = await _FIND.rows(transaction, attempt_ids=sorted({attempt_id for attempt_id, _ in late}))
    delivered = {
        lease.task_id: lease._replace(batch_id=claim.batch_id, place=claim.place)
        for lease in given_up
        if (claim := late.get((lease.attempt_id, lease.node_id))) and is_for(claim.receipt, lease)
    }
    if not delivered:
        return []
    task_ids = sorted(delivered)
    waiting = await _UNQUEUE.rows(transaction, ranks=list(RANKS), task_ids=task_ids)
    holders = {lease.task_id: lease for lease in await _HOLDERS.rows(transaction, task_ids=task_ids)}
    taken = [*waiting, *(_TakenTask(held.task_id, held.rank, held.failures, held.tries) for held in holders.values())]
    return [
        LateDelivery(
            delivered[task.task_id]._replace(rank=task.rank, failures=task.failures, tries=task.tries),
            holders.get(task.task_id),
        )
        for task in taken
    ]
