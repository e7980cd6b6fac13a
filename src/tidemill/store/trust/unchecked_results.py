"""Results that wait to be checked: leased for a while, then settled.

Checking a result twice changes nothing the second time, because its lease is over. What a house node uploaded for an
audit is deleted with the verdict.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.plans.happenings import AttemptHappening, WorkTerms
from tidemill.core.jobs.plans.work_plan import WorkPlan
from tidemill.core.jobs.receipts import Receipt, ReceiptRefusal, inclusion, read_receipt
from tidemill.core.trust.checks.judgement import SecondExecution, UncheckedResult
from tidemill.core.trust.checks.timing import AttemptTimes, MeasuredSpeeds
from tidemill.core.trust.reviews import ReviewDecision
from tidemill.store.database import Database
from tidemill.store.jobs import work_plans
from tidemill.store.query import Query


class _TakenResult(NamedTuple):
    """A delivered result with its task and node, and with the audit of it, if there is one."""

    attempt_id: UUID
    task_id: UUID
    account_id: UUID
    node_id: UUID
    owner_id: UUID
    tries: int
    place: int
    offered_at: Instant
    body: bytes
    expected: bytes | None
    batch: bytes
    received_at: Instant
    house: bool
    uploaded: str | None
    model: str
    memory_mib: int
    gpu_ops_per_s: int
    cpu_ops_per_s: int
    audit_ended: str | None
    audit_attempt_id: UUID | None
    audit_reason: str | None
    audit_place: int | None
    audit_batch: bytes | None
    first_found: bytes | None
    audit_core_ops_per_s: float
    decided: str | None
    decided_for: str | None
    is_overdue: bool


class HandLimits(NamedTuple):
    """How many results to take: at most so many, and of one customer so many, with those that are in hand already.

    Those are given by attempt, with their customers.
    """

    most: int
    of_one_customer: int
    in_hand: Mapping[UUID, UUID] = MappingProxyType({})
    asked_before: Instant = Instant(0)
    """Whoever was asked about a result before this instant does not decide on it any more."""


_JUDGE = Query("trust/lease/judge", _TakenResult, by_key=True)


async def take(
    database: Database, judge: UUID, limits: HandLimits, *, lease_us: int, now: Instant, mine: bool = False
) -> list[UncheckedResult]:
    """Lease results to a process that checks them, in customers' turns. Nobody else gets them until the lease ends or
    the process stops.

    `mine` includes results that this process has leased already.
    """
    async with database.transaction() as transaction:
        taken = await _JUDGE.rows(
            transaction,
            judge=judge,
            until=Instant(now + lease_us),
            limit=limits.most,
            of_one_customer=limits.of_one_customer,
            held_ids=list(limits.in_hand),
            held_of=list(limits.in_hand.values()),
            now=now,
            mine=mine,
            asked_before=limits.asked_before,
        )
    return [_unchecked_result(result) for result in taken]


async def settle(database: Database, judged: AttemptHappening, terms: WorkTerms, ids: Ids, now: Instant) -> WorkPlan:
    """Apply a judgement: pay, try again, or give the money back to the customer."""
    async with database.transaction() as transaction:
        return await work_plans.apply(transaction, [judged], terms, ids, now)


def _unchecked_result(taken: _TakenResult) -> UncheckedResult:
    receipt = _receipt(taken.batch, taken.place)
    return UncheckedResult(
        attempt_id=taken.attempt_id,
        task_id=taken.task_id,
        customer_id=taken.account_id,
        node_id=taken.node_id,
        owner_id=taken.owner_id,
        lease=taken.tries,
        body=taken.body,
        expected=taken.expected,
        house=taken.house,
        receipt=receipt,
        times=AttemptTimes(taken.offered_at, taken.received_at),
        device=MeasuredSpeeds(taken.model, taken.memory_mib, taken.gpu_ops_per_s, taken.cpu_ops_per_s),
        is_uploaded=receipt.artefact is not None and taken.uploaded == receipt.artefact.text,
        second_execution=None if taken.audit_ended is None else _second_execution(taken),
        decision=None if taken.decided is None else (ReviewDecision(taken.decided), taken.decided_for or ""),
        is_overdue=taken.is_overdue,
    )


def _second_execution(taken: _TakenResult) -> SecondExecution:
    batch, place = taken.audit_batch, taken.audit_place
    receipt = None if batch is None or place is None else _receipt(batch, place)
    return SecondExecution(
        taken.audit_attempt_id, receipt, taken.audit_reason or "", taken.first_found, taken.audit_core_ops_per_s
    )


def _receipt(batch: bytes, place: int) -> Receipt:
    receipt = read_receipt(inclusion(batch, place).receipt)
    assert not isinstance(receipt, ReceiptRefusal), "only what could be read was kept"
    return receipt
