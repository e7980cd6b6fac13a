"""Jobs in the database: drafted, quoted, confirmed with their money held, closed. The rules are core's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs import job as lives
from tidemill.core.jobs.job import ClosingReason, EndCounts, JobEffect, JobHappening, JobLife, JobState
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.ledger import AccountKind, Hold, LedgerAccount, PostingRefusal
from tidemill.store.jobs import tasks
from tidemill.store.jobs.tasks import NewTask
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection, Query

_MAKE = Query("jobs/job/make")
_QUOTE = Query("jobs/job/quote")
_LOCK = Query("jobs/job/lock")
_CONFIRM = Query("jobs/job/confirm")


@dataclass(frozen=True)
class Draft:
    """A job as a customer sent it."""

    id: UUID
    account_id: UUID
    kind: str
    asked: Mapping[str, Any]
    budget_uc: int | None = None


@dataclass(frozen=True)
class JobPlan:
    """What a confirmed job consists of: its tasks, the amount to hold for them, their rank, and the deadlines."""

    tasks: Sequence[NewTask]
    hold_uc: int
    rank: int
    deadline_at: Instant
    hold_until: Instant


async def make(transaction: Connection, draft: Draft, now: Instant) -> None:
    await _MAKE.run(
        transaction,
        id=draft.id,
        account_id=draft.account_id,
        kind=draft.kind,
        asked=dict(draft.asked),
        budget_uc=draft.budget_uc,
        now=now,
    )


async def set_quote(transaction: Connection, job_id: UUID, quote: Mapping[str, Any], expires_at: Instant) -> bool:
    """Store what a job will cost. False if it has been confirmed, or is over."""
    return await _QUOTE.row(transaction, id=job_id, quote=dict(quote), expires_at=expires_at) is not None


async def confirm(
    transaction: Connection, job_id: UUID, plan: JobPlan, ids: Ids, now: Instant
) -> JobRefusal | PostingRefusal | None:
    """Hold the money and make the tasks, or refuse and change nothing."""
    row = await locked(transaction, job_id)
    if row is None:
        return JobRefusal.UNKNOWN_JOB
    step = lives.step(life_of(row), JobHappening.CONFIRMED)
    if step is None:
        return JobRefusal.JOB_NOT_QUOTED
    if now >= row["quote_expires_at"]:
        return JobRefusal.QUOTE_EXPIRED
    assert step.effects == (JobEffect.HOLD, JobEffect.MAKE_TASKS)
    account_id, hold_id = row["account_id"], ids.new(now)
    customer = LedgerAccount(AccountKind.CUSTOMER, account_id)
    hold = Hold(hold_id, customer.id, plan.hold_uc, customer.currency, plan.hold_until, f"job:{job_id}")
    [outcome] = await ledger.post(transaction, [hold], ids, now)
    if outcome.refusal is not None:
        return outcome.refusal
    await _CONFIRM.run(
        transaction, id=job_id, hold_id=hold_id, tasks=len(plan.tasks), deadline_at=plan.deadline_at, now=now
    )
    await tasks.make(transaction, job_id, account_id, plan.tasks, rank=plan.rank, now=now)
    return None


async def locked(transaction: Connection, job_id: UUID) -> asyncpg.Record | None:
    """A job's row, locked until the transaction ends."""
    return await _LOCK.row(transaction, id=job_id)


def life_of(row: asyncpg.Record) -> JobLife:
    """The life state of a job, from its row."""
    ends = EndCounts(row["completed"], row["failed"], row["cancelled"])
    closing = None if row["closing"] is None else ClosingReason(row["closing"])
    return JobLife(JobState(row["state"]), row["tasks"], ends, closing)
