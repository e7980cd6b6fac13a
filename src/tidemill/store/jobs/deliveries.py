"""What nodes deliver: receipts stored as they were signed, and judged at once where that costs nothing.

A receipt counts for the one lease that it names, and only from the node that holds it: no other node can prevent a
delivery. A repeated receipt finds its lease over, and changes nothing. Where the ledger refuses to pay, the delivery is
stored anyway, and settled later.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.task import Crash, RetryLimits, is_own_fault
from tidemill.core.trust.checks.plausibility import AttemptTimes, is_doubtful
from tidemill.core.trust.checks.receipt_checks import ReceiptJudgement, at_fault, judged_at_once, used_ms
from tidemill.store.jobs import outcomes
from tidemill.store.jobs.late_results import LateReceipt, LateReceipts
from tidemill.store.jobs.late_results import take as take_late
from tidemill.store.jobs.outcomes import AttemptHappening, BatchOutcome, Leases, WorkTerms
from tidemill.store.query import Connection, Query
from tidemill.store.settlement.rewards import Unpayable

_KEYS = Query("jobs/node/keys")
_KEEP_BATCHES = Query("jobs/lease/keep_batches")
_CRASHES = Query("jobs/task/crashes")


@dataclass(frozen=True, slots=True)
class Signer:
    """The key that must have signed a batch, and the node's owner. The pool itself owns what a house node computes."""

    key: bytes
    owner_id: UUID
    house: bool


@dataclass(frozen=True, slots=True)
class SignedReceipts:
    """A batch of receipts with the node's valid signature."""

    node_id: UUID
    house: bool
    body: bytes
    signature: bytes
    receipts: tuple[Receipt, ...]


async def signers(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, Signer]:
    rows = await _KEYS.rows(connection, ids=list(node_ids))
    return {row["id"]: Signer(row["key"], row["account_id"], row["house"]) for row in rows}


async def apply(
    transaction: Connection,
    delivered: Sequence[SignedReceipts],
    reports: Iterable[AttemptHappening],
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> BatchOutcome:
    """Apply receipts, and what else nodes report of their attempts; the first report of an attempt counts."""
    reports = list(reports)
    claimed = {(receipt.attempt_id, receipt.node_id) for batch in delivered for receipt in batch.receipts}
    leases = await outcomes.lock(
        transaction, claimed.union((happening.attempt_id, happening.node_id) for happening in reports)
    )
    happenings = {
        happening.attempt_id: happening
        for happening in reversed(reports)
        if _holds(leases, happening.attempt_id, happening.node_id, happening.lease)
    }
    crashes = await _crashes(transaction, delivered, leases)
    kept = [(ids.new(now), batch) for batch in delivered]
    late: dict[UUID, LateReceipt] = {}
    for batch_id, batch in kept:
        for index, receipt in enumerate(batch.receipts):
            if _holds(leases, receipt.attempt_id, receipt.node_id, receipt.lease):
                lease = leases[receipt.attempt_id]
                if lease["task_id"] == receipt.task_id and receipt.attempt_id not in happenings:
                    judged = _judged(receipt, lease, batch.house, crashes, terms.patience, now)
                    happenings[receipt.attempt_id] = _happening(receipt, judged, batch_id, index)
            elif receipt.attempt_id not in leases:
                late.setdefault(receipt.attempt_id, (receipt, batch_id, index))
    resumed = await take_late(transaction, _undelivered(late, happenings.values(), leases), terms.patience, now)
    settled = [happening for happening in happenings.values() if leases[happening.attempt_id]["task_id"] not in resumed]
    await _keep(transaction, kept, {*resumed.values(), *(happening.batch_id for happening in settled)}, now)
    return await _settle(transaction, settled, leases, terms, ids, now)


def _undelivered(late: LateReceipts, happenings: Iterable[AttemptHappening], leases: Leases) -> LateReceipts:
    """Late receipts whose tasks nobody delivers in this batch. Whoever else works on such a task loses it."""
    delivered = {
        leases[happening.attempt_id]["task_id"]
        for happening in happenings
        if Happening.DELIVERED in happening.happenings
    }
    return {attempt_id: receipt for attempt_id, receipt in late.items() if receipt[0].task_id not in delivered}


def _holds(leases: Leases, attempt_id: UUID, node_id: UUID, token: int) -> bool:
    """Whether this node holds the attempt, under this lease."""
    lease = leases.get(attempt_id)
    return lease is not None and lease["tries"] == token and lease["node_id"] == node_id


async def _crashes(
    transaction: Connection, delivered: Sequence[SignedReceipts], leases: Leases
) -> Mapping[UUID, Sequence[Crash]]:
    """Earlier failures of tasks that have failed again."""
    failed = {
        receipt.attempt_id
        for batch in delivered
        for receipt in batch.receipts
        if receipt.outcome is AttemptOutcome.FAILED
    }
    task_ids = {leases[id_]["task_id"] for id_ in failed if id_ in leases and leases[id_]["failures"]}
    crashes: dict[UUID, list[Crash]] = defaultdict(list)
    for row in await _CRASHES.rows(transaction, task_ids=sorted(task_ids)) if task_ids else ():
        crashes[row["task_id"]].append(Crash(row["owner_id"], row["reason"]))
    return crashes


def _judged(
    receipt: Receipt,
    lease: asyncpg.Record,
    house: bool,
    crashes: Mapping[UUID, Sequence[Crash]],
    patience: RetryLimits,
    now: Instant,
) -> ReceiptJudgement:
    expected, times = lease["expected"], AttemptTimes(lease["offered_at"], now)
    doubtful = expected is not None and is_doubtful(receipt, times, lease["quoted_ms"])
    judgement = judged_at_once(receipt, expected, house=house, private=lease["private"], is_doubtful=doubtful)
    if receipt.outcome is AttemptOutcome.FAILED and (earlier := crashes.get(receipt.task_id)):
        is_at_fault = is_own_fault(Crash(lease["owner_id"], judgement.reason), earlier, patience)
        return at_fault(judgement.reason) if is_at_fault else judgement
    return judgement


def _happening(receipt: Receipt, judgement: ReceiptJudgement, batch_id: UUID, index: int) -> AttemptHappening:
    return AttemptHappening(
        receipt.attempt_id,
        receipt.lease,
        receipt.node_id,
        judgement.happenings,
        judgement.reason,
        judgement.verdict,
        used_ms(receipt),
        batch_id,
        index,
    )


async def _keep(
    transaction: Connection, kept: Sequence[tuple[UUID, SignedReceipts]], named: set[UUID | None], now: Instant
) -> None:
    """Store only batches that an attempt refers to: a node cannot fill the disk with receipts of nothing."""
    batches = [(batch_id, batch) for batch_id, batch in kept if batch_id in named]
    if batches:
        await _KEEP_BATCHES.run(
            transaction,
            ids=[batch_id for batch_id, _ in batches],
            node_ids=[batch.node_id for _, batch in batches],
            bodies=[batch.body for _, batch in batches],
            signatures=[batch.signature for _, batch in batches],
            now=now,
        )


async def _settle(
    transaction: Connection,
    happenings: Sequence[AttemptHappening],
    leases: Leases,
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> BatchOutcome:
    try:
        async with transaction.transaction():
            return await outcomes.settle(transaction, happenings, leases, terms, ids, now)
    except Unpayable:
        waiting = [_undecided(happening) for happening in happenings]
        return await outcomes.settle(transaction, waiting, leases, terms, ids, now)


def _undecided(happening: AttemptHappening) -> AttemptHappening:
    is_right = Happening.PASSED in happening.happenings
    return happening._replace(happenings=(Happening.DELIVERED,), verdict="", reason="") if is_right else happening
