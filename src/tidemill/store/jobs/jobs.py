"""Jobs in the database: drafted, quoted, confirmed with their money held, changed, closed. Core decides on each.

Each change is one change of the job's row under its lock: if two change a job at once, the second sees what the first
has done. Somebody else's job is reported as unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.job import ClosingReason, JobHappening
from tidemill.core.jobs.plans import job_changes
from tidemill.core.jobs.plans.job_changes import JobExtension, JobHold, JobPlan, LockedJob, refused_draft
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.ledger import PostingRefusal
from tidemill.core.money import AmountObjection
from tidemill.core.settings.sections.market import MarketSettings
from tidemill.store.artefacts import artefacts
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.jobs import tasks
from tidemill.store.jobs.job_views import Job
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection, Query
from tidemill.store.settlement import obligations


class _Unconfirmed(NamedTuple):
    jobs: int
    size_bytes: int


_MAKE = Query("jobs/job/make")
_QUOTE = Query("jobs/job/quote", Job)
_LOCK = Query("jobs/job/lock", LockedJob)
_CONFIRM = Query("jobs/job/confirm", Job)
_CLOSE = Query("jobs/job/close")
_CALL_OFF = Query("jobs/job/call_off")
_EXTEND = Query("jobs/job/extend")
_UNCONFIRMED = Query("jobs/job/unconfirmed", _Unconfirmed)
_FORGET_UNCONFIRMED = Query("jobs/job/forget_unconfirmed", int)
_HOLD = Query("jobs/job/hold", JobHold)


@dataclass(frozen=True)
class Draft:
    """A job as a customer sent it."""

    id: UUID
    account_id: UUID
    kind: str
    asked: Mapping[str, Any]
    budget_uc: int | None = None


async def room_for_another(transaction: Connection, account_id: UUID, market: MarketSettings) -> JobRefusal | None:
    """Whether an account may order another job: those that it never confirmed are bounded, also if it called them off.

    Concurrent orders may exceed the limit by what is under way; the limit only protects against floods.
    """
    unconfirmed = await _UNCONFIRMED.only(transaction, account_id=account_id)
    return refused_draft(unconfirmed.jobs, unconfirmed.size_bytes, market)


async def forget_unconfirmed(database: Database, before: Instant, limit: int) -> int:
    """Delete jobs that nobody confirmed and whose quotes expired before an instant. Returns how many."""
    async with database.connection() as connection:
        return await _FORGET_UNCONFIRMED.only(connection, before=before, limit=limit)


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


async def set_quote(transaction: Connection, job_id: UUID, quote: Mapping[str, Any], expires_at: Instant) -> Job | None:
    """Store what a job will cost. None if it has been confirmed, or is over."""
    return await _QUOTE.row(transaction, id=job_id, quote=dict(quote), expires_at=expires_at)


async def lock(transaction: Connection, job_id: UUID, owner: UUID | None = None) -> LockedJob | JobRefusal:
    """A job, locked until the transaction ends; only for its owner, or for an operator, who passes no owner."""
    job = await _LOCK.row(transaction, id=job_id)
    return job if job is not None and owner in (None, job.account_id) else JobRefusal.UNKNOWN_JOB


async def confirm(
    transaction: Connection, plan: JobPlan, ids: Ids, now: Instant
) -> Job | ArtefactRefusal | PostingRefusal:
    """Hold the money and make the tasks of a job that the caller has locked. Refused if the money is not there, or if
    an input was deleted just now; then the transaction must not commit."""
    inputs = {artefact_id for _, artefact_id in plan.uses}
    if inputs and inputs != await artefacts.use(transaction, plan.uses):
        return ArtefactRefusal.UNKNOWN_ARTEFACT
    await ledger.open_accounts(transaction, [plan.hold.payer], now)
    if refusal := await obligations.reserve(transaction, plan.hold, ids, now):
        return refusal
    await tasks.make(transaction, plan.job_id, plan.account_id, plan.tasks, rank=plan.rank, now=now)
    await events.append(transaction, [plan.event], ids, now)
    return await _CONFIRM.only(
        transaction,
        id=plan.job_id,
        hold_id=plan.hold.id,
        held_uc=plan.hold.amount_uc,
        tasks=len(plan.tasks),
        deadline_at=plan.deadline_at,
        now=now,
    )


async def close(transaction: Connection, job_id: UUID, why: JobHappening) -> JobRefusal | None:
    """Close a confirmed job: it starts nothing more. The caller sweeps afterwards."""
    job = await lock(transaction, job_id)
    if isinstance(job, JobRefusal):
        return job
    closing = job_changes.close(job, why)
    if isinstance(closing, JobRefusal):
        return closing
    await _write_closing(transaction, job_id, closing)
    return None


async def call_off(
    transaction: Connection, job_id: UUID, owner: UUID | None, ids: Ids, now: Instant
) -> JobRefusal | None:
    """Call a job off: it starts nothing more; an unconfirmed job is over at once. The caller sweeps afterwards."""
    job = await lock(transaction, job_id, owner)
    plan = job if isinstance(job, JobRefusal) else job_changes.call_off(job)
    if isinstance(plan, JobRefusal):
        return plan
    if plan.event is None:
        await _write_closing(transaction, job_id, plan.closing)
        return None
    await _CALL_OFF.run(transaction, id=job_id, now=now)
    await events.append(transaction, [plan.event], ids, now)
    return None


async def extend(
    transaction: Connection, job_id: UUID, owner: UUID | None, more: JobExtension, ids: Ids, now: Instant
) -> JobRefusal | PostingRefusal | AmountObjection | None:
    """Give a confirmed job more time, for which its money is held as well, or an unconfirmed one a larger budget."""
    job = await lock(transaction, job_id, owner)
    if isinstance(job, JobRefusal):
        return job
    hold = await _HOLD.row(transaction, id=job_id)
    plan = job_changes.extend(job, more, hold, ids.new(now), now)
    if isinstance(plan, JobRefusal | AmountObjection):
        return plan
    if plan.hold and (refusal := await obligations.reserve(transaction, plan.hold, ids, now)):
        return refusal
    await _EXTEND.run(
        transaction,
        id=job_id,
        deadline_at=plan.deadline_at,
        budget_uc=plan.budget_uc,
        hold_id=plan.hold.id if plan.hold else None,
    )
    await events.append(transaction, [plan.event], ids, now)
    return None


async def _write_closing(transaction: Connection, job_id: UUID, closing: ClosingReason | None) -> None:
    await _CLOSE.run(transaction, id=job_id, closing=closing)
