"""What nodes deliver, as happenings: receipts are judged at once where that costs nothing.

A receipt counts for the one lease that it names, and only from the node that holds it: no other node can prevent a
delivery. Of an attempt, the first report counts. A receipt whose attempt holds no lease may be a late one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.plans.happenings import AttemptHappening, Lease, Leases
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.task import Crash, RetryLimits, is_own_fault
from tidemill.core.trust.checks.plausibility import AttemptTimes, is_doubtful
from tidemill.core.trust.checks.receipt_checks import ReceiptJudgement, at_fault, judged_at_once, used_ms


@dataclass(frozen=True, slots=True)
class SignedReceipts:
    """A batch of receipts with the node's valid signature, and the id under which it may be kept."""

    id: UUID
    node_id: UUID
    house: bool
    body: bytes
    signature: bytes
    receipts: tuple[Receipt, ...]


class LateReceipt(NamedTuple):
    """A receipt of an attempt that holds no lease, with its batch and its place there."""

    receipt: Receipt
    batch_id: UUID
    place: int


@dataclass(frozen=True)
class DeliveredWork:
    """What was delivered: happenings by attempt, and results that may be wanted though they are late, by attempt and
    the node that claims it."""

    happenings: Mapping[UUID, AttemptHappening]
    late: Mapping[tuple[UUID, UUID], LateReceipt]


def named_attempts(batches: Iterable[SignedReceipts], reports: Iterable[AttemptHappening]) -> set[tuple[UUID, UUID]]:
    """The attempts that are reported on, each with the node that reports."""
    claimed = {(receipt.attempt_id, receipt.node_id) for batch in batches for receipt in batch.receipts}
    return claimed.union((report.attempt_id, report.node_id) for report in reports)


def failed_again(batches: Iterable[SignedReceipts], leases: Leases) -> set[UUID]:
    """The tasks that have failed before, and are reported to have failed again."""
    return {
        lease.task_id
        for batch in batches
        for receipt in batch.receipts
        if receipt.outcome is AttemptOutcome.FAILED and (lease := leases.get(receipt.attempt_id)) and lease.failures
    }


def read_deliveries(
    batches: Sequence[SignedReceipts],
    reports: Sequence[AttemptHappening],
    leases: Leases,
    crashes: Mapping[UUID, Sequence[Crash]],
    patience: RetryLimits,
    now: Instant,
) -> DeliveredWork:
    """What receipts and other reports mean for the leases that they name. `crashes` are earlier failures by task."""
    happenings = {
        report.attempt_id: report
        for report in reversed(reports)
        if (lease := leases.get(report.attempt_id)) and lease.is_held_by(report.node_id, report.lease)
    }
    late: dict[tuple[UUID, UUID], LateReceipt] = {}
    for batch in batches:
        for place, receipt in enumerate(batch.receipts):
            attempt_id = receipt.attempt_id
            lease = leases.get(attempt_id)
            if lease is None:
                late.setdefault((attempt_id, batch.node_id), LateReceipt(receipt, batch.id, place))
            elif attempt_id not in happenings and is_for(receipt, lease):
                judged = _judge(receipt, lease, batch.house, crashes.get(lease.task_id, ()), patience, now)
                happenings[attempt_id] = _happening(receipt, judged, batch.id, place)
    delivered = {
        leases[happening.attempt_id].task_id
        for happening in happenings.values()
        if Happening.DELIVERED in happening.happenings
    }
    wanted = {claim: entry for claim, entry in late.items() if _may_count(entry.receipt, delivered)}
    return DeliveredWork(happenings, wanted)


def is_for(receipt: Receipt, lease: Lease) -> bool:
    """Whether a receipt is of this attempt: of its task, by its node, under its lease."""
    return lease.is_held_by(receipt.node_id, receipt.lease) and lease.task_id == receipt.task_id


def _may_count(receipt: Receipt, delivered: set[UUID]) -> bool:
    """Whether a late receipt brings a result that nobody else delivers at this moment."""
    return receipt.outcome is AttemptOutcome.DONE and receipt.task_id not in delivered


def _judge(
    receipt: Receipt, lease: Lease, house: bool, crashes: Sequence[Crash], patience: RetryLimits, now: Instant
) -> ReceiptJudgement:
    expected, times = lease.expected, AttemptTimes(lease.offered_at, now)
    doubtful = expected is not None and is_doubtful(receipt, times, lease.quoted_ms)
    judgement = judged_at_once(receipt, expected, house=house, private=lease.private, is_doubtful=doubtful)
    if receipt.outcome is AttemptOutcome.FAILED and crashes:
        is_at_fault = is_own_fault(Crash(lease.owner_id, judgement.reason), crashes, patience)
        return at_fault(judgement.reason) if is_at_fault else judgement
    return judgement


def _happening(receipt: Receipt, judgement: ReceiptJudgement, batch_id: UUID, place: int) -> AttemptHappening:
    return AttemptHappening(
        receipt.attempt_id,
        receipt.lease,
        receipt.node_id,
        judgement.happenings,
        judgement.reason,
        judgement.verdict,
        used_ms(receipt),
        batch_id,
        place,
    )
