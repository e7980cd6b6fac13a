"""What follows from what nodes deliver: receipts are judged at once where that costs nothing.

A receipt counts for the one lease that it names, and only from the node that holds it: no other node can prevent a
delivery. Of an attempt, the first report counts. A receipt whose attempt holds no lease may be a late one: the first
result of a task counts, even if its attempt was given up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.plans.happenings import (
    AttemptHappening,
    EarlierFailures,
    LateDelivery,
    Lease,
    Leases,
    WorkTerms,
)
from tidemill.core.jobs.plans.work_plan import WorkPlan, follow
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.settlement.pay import UsedTime
from tidemill.core.trust.checks.judgement import ReceiptJudgement, at_fault, judged_at_once, used_time
from tidemill.core.trust.checks.timing import AttemptTimes, is_doubtful


@dataclass(frozen=True, slots=True)
class SignedReceipts:
    """A batch of receipts with the node's valid signature, and the id under which it may be kept."""

    id: UUID
    node_id: UUID
    house: bool
    body: bytes
    signature: bytes
    receipts: tuple[Receipt, ...]


class GivenUpAttempt(NamedTuple):
    """An attempt that was given up, as the lease that it held; and its task by now: it waits, or another holds it."""

    lease: Lease
    rank: int
    failures: int
    tries: int
    holder: Lease | None


class ReportedWork(NamedTuple):
    """What nodes report of their attempts, and everything it names, as it was locked. `earlier` are failures of
    tasks that were tried before, by task."""

    batches: Sequence[SignedReceipts]
    reports: Sequence[AttemptHappening]
    leases: Leases
    earlier: EarlierFailures
    given_up: Sequence[GivenUpAttempt]


def follow_deliveries(
    work: ReportedWork, terms: WorkTerms, ids: Ids, now: Instant, *, is_payable: bool = True
) -> WorkPlan:
    """What follows from receipts and other reports. If the ledger does not pay, no result passes: it is here, and
    waits."""
    happenings = _happenings(work, now)
    late = _late_deliveries(work, happenings) if work.given_up else ()
    happened = happenings.values() if is_payable else [happening.undecided for happening in happenings.values()]
    return follow(happened, work.leases, terms, ids, now, late=late)


def _happenings(work: ReportedWork, now: Instant) -> dict[UUID, AttemptHappening]:
    """What receipts and other reports mean for the leases that they name, by attempt."""
    leases = work.leases
    happenings = {
        report.attempt_id: report
        for report in reversed(work.reports)
        if (lease := leases.get(report.attempt_id)) and lease.is_held_by(report.node_id, report.lease)
    }
    for batch in work.batches:
        for place, receipt in enumerate(batch.receipts):
            attempt_id = receipt.attempt_id
            lease = leases.get(attempt_id)
            if lease is not None and attempt_id not in happenings and _is_for(receipt, lease):
                earlier = work.earlier.get(lease.task_id, ())
                judged = _judge(receipt, lease, now)
                used = used_time(receipt, AttemptTimes(lease.offered_at, now))
                happenings[attempt_id] = _happening(receipt, judged, used, batch.id, place)._replace(earlier=earlier)
    return happenings


def _late_deliveries(work: ReportedWork, happenings: Mapping[UUID, AttemptHappening]) -> list[LateDelivery]:
    """Results of attempts that were given up, one for a task, where nobody else delivers it at this moment."""
    given_up = {(attempt.lease.attempt_id, attempt.lease.node_id): attempt for attempt in work.given_up}
    delivered = {
        work.leases[happening.attempt_id].task_id
        for happening in happenings.values()
        if Happening.DELIVERED in happening.happenings
    }
    late: dict[UUID, LateDelivery] = {}
    for batch in work.batches:
        for place, receipt in enumerate(batch.receipts):
            attempt = given_up.pop((receipt.attempt_id, receipt.node_id), None)
            if attempt is None or receipt.outcome is AttemptOutcome.FAILED or not _is_for(receipt, attempt.lease):
                continue
            if receipt.task_id not in delivered and receipt.task_id not in late:
                late[receipt.task_id] = _late_delivery(attempt, batch.id, place)
    return list(late.values())


def _late_delivery(attempt: GivenUpAttempt, batch_id: UUID, place: int) -> LateDelivery:
    lease = attempt.lease._replace(
        rank=attempt.rank, failures=attempt.failures, tries=attempt.tries, batch_id=batch_id, place=place
    )
    return LateDelivery(lease, attempt.holder)


def _is_for(receipt: Receipt, lease: Lease) -> bool:
    """Whether a receipt is of this attempt: of its task, by its node, under its lease."""
    return lease.is_held_by(receipt.node_id, receipt.lease) and lease.task_id == receipt.task_id


def _judge(receipt: Receipt, lease: Lease, now: Instant) -> ReceiptJudgement:
    """The verdict where it costs nothing. If a customer's own program fails on a house node, the order is at fault."""
    expected, times = lease.expected, AttemptTimes(lease.offered_at, now)
    doubtful = expected is not None and is_doubtful(receipt, times, lease.quoted_ms)
    judgement = judged_at_once(receipt, expected, house=lease.house, private=lease.private, is_doubtful=doubtful)
    is_own_program = lease.hold_id is not None and not lease.is_of_our_kind
    if receipt.outcome is AttemptOutcome.FAILED and lease.house and is_own_program:
        return at_fault(judgement.reason)
    return judgement


def _happening(
    receipt: Receipt, judgement: ReceiptJudgement, used: UsedTime, batch_id: UUID, place: int
) -> AttemptHappening:
    return AttemptHappening(
        receipt.attempt_id,
        receipt.lease,
        receipt.node_id,
        judgement.happenings,
        judgement.reason,
        judgement.verdict,
        used,
        batch_id,
        place,
        is_orders_fault=judgement.is_orders_fault,
    )
