"""What a customer does to a job besides confirming it: call it off, give it more time or a larger budget.

Each is one change of the job's row under its lock: if two change a job at once, the second sees what the first has
done. Somebody else's job is reported as unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from tidemill.core.clock import DAY, Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs import job as lives
from tidemill.core.jobs.events import JobEnded, JobExtended
from tidemill.core.jobs.job import ENDED, JobHappening, JobState
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.store.events import events
from tidemill.store.jobs import job_closures, jobs
from tidemill.store.query import Connection, Query

_CALL_OFF = Query("jobs/job/call_off")
_EXTEND = Query("jobs/job/extend")
_EXPIRE_QUOTES = Query("jobs/job/expire_quotes")
_UNCONFIRMED = Query("jobs/job/unconfirmed")
_HELD_UNTIL = Query("jobs/job/held_until")


FORGOTTEN_US = 7 * DAY
"""A quote that expired this long ago cannot be renewed: the job is over."""


@dataclass(frozen=True)
class JobExtension:
    """What is added to a job: time, or a budget that replaces the old one.

    Its money must be held for `margin_us` after the new deadline.
    """

    time_us: int = 0
    budget_uc: int | None = None
    margin_us: int = 0


@dataclass(frozen=True)
class UnconfirmedJob:
    """A job that somebody wants to confirm, as it was sent and quoted."""

    account_id: UUID
    state: JobState
    asked: Mapping[str, Any]
    quote: Mapping[str, Any]
    quote_expires_at: Instant
    budget_uc: int | None


async def room_for_another(transaction: Connection, account_id: UUID, most: int, now: Instant) -> JobRefusal | None:
    """Whether an account may order another job. Quotes that expired long ago are over, and do not count.

    Concurrent orders may exceed the limit by what is under way; the limit only protects against floods.
    """
    await _EXPIRE_QUOTES.run(transaction, account_id=account_id, before=Instant(now - FORGOTTEN_US), now=now)
    row = await _UNCONFIRMED.row(transaction, account_id=account_id)
    return JobRefusal.TOO_MANY_UNCONFIRMED if row and row["unconfirmed"] >= most else None


async def unconfirmed_job(transaction: Connection, job_id: UUID, owner: UUID | None) -> UnconfirmedJob | JobRefusal:
    """A job for its owner, locked until the transaction ends."""
    row = await _owned(transaction, job_id, owner)
    if isinstance(row, JobRefusal):
        return row
    names = ("account_id", "asked", "quote", "quote_expires_at", "budget_uc")
    return UnconfirmedJob(state=JobState(row["state"]), **{name: row[name] for name in names})


async def call_off(
    transaction: Connection, job_id: UUID, owner: UUID | None, ids: Ids, now: Instant
) -> JobRefusal | None:
    """Call a job off: it starts nothing more; an unconfirmed job is over at once. The caller sweeps afterwards."""
    row = await _owned(transaction, job_id, owner)
    if isinstance(row, JobRefusal):
        return row
    step = lives.step(jobs.life_of(row), JobHappening.CALLED_OFF)
    if step is None:
        return JobRefusal.JOB_OVER
    if step.job.state is not JobState.CANCELLED:
        return await job_closures.close(transaction, job_id, JobHappening.CALLED_OFF)
    await _CALL_OFF.run(transaction, id=job_id, now=now)
    ended = JobEnded(row["account_id"], job_id, step.job.state.value, 0, 0, 0, 0)
    await events.append(transaction, [ended], ids, now)
    return None


async def extend(
    transaction: Connection, job_id: UUID, owner: UUID | None, more: JobExtension, ids: Ids, now: Instant
) -> JobRefusal | None:
    """Give a confirmed job more time, as long as its money is held, or an unconfirmed one a larger budget."""
    row = await _owned(transaction, job_id, owner)
    if isinstance(row, JobRefusal):
        return row
    refusal = _refused(row, more)
    if refusal is not None:
        return refusal
    deadline_at = Instant(row["deadline_at"] + more.time_us) if more.time_us else None
    hold = await _HELD_UNTIL.row(transaction, id=job_id)
    if deadline_at is not None and (hold is None or deadline_at > hold["expires_at"] - more.margin_us):
        return JobRefusal.DEADLINE_TOO_FAR
    await _EXTEND.run(transaction, id=job_id, deadline_at=deadline_at, budget_uc=more.budget_uc)
    extended = JobExtended(row["account_id"], job_id, deadline_at, more.budget_uc)
    await events.append(transaction, [extended], ids, now)
    return None


async def _owned(transaction: Connection, job_id: UUID, owner: UUID | None) -> asyncpg.Record | JobRefusal:
    """A job's row, locked until the transaction ends; only for its owner, or for an operator, who passes no owner."""
    row = await jobs.locked(transaction, job_id)
    return row if row is not None and owner in (None, row["account_id"]) else JobRefusal.UNKNOWN_JOB


def _refused(row: asyncpg.Record, more: JobExtension) -> JobRefusal | None:
    state = JobState(row["state"])
    if state in ENDED or row["closing"] is not None:
        return JobRefusal.JOB_OVER
    confirmed = state in (JobState.QUEUED, JobState.RUNNING)
    if not more.time_us and more.budget_uc is None:
        return JobRefusal.NOTHING_TO_EXTEND
    if more.time_us and not confirmed:
        return JobRefusal.JOB_NOT_CONFIRMED
    if more.budget_uc is None:
        return None
    if confirmed:
        return JobRefusal.BUDGET_HELD
    return JobRefusal.BUDGET_NOT_LARGER if more.budget_uc <= (row["budget_uc"] or 0) else None
