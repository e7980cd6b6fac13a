"""Writes what follows from what happens to work: plans of core, in the transaction that locked what they are about.

Nothing is decided here. Lock order: leases by id, then jobs by id, then owners' records by id, then the ledger. Others
need all of these except leases, so those are locked last and briefly.
"""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.plans.happenings import AttemptHappening, Lease, WorkTerms
from tidemill.core.jobs.plans.job_ends import HOLD_ENDS, CountedJob, JobsPlan, conclude, counts_of
from tidemill.core.jobs.plans.task_bills import LatePay
from tidemill.core.jobs.plans.work_plan import (
    AttemptEnd,
    AuditVerdict,
    CallOff,
    LeaseChange,
    TaskEnd,
    WaitingAgain,
    WorkPlan,
    follow,
)
from tidemill.core.settlement.rewards import BONUS_FUND
from tidemill.core.trust.owner_record import AttemptCounts, told_by
from tidemill.store.artefacts import artefact_grants, artefacts
from tidemill.store.events import events
from tidemill.store.jobs import leases
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection, Query
from tidemill.store.settlement import obligations

_CHANGE = Query("jobs/lease/change", by_key=True)
_END_LEASES = Query("jobs/lease/end", by_key=True)
_PAY_LATE = Query("jobs/lease/pay_late")
_RESUME = Query("jobs/lease/resume")
_REQUEUE = Query("jobs/task/requeue")
_CALL_OFF = Query("jobs/lease/call_off")
_END_TASKS = Query("jobs/task/end", int, by_key=True)
_COUNT = Query("jobs/job/count", CountedJob, by_key=True)
_END_JOBS = Query("jobs/job/end")
_END_AUDITS = Query("jobs/audit/end")
_JUDGE_AUDITS = Query("jobs/audit/judge")
_RECORD = Query("jobs/owner_record/count")


async def apply(
    transaction: Connection, happenings: Sequence[AttemptHappening], terms: WorkTerms, ids: Ids, now: Instant
) -> WorkPlan:
    """Lock the leases that happenings name, and write what follows."""
    named = {(happening.attempt_id, happening.node_id) for happening in happenings}
    locked = await leases.lock(transaction, named)
    earlier = await leases.earlier_failures(transaction, leases.tried_before(locked.values()))
    told = [
        happening._replace(earlier=earlier.get(lease.task_id, ()))
        for happening in happenings
        if (lease := locked.get(happening.attempt_id))
    ]
    plan = follow(told, locked, terms, ids, now)
    await write(transaction, plan, terms, ids, now)
    return plan


async def write(transaction: Connection, plan: WorkPlan, terms: WorkTerms, ids: Ids, now: Instant) -> JobsPlan:
    """Write a plan, and what follows from it for jobs. Returns the latter."""
    await _requeue(transaction, plan.waiting, now)
    await _change(transaction, plan.changes)
    await _end_leases(transaction, plan.ends, now)
    await _pay_late(transaction, plan.late_pays)
    await _resume(transaction, plan.resumed, now)
    await _call_off(transaction, plan.called_off, now)
    await _judge_audits(transaction, plan.audit_verdicts, now)
    jobs = await _end_tasks(transaction, plan.task_ends, now) if plan.task_ends else []
    has_bonus = any(paid.due.bonus_uc for paid in plan.paid)
    fund_uc = await ledger.available_uc(transaction, BONUS_FUND) if has_bonus else 0
    concluded = conclude(plan, jobs, fund_uc, terms, ids, now)
    await _end_jobs(transaction, concluded.ended.items(), now)
    if new_events := [*plan.events, *concluded.events]:
        await events.append(transaction, new_events, ids, now)
    await _record(transaction, plan)
    await obligations.settle(transaction, concluded.obligations, concluded.ended_hold_ids, HOLD_ENDS, ids, now)
    return concluded


async def _requeue(transaction: Connection, waiting: Sequence[WaitingAgain], now: Instant) -> None:
    if waiting:
        ranks, task_ids, job_ids, account_ids, failures, tries = _columns(waiting)
        await _REQUEUE.run(
            transaction,
            now=now,
            ranks=ranks,
            task_ids=task_ids,
            job_ids=job_ids,
            account_ids=account_ids,
            failures=failures,
            tries=tries,
        )


async def _change(transaction: Connection, changes: Sequence[LeaseChange]) -> None:
    if changes:
        attempt_ids, states, batch_ids, places = _columns(changes)
        await _CHANGE.run(transaction, attempt_ids=attempt_ids, states=states, batch_ids=batch_ids, places=places)


async def _end_leases(transaction: Connection, ends: Sequence[AttemptEnd], now: Instant) -> None:
    if ends:
        attempt_ids, states, verdicts, reasons, paid_uc, transfer_ids, batch_ids, places = _columns(ends)
        await _END_LEASES.run(
            transaction,
            now=now,
            attempt_ids=attempt_ids,
            states=states,
            verdicts=verdicts,
            reasons=reasons,
            paid_uc=paid_uc,
            transfer_ids=transfer_ids,
            batch_ids=batch_ids,
            places=places,
        )


async def _pay_late(transaction: Connection, late_pays: Sequence[LatePay]) -> None:
    if late_pays:
        attempt_ids, paid_uc, transfer_ids = _columns(late_pays)
        await _PAY_LATE.run(transaction, attempt_ids=attempt_ids, paid_uc=paid_uc, transfer_ids=transfer_ids)


async def _resume(transaction: Connection, resumed: Sequence[Lease], now: Instant) -> None:
    if resumed:
        columns = dict(zip(Lease._fields, _columns(resumed), strict=True))
        written = ("attempt_id", "task_id", "job_id", "account_id", "node_id", "owner_id", "rank", "batch_id", "place")
        await _RESUME.run(
            transaction,
            now=now,
            **{f"{name}s": columns[name] for name in written},
            **{
                name: columns[name] for name in ("failures", "tries", "hourly_uc", "quoted_ms", "work_ms", "offered_at")
            },
            states=columns["state"],
            houses=columns["house"],
        )


async def _call_off(transaction: Connection, called_off: Sequence[CallOff], now: Instant) -> None:
    """Nodes are told to stop, and lose their grants."""
    if called_off:
        attempt_ids, node_ids, tokens, reasons = _columns(called_off)
        await _CALL_OFF.run(
            transaction, now=now, attempt_ids=attempt_ids, node_ids=node_ids, leases=tokens, reasons=reasons
        )
        await artefact_grants.take_back(transaction, attempt_ids, now)


async def _judge_audits(transaction: Connection, verdicts: Sequence[AuditVerdict], now: Instant) -> None:
    """Store what second executions found. What they uploaded is wanted no more."""
    if verdicts:
        attempt_ids, found, words, repeated_by = _columns(verdicts)
        await _JUDGE_AUDITS.run(transaction, now=now, attempt_ids=attempt_ids, found=found, verdicts=words)
        for attempt_id in repeated_by:
            if attempt_id is not None:
                await artefacts.let_go_of_result(transaction, attempt_id, now)


async def _end_tasks(transaction: Connection, ends: Sequence[TaskEnd], now: Instant) -> list[CountedJob]:
    """End tasks, release their inputs, and count them. Returns their jobs, which stay locked."""
    task_ids = [end.task_id for end in ends]
    ended = await _END_TASKS.only(
        transaction,
        now=now,
        ids=task_ids,
        ends=[end.state for end in ends],
        attempt_ids=[end.attempt_id for end in ends],
    )
    assert ended == len(ends), "a task ends once, and is paid once"
    await artefacts.release(transaction, task_ids)
    if audit_ids := [end.job_id for end in ends if end.is_audit]:
        await _END_AUDITS.run(transaction, ids=sorted(audit_ids), now=now)
    counts = counts_of(ends)
    if not counts:
        return []
    ids, completed, failed, cancelled, spent_uc = _columns(counts)
    return await _COUNT.rows(
        transaction, ids=ids, completed=completed, failed=failed, cancelled=cancelled, spent_uc=spent_uc
    )


async def _end_jobs(transaction: Connection, ended: Iterable[tuple[UUID, JobState]], now: Instant) -> None:
    if pairs := list(ended):
        ids, states = _columns(pairs)
        await _END_JOBS.run(transaction, ids=ids, states=states, now=now)


async def _record(transaction: Connection, plan: WorkPlan) -> None:
    """Tell owners' records."""
    if records := told_by(plan):
        columns = dict(zip(AttemptCounts._fields, _columns(list(records.values())), strict=True))
        await _RECORD.run(transaction, owner_ids=list(records), **columns)


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
