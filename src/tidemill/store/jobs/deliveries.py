"""What nodes deliver: receipts are stored as they were signed, and what follows from them is written.

A repeated receipt finds its lease over, and changes nothing. Where the ledger refuses to pay, the delivery is stored
anyway, and settled later.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.plans.deliveries import (
    SignedReceipts,
    failed_again,
    named_attempts,
    read_deliveries,
)
from tidemill.core.jobs.plans.happenings import AttemptHappening, WorkTerms
from tidemill.core.jobs.plans.work_plan import WorkPlan, follow
from tidemill.core.jobs.task import Crash
from tidemill.store.jobs import late_results, leases, work_plans
from tidemill.store.query import Connection, Query
from tidemill.store.settlement.obligations import Unpayable


class Signer(NamedTuple):
    """A node, the key that must have signed its batches, and its owner. The pool itself owns what a house node
    computes."""

    node_id: UUID
    key: bytes
    owner_id: UUID
    house: bool


class _TaskCrash(NamedTuple):
    task_id: UUID
    owner_id: UUID
    reason: str


_KEYS = Query("jobs/node/keys", Signer)
_KEEP_BATCHES = Query("jobs/lease/keep_batches")
_CRASHES = Query("jobs/task/crashes", _TaskCrash)


async def signers(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, Signer]:
    return {signer.node_id: signer for signer in await _KEYS.rows(connection, ids=list(node_ids))}


async def apply(
    transaction: Connection,
    batches: Sequence[SignedReceipts],
    reports: Sequence[AttemptHappening],
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> WorkPlan:
    """Apply receipts, and what else nodes report of their attempts."""
    locked = await leases.lock(transaction, named_attempts(batches, reports))
    crashes = await _crashes(transaction, failed_again(batches, locked))
    delivered = read_deliveries(batches, reports, locked, crashes, terms.patience, now)
    late = await late_results.take(transaction, delivered.late)
    happenings = list(delivered.happenings.values())
    try:
        async with transaction.transaction():
            plan = follow(happenings, locked, terms, ids, now, late=late)
            return await _write(transaction, plan, batches, terms, ids, now)
    except Unpayable:
        undecided = [happening.undecided for happening in happenings]
        plan = follow(undecided, locked, terms, ids, now, late=late)
        return await _write(transaction, plan, batches, terms, ids, now)


async def _write(
    transaction: Connection,
    plan: WorkPlan,
    batches: Sequence[SignedReceipts],
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> WorkPlan:
    named = plan.batch_ids
    await _keep(transaction, [batch for batch in batches if batch.id in named], now)
    await work_plans.write(transaction, plan, terms, ids, now)
    return plan


async def _crashes(transaction: Connection, task_ids: set[UUID]) -> Mapping[UUID, Sequence[Crash]]:
    """Earlier failures of these tasks."""
    crashes: dict[UUID, list[Crash]] = defaultdict(list)
    for crash in await _CRASHES.rows(transaction, task_ids=sorted(task_ids)) if task_ids else ():
        crashes[crash.task_id].append(Crash(crash.owner_id, crash.reason))
    return crashes


async def _keep(transaction: Connection, batches: Sequence[SignedReceipts], now: Instant) -> None:
    """Store batches that an attempt refers to, and no others: a node cannot fill the disk with receipts of nothing."""
    if batches:
        await _KEEP_BATCHES.run(
            transaction,
            ids=[batch.id for batch in batches],
            node_ids=[batch.node_id for batch in batches],
            bodies=[batch.body for batch in batches],
            signatures=[batch.signature for batch in batches],
            now=now,
        )
