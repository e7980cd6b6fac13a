"""What nodes deliver: receipts kept as they were signed, and judged at once where that costs nothing.

A receipt counts for the one lease that it names, and only from the node that holds it; what others say of an attempt
keeps nobody from delivering it. A receipt that comes again finds its lease over, and changes nothing. Where the ledger
refuses to pay, what was delivered is kept all the same, and settled later.
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
    """Whose signature a batch must have, and whose node it is. What a house node computes is the pool's own."""

    key: bytes
    owner_id: UUID
    house: bool


@dataclass(frozen=True, slots=True)
class SignedReceipts:
    """A batch of receipts whose signature is the node's."""

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
    others: Iterable[AttemptHappening],
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
) -> BatchOutcome:
    """Take receipts, and what else nodes say of their attempts; the first that is said of an attempt counts."""
    others = list(others)
    claimed = {(receipt.attempt_id, receipt.node_id) for batch in delivered for receipt in batch.receipts}
    leases = await outcomes.lock(transaction, claimed.union((one.attempt_id, one.node_id) for one in others))
    said = {one.attempt_id: one for one in reversed(others) if _holds(leases, one.attempt_id, one.node_id, one.lease)}
    crashes = await _crashes(transaction, delivered, leases)
    kept = [(ids.new(now), batch) for batch in delivered]
    late: dict[UUID, LateReceipt] = {}
    for batch_id, batch in kept:
        for place, receipt in enumerate(batch.receipts):
            if _holds(leases, receipt.attempt_id, receipt.node_id, receipt.lease):
                lease = leases[receipt.attempt_id]
                if lease["task_id"] == receipt.task_id and receipt.attempt_id not in said:
                    judged = _judged(receipt, lease, batch.house, crashes, terms.patience, now)
                    said[receipt.attempt_id] = _said(receipt, judged, batch_id, place)
            elif receipt.attempt_id not in leases:
                late.setdefault(receipt.attempt_id, (receipt, batch_id, place))
    resumed = await take_late(transaction, _wanted(late, said.values(), leases), terms.patience, now)
    holding = [one for one in said.values() if leases[one.attempt_id]["task_id"] not in resumed]
    await _keep(transaction, kept, {*resumed.values(), *(one.batch_id for one in holding)}, now)
    return await _settled(transaction, holding, leases, terms, ids, now)


def _wanted(late: LateReceipts, said: Iterable[AttemptHappening], leases: Leases) -> LateReceipts:
    """Late receipts whose tasks nobody delivers at this very moment. Whoever else is at a task loses it to them."""
    delivered = {leases[one.attempt_id]["task_id"] for one in said if Happening.DELIVERED in one.happenings}
    return {attempt_id: one for attempt_id, one in late.items() if one[0].task_id not in delivered}


def _holds(leases: Leases, attempt_id: UUID, node_id: UUID, token: int) -> bool:
    """Whether it is this node's attempt, under this lease."""
    lease = leases.get(attempt_id)
    return lease is not None and lease["tries"] == token and lease["node_id"] == node_id


async def _crashes(
    transaction: Connection, delivered: Sequence[SignedReceipts], leases: Leases
) -> Mapping[UUID, Sequence[Crash]]:
    """Earlier failures of tasks that have failed again."""
    failed = {one.attempt_id for batch in delivered for one in batch.receipts if one.outcome is AttemptOutcome.FAILED}
    again = {leases[one]["task_id"] for one in failed if one in leases and leases[one]["failures"]}
    crashes: dict[UUID, list[Crash]] = defaultdict(list)
    for row in await _CRASHES.rows(transaction, task_ids=sorted(again)) if again else ():
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
    judged = judged_at_once(receipt, expected, house=house, private=lease["private"], is_doubtful=doubtful)
    if receipt.outcome is AttemptOutcome.FAILED and (earlier := crashes.get(receipt.task_id)):
        is_at_fault = is_own_fault(Crash(lease["owner_id"], judged.reason), earlier, patience)
        return at_fault(judged.reason) if is_at_fault else judged
    return judged


def _said(receipt: Receipt, judged: ReceiptJudgement, batch_id: UUID, place: int) -> AttemptHappening:
    return AttemptHappening(
        receipt.attempt_id,
        receipt.lease,
        receipt.node_id,
        judged.happenings,
        judged.reason,
        judged.verdict,
        used_ms(receipt),
        batch_id,
        place,
    )


async def _keep(
    transaction: Connection, kept: Sequence[tuple[UUID, SignedReceipts]], named: set[UUID | None], now: Instant
) -> None:
    """Only batches that an attempt names: a node cannot fill the disk with receipts of nothing."""
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


async def _settled(
    transaction: Connection, said: Sequence[AttemptHappening], leases: Leases, terms: WorkTerms, ids: Ids, now: Instant
) -> BatchOutcome:
    try:
        async with transaction.transaction():
            return await outcomes.settle(transaction, said, leases, terms, ids, now)
    except Unpayable:
        waiting = [_undecided(one) for one in said]
        return await outcomes.settle(transaction, waiting, leases, terms, ids, now)


def _undecided(one: AttemptHappening) -> AttemptHappening:
    is_right = Happening.PASSED in one.happenings
    return one._replace(happenings=(Happening.DELIVERED,), verdict="", reason="") if is_right else one
