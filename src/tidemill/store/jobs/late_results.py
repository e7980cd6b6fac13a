"""Loads results that come late: an attempt that was given up delivers after all, before any other has.

Whoever takes the task's row from the queue, or locks the other attempt's lease, has the task. A task that has ended, or
that another attempt has delivered, is not found.
"""

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidemill.core.jobs.plans.deliveries import LateReceipt
from tidemill.core.jobs.plans.happenings import LateDelivery, Lease
from tidemill.store.query import Connection, Query

RANKS = (0, 1, 2)


class _TakenTask(NamedTuple):
    task_id: UUID
    rank: int
    failures: int


_FIND = Query("jobs/late/find", Lease)
_UNQUEUE = Query("jobs/late/unqueue", _TakenTask)
_HOLDERS = Query("jobs/late/holders", Lease)


async def take(transaction: Connection, late: Mapping[UUID, LateReceipt]) -> list[LateDelivery]:
    """Take the tasks of late receipts that are still wanted."""
    given_up = await _FIND.rows(transaction, attempt_ids=sorted(late)) if late else []
    wanted = {lease.task_id: lease for lease in given_up if _is_of(lease, late[lease.attempt_id])}
    if not wanted:
        return []
    task_ids = sorted(wanted)
    waiting = await _UNQUEUE.rows(transaction, ranks=list(RANKS), task_ids=task_ids)
    holders = {lease.task_id: lease for lease in await _HOLDERS.rows(transaction, task_ids=task_ids)}
    taken = [*waiting, *(_TakenTask(lease.task_id, lease.rank, lease.failures) for lease in holders.values())]
    return [LateDelivery(_delivered(wanted[task.task_id], late, task), holders.get(task.task_id)) for task in taken]


def _is_of(lease: Lease, late: LateReceipt) -> bool:
    receipt = late.receipt
    return lease.is_held_by(receipt.node_id, receipt.lease) and lease.task_id == receipt.task_id


def _delivered(lease: Lease, late: Mapping[UUID, LateReceipt], task: _TakenTask) -> Lease:
    _, batch_id, place = late[lease.attempt_id]
    return lease._replace(rank=task.rank, failures=task.failures, batch_id=batch_id, place=place)
