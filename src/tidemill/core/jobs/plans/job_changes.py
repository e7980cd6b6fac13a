"""What a customer does to a job: confirm it, call it off, give it more time or a larger budget; and how it closes.

Each function takes the job as it was locked, and answers with what changes, or with a refusal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.artefacts.artefact import Artefact
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.currency import CREDIT
from tidemill.core.ids import Ids
from tidemill.core.jobs import job as lives
from tidemill.core.jobs import shortfalls
from tidemill.core.jobs.events import JobConfirmed, JobEnded, JobExtended
from tidemill.core.jobs.job import ENDED, ClosingReason, EndCounts, JobHappening, JobLife, JobState
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Priority
from tidemill.core.jobs.quotes.order import Order, parse_order
from tidemill.core.jobs.quotes.order_fields import DEADLINE_S
from tidemill.core.jobs.quotes.quote import Quote, quote_from_json
from tidemill.core.jobs.quotes.tasks import OrderTerms, TaskPlan, divide, inputs_of, tasks_of
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.money import AmountObjection
from tidemill.core.placement.task_demand import TaskDemand
from tidemill.core.settings.sections.market import MarketSettings
from tidemill.core.settlement.obligations import PlannedHold
from tidemill.core.settlement.rewards import customer_account

RANKS = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}

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
    def input_ids(self) -> Sequence[UUID]:
        """The artefacts that were ordered as inputs."""
        return [UUID(artefact_id) for artefact_id in self.asked.get("inputs", {}).values()]

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
    """What a confirmed job consists of: its tasks with their rank and deadline, and the money that is held for them.

    `uses` are pairs of a task and an artefact that it reads.
    """

    job_id: UUID
    account_id: UUID
    tasks: Sequence[NewTask]
    rank: int
    deadline_at: Instant
    hold: PlannedHold
    uses: Sequence[tuple[UUID, UUID]] = ()

    @property
    def event(self) -> JobConfirmed:
        return JobConfirmed(self.account_id, self.job_id, len(self.tasks), self.hold.amount_uc, self.deadline_at)


@dataclass(frozen=True)
class JobExtension:
    """What is added to a job: time, or a budget that replaces the old one."""

    time_us: int = 0
    budget_uc: int | None = None
    currency: str = CREDIT


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


def refused_draft(unconfirmed: int, size_bytes: int, market: MarketSettings) -> JobRefusal | None:
    """Whether an account that never confirmed so many jobs, which take so many bytes, may order another."""
    if unconfirmed >= market.unconfirmed_max:
        return JobRefusal.TOO_MANY_UNCONFIRMED
    return JobRefusal.UNCONFIRMED_TOO_LARGE if size_bytes >= market.unconfirmed_max_bytes else None


def confirm(
    job: LockedJob,
    artefacts: Mapping[UUID, Artefact],
    at_most_uc: int | None,
    terms: OrderTerms,
    ids: Ids,
    now: Instant,
) -> JobPlan | JobRefusal | AmountObjection | ArtefactRefusal | TaskObjection:
    """What a job becomes when its customer confirms the quote: the tasks, and a hold of the quote's upper end.

    `artefacts` are those of the order's inputs that the customer still has.
    """
    quote = _confirmed_quote(job, at_most_uc, terms.currency, now)
    if isinstance(quote, JobRefusal | AmountObjection):
        return quote
    order = parse_order(job.asked, terms.market.tasks_max)
    if isinstance(order, TaskObjection):
        return order
    tasks = _task_plans(order, artefacts, quote, terms)
    if isinstance(tasks, JobRefusal | ArtefactRefusal | TaskObjection):
        return tasks
    new = [NewTask(ids.new(now), task.body, task.demand, task.cost_max_uc, task.expected) for task in tasks]
    deadline_at = _deadline(order, quote, terms, now)
    held_until = Instant(deadline_at + HELD_LONGER_US)
    amount_uc = sum(task.cost_max_uc for task in new)
    hold = PlannedHold(ids.new(now), customer_account(job.account_id), amount_uc, held_until, f"job:{job.id}")
    uses = [(task.id, artefact_id) for task in new for artefact_id in sorted(artefacts)]
    return JobPlan(job.id, job.account_id, new, RANKS[order.priority], deadline_at, hold, uses)


def why_not(quote: Quote, budget_uc: int | None, currency: str) -> JobRefusal | AmountObjection | None:
    """Why a quote that has not expired cannot be confirmed.

    What nobody could ever check would run, and its log be read, for nothing. The upper end is all that the job can
    cost: so a confirmed job never runs out of its budget half way, and nobody pays for half of a result.
    """
    if not quote.has_runner:
        return JobRefusal.NO_RUNNER
    if not quote.is_checkable:
        return JobRefusal.UNCHECKABLE
    if budget_uc is not None and quote.high_uc > budget_uc:
        return shortfalls.over_budget(quote.high_uc, budget_uc, currency)
    return None


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
) -> ExtensionPlan | JobRefusal | AmountObjection:
    """Give a confirmed job more time, or an unconfirmed one a larger budget."""
    refusal = _refuse_extension(job, more)
    if refusal is not None:
        return refusal
    if not more.time_us:
        return ExtensionPlan(None, more.budget_uc, None, JobExtended(job.account_id, job.id, None, more.budget_uc))
    assert job.deadline_at is not None, "a confirmed job has a deadline"
    assert hold is not None, "and a hold"
    deadline_at = Instant(job.deadline_at + more.time_us)
    if deadline_at > now + DEADLINE_S[1] * SECOND:
        return shortfalls.deadline_too_far(deadline_at - now, DEADLINE_S[1] * SECOND)
    event = JobExtended(job.account_id, job.id, deadline_at, None)
    return ExtensionPlan(deadline_at, None, _longer_hold(job, hold, deadline_at, new_hold_id), event)


def _confirmed_quote(
    job: LockedJob, at_most_uc: int | None, currency: str, now: Instant
) -> Quote | JobRefusal | AmountObjection:
    """The quote of a job, if it can be confirmed at that price."""
    if lives.step(job.life, JobHappening.CONFIRMED) is None:
        return JobRefusal.JOB_NOT_QUOTED
    assert job.quote is not None, "a quoted job has a quote"
    assert job.quote_expires_at is not None, "which ends"
    quote = quote_from_json(job.quote)
    if refusal := why_not(quote, job.budget_uc, currency):
        return refusal
    if now >= job.quote_expires_at:
        return JobRefusal.QUOTE_EXPIRED
    if at_most_uc is not None and quote.high_uc > at_most_uc:
        return shortfalls.price_rose(quote.high_uc, at_most_uc, currency)
    return quote


def _task_plans(
    order: Order, artefacts: Mapping[UUID, Artefact], quote: Quote, terms: OrderTerms
) -> Sequence[TaskPlan] | JobRefusal | ArtefactRefusal | TaskObjection:
    inputs = inputs_of(order, artefacts)
    parts = inputs if isinstance(inputs, ArtefactRefusal) else divide(order, inputs)
    if isinstance(parts, ArtefactRefusal | TaskObjection):
        return parts
    if len(parts) != len(quote.costs_max_uc):
        return JobRefusal.QUOTE_EXPIRED  # the pool divides work in another way by now
    return tasks_of(order, parts, quote.costs_max_uc, quote.limit_s, terms.verification, terms.containers)


def _deadline(order: Order, quote: Quote, terms: OrderTerms, now: Instant) -> Instant:
    work_s = quote.hours_high * 3600 * terms.jobs.deadline_factor
    usual_s = min(DEADLINE_S[1], max(terms.market.deadline_s, work_s))
    return Instant(now + int((order.deadline_s or usual_s) * SECOND))


def _longer_hold(job: LockedJob, hold: JobHold, deadline_at: Instant, new_id: UUID) -> PlannedHold | None:
    """What is left of the hold, held for longer, if it would end too soon after the deadline."""
    if deadline_at + HELD_AT_LEAST_US <= hold.expires_at or not hold.left_uc:
        return None
    until = Instant(deadline_at + HELD_LONGER_US)
    return PlannedHold(new_id, customer_account(job.account_id), hold.left_uc, until, f"job:{job.id}", job.hold_id)


def _refuse_extension(job: LockedJob, more: JobExtension) -> JobRefusal | AmountObjection | None:
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
    before_uc = job.budget_uc or 0
    return (
        shortfalls.budget_not_larger(more.budget_uc, before_uc, more.currency) if more.budget_uc <= before_uc else None
    )
