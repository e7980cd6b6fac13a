"""Results that wait to be checked: leased for a while, then settled.

Checking a result twice changes nothing the second time, because its lease is over. What a house node uploaded for an
audit is deleted with the verdict.
"""

from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.receipts import Receipt, ReceiptRefusal, inclusion, read_receipt
from tidemill.core.jobs.task_events import TimesDoubted
from tidemill.core.trust.checks.plausibility import AttemptTimes, MeasuredSpeeds
from tidemill.core.trust.checks.receipt_checks import ReceiptJudgement, used_ms
from tidemill.store.artefacts import artefacts
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.jobs import outcomes
from tidemill.store.jobs.outcomes import AttemptHappening, BatchOutcome, WorkTerms
from tidemill.store.query import Connection, Query
from tidemill.store.trust import audits

_JUDGE = Query("trust/lease/judge", by_key=True)


@dataclass(frozen=True, slots=True)
class SecondExecution:
    """The ended second execution of a task: its receipt, or why there is nothing to compare with."""

    attempt_id: UUID | None
    receipt: Receipt | None
    reason: str


@dataclass(frozen=True, slots=True)
class UncheckedResult:
    """A delivered result: its receipt, the task, the result its customer expects, and the outcome of a second
    execution.

    `is_uploaded` says that the artefact in the receipt was uploaded for this attempt.
    """

    attempt_id: UUID
    task_id: UUID
    node_id: UUID
    owner_id: UUID
    lease: int
    body: bytes
    expected: bytes | None
    house: bool
    receipt: Receipt
    times: AttemptTimes
    device: MeasuredSpeeds
    is_uploaded: bool
    second_execution: SecondExecution | None


@dataclass(frozen=True, slots=True)
class CheckedResult:
    """The judgement on a result, and a doubt about its times, if any."""

    result: UncheckedResult
    judged: ReceiptJudgement
    doubt: str = ""


async def take(
    database: Database, judge: UUID, limit: int, *, lease_us: int, now: Instant, mine: bool = False
) -> list[UncheckedResult]:
    """Lease results to a process that checks them. Nobody else gets them until the lease ends or the process stops.

    `mine` includes results that this process has leased already.
    """
    async with database.transaction() as transaction:
        rows = await _JUDGE.rows(
            transaction, judge=judge, until=Instant(now + lease_us), limit=limit, now=now, mine=mine
        )
    return [_unchecked_result(row) for row in rows]


async def settle(database: Database, checked: CheckedResult, terms: WorkTerms, ids: Ids, now: Instant) -> BatchOutcome:
    """Apply a judgement: pay, try again, or give the money back to the customer. A doubt gets an event."""
    result, judgement, doubt = checked.result, checked.judged, checked.doubt
    reason = f"{judgement.reason} {doubt}" if doubt else judgement.reason
    happening = AttemptHappening(
        *(result.attempt_id, result.lease, result.node_id, judgement.happenings[1:], reason, judgement.verdict),
        used_ms(result.receipt),
    )
    async with database.transaction() as transaction:
        applied = await outcomes.apply(transaction, [happening], terms, ids, now)
        if result.attempt_id not in applied.attempts:
            return applied
        if doubt:
            event = TimesDoubted(result.owner_id, result.node_id, result.attempt_id, doubt)
            await events.append(transaction, [event], ids, now)
        if result.second_execution is not None:
            await _close(transaction, result, result.second_execution, judgement, now)
        return applied


async def _close(
    transaction: Connection, result: UncheckedResult, second: SecondExecution, judgement: ReceiptJudgement, now: Instant
) -> None:
    result_sha256 = second.receipt.result_sha256 or None if second.receipt else None
    await audits.close(transaction, result.attempt_id, result_sha256, judgement.verdict, now)
    if second.attempt_id is not None:
        await artefacts.let_go_of_result(transaction, second.attempt_id, now)


def _unchecked_result(row: asyncpg.Record) -> UncheckedResult:
    receipt = _receipt(row["batch"], row["place"])
    return UncheckedResult(
        attempt_id=row["attempt_id"],
        task_id=row["task_id"],
        node_id=row["node_id"],
        owner_id=row["owner_id"],
        lease=row["tries"],
        body=row["body"],
        expected=row["expected"],
        house=row["house"],
        receipt=receipt,
        times=AttemptTimes(row["offered_at"], row["received_at"]),
        device=MeasuredSpeeds(row["model"], row["memory_mib"], row["gpu_ops_per_s"], row["cpu_ops_per_s"]),
        is_uploaded=receipt.artefact is not None and row["uploaded"] == receipt.artefact.text,
        second_execution=None if row["audit_ended"] is None else _second_execution(row),
    )


def _second_execution(row: asyncpg.Record) -> SecondExecution:
    has_receipt = row["audit_batch"] is not None
    receipt = _receipt(row["audit_batch"], row["audit_place"]) if has_receipt else None
    return SecondExecution(row["audit_attempt_id"], receipt, row["audit_reason"] or "")


def _receipt(batch: bytes, index: int) -> Receipt:
    receipt = read_receipt(inclusion(batch, index).receipt)
    assert not isinstance(receipt, ReceiptRefusal), "only what could be read was kept"
    return receipt
