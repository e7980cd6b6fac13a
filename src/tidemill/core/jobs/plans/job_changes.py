"""What a customer does to a job: confirm it, call it off, give it more time or a larger budget; and how it closes.

Each function takes the job as it was locked, and answers with what changes, or with a refusal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.clock import DAY, Instant
from tidemill.core.jobs import job as lives
from tidemill.core.jobs.events import JobEnded, JobExtended
from tidemill.core.jobs.job import ENDED, ClosingReason, EndCounts, JobHappening, JobLife, JobState
from tidemill.core.jobs.quotes.order import DEADLINE_S
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.placement.task_demand import TaskDemand
from tidemill.core.settlement.obligations import PlannedHold
from tidemill.core.settlement.rewards import customer_account

HELD_LONGER_US = 30 * DAY
"""How long money is held after a job's deadline, so that the deadline can be moved and late results are paid."""

HELD_AT_LEAST_US = 7 * DAY
"""How much of that time is left for verdicts: a deadline that moves closer to it has the hold replaced."""


class LockedJob(NamedTuple):
    """A job as it was locked."""

    id: UUID
    account_id: UUID
    state: JobState
    closing: ClosingReason | None
    asked: Mapping[str, Any]
    quote: Mapping[str, Any] | None
    quote_expires_at: Instant | None
    budget_uc: int | None
    hold_id: UUID | None
    tasks: int
    completed: int
    failed: int
    cancelled: int
    deadline_at: Instant | None

    @property
    def life(self) -> JobLife:
        return JobLife(self.state, self.tasks, EndCounts(self.completed, self.failed, self.cancelled), self.closing)


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be made. `expected` is the SHA-256 of its result, where the customer knows it."""

    id: UUID
    body: bytes
    demand: TaskDemand
    cost_max_uc: int
    expected: bytes | None = None


@dataclass(frozen=True)
class JobPlan:
    """What a confirmed job consists of: its tasks, the amount to hold for them, their rank, and the deadlines."""

    tasks: Sequence[NewTask]
    hold_uc: int
    rank: int
    deadline_at: Instant
    hold_until: Instant


@dataclass(frozen=True)
class JobExtension:
    """What is added to a job: time, or a budget that replaces the old one."""

    time_us: int = 0
    budget_uc: int | None = None


class JobHold(NamedTuple):
    """The hold of a job: how much of it is left, and until when."""

    left_uc: int
    expires_at: Instant


@dataclass(frozen=True)
class ExtensionPlan:
    """A new deadline or budget, the hold that replaces one that would end too early, and what is announced."""

    deadline_at: Instant | None
    budget_uc: int | None
    hold: PlannedHold | None
    event: JobExtended


@dataclass(frozen=True)
class CallOffPlan:
    """The job closes, or was never confirmed and is over at once, which is announced."""

    closing: ClosingReason | None
    event: JobEnded | None


def confirm(job: LockedJob, plan: JobPlan, hold_id: UUID, now: Instant) -> PlannedHold | JobRefusal:
    """The hold that a confirmed job needs. With it the tasks are made."""
    if lives.step(job.life, JobHappening.CONFIRMED) is None:
        return JobRefusal.JOB_NOT_QUOTED
    if job.quote_expires_at is None or now >= job.quote_expires_at:
        return JobRefusal.QUOTE_EXPIRED
    return PlannedHold(hold_id, customer_account(job.account_id), plan.hold_uc, plan.hold_until, f"job:{job.id}")


def close(job: LockedJob, why: JobHappening) -> ClosingReason | JobRefusal:
    """Why a confirmed job closes: it starts nothing more."""
    closed = lives.step(job.life, why)
    return JobRefusal.JOB_OVER if closed is None or closed.closing is None else closed.closing


def call_off(job: LockedJob) -> CallOffPlan | JobRefusal:
    """A job is called off: it starts nothing more; an unconfirmed job is over at once."""
    called_off = lives.step(job.life, JobHappening.CALLED_OFF)
    if called_off is None:
        return JobRefusal.JOB_OVER
    if called_off.state is JobState.CANCELLED:
        return CallOffPlan(None, JobEnded(job.account_id, job.id, called_off.state.value, 0, 0, 0, 0))
    return CallOffPlan(called_off.closing, None)


def extend(
    job: LockedJob, more: JobExtension, hold: JobHold | None, new_hold_id: UUID, now: Instant
) -> ExtensionPlan | JobRefusal:
    """Give a confirmed job more time, or an unconfirmed one a larger budget."""
    refusal = _refuse_extension(job, more)
    if refusal is not None:
        return refusal
    if not more.time_us:
        return ExtensionPlan(None, more.budget_uc, None, JobExtended(job.account_id, job.id, None, more.budget_uc))
    assert job.deadline_at is not None, "a confirmed job has a deadline"
    assert hold is not None, "and a hold"
    deadline_at = Instant(job.deadline_at + more.time_us)
    if deadline_at > now + DEADLINE_S[1] * 1_000_000:
        return JobRefusal.DEADLINE_TOO_FAR
    event = JobExtended(job.account_id, job.id, deadline_at, None)
    return ExtensionPlan(deadline_at, None, _longer_hold(job, hold, deadline_at, new_hold_id), event)


def _longer_hold(job: LockedJob, hold: JobHold, deadline_at: Instant, new_id: UUID) -> PlannedHold | None:
    """What is left of the hold, held for longer, if it would end too soon after the deadline."""
    if deadline_at + HELD_AT_LEAST_US <= hold.expires_at or not hold.left_uc:
        return None
    until = Instant(deadline_at + HELD_LONGER_US)
    return PlannedHold(new_id, customer_account(job.account_id), hold.left_uc, until, f"job:{job.id}", job.hold_id)


def _refuse_extension(job: LockedJob, more: JobExtension) -> JobRefusal | None:
    if job.state in ENDED or job.closing is not None:
        return JobRefusal.JOB_OVER
    confirmed = job.state in (JobState.QUEUED, JobState.RUNNING)
    if not more.time_us and more.budget_uc is None:
        return JobRefusal.NOTHING_TO_EXTEND
    if more.time_us and not confirmed:
        return JobRefusal.JOB_NOT_CONFIRMED
    if more.budget_uc is None:
        return None
    if confirmed:
        return JobRefusal.BUDGET_HELD
    return JobRefusal.BUDGET_NOT_LARGER if more.budget_uc <= (job.budget_uc or 0) else None
