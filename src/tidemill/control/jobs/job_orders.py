"""From a customer's order to a confirmed job: parse it, quote it, hold the money, divide it into tasks.

A budget below the quote's upper end is refused when the job is confirmed: the upper end is all that the job can cost,
so a confirmed job never runs out of its budget half way, and nobody pays for half of a result. A key's spending counts
at the upper end, since its cap must hold in the worst case.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from tidemill.control.context import Control
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.control.terms import work_terms
from tidemill.core.accounts.roles import Caller
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.events import JobConfirmed, JobQuoted
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Input, Priority
from tidemill.core.jobs.plans.job_changes import HELD_LONGER_US, JobPlan, LockedJob, NewTask
from tidemill.core.jobs.quotes import Order, Quote, parse_order, quote, tasks_of
from tidemill.core.jobs.quotes.order import DEADLINE_S
from tidemill.core.jobs.quotes.quote import quote_from_json, quote_json, rules_of
from tidemill.core.jobs.quotes.tasks import OrderPart, TaskPlan, divide
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.ledger import AccountKind, LedgerAccount
from tidemill.core.placement.supply import Supply
from tidemill.store.accounts import api_keys
from tidemill.store.artefacts import artefacts
from tidemill.store.events import events
from tidemill.store.jobs import jobs
from tidemill.store.jobs.job_views import Job
from tidemill.store.jobs.jobs import Draft
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection

T = TypeVar("T")

RANKS = {Priority.HIGH: 0, Priority.NORMAL: 1, Priority.LOW: 2}


@dataclass(frozen=True)
class PricedOrder:
    """An order with its tasks and its price."""

    order: Order
    parts: Sequence[OrderPart]
    quote: Quote


def read_order(body: Mapping[str, Any], tasks_max: int) -> Order:
    """Parse the order in a body; raises a refusal if something is wrong with it."""
    return _unless_objected(parse_order(body, tasks_max))


async def price_order(
    control: Control, connection: Connection, order: Order, supply: Supply, account_id: UUID
) -> PricedOrder:
    """What an order costs now. Comparing many nodes takes a moment, so a thread does it while others are served.

    The caller has read the supply before it took a connection: waiting for a second connection while keeping a first
    could last for ever.
    """
    parts, now = await _parts(connection, order, account_id), control.clock.now()
    settings = control.settings
    rules = rules_of(work_terms(settings).plan, settings.money, settings.market, settings.jobs)
    new_quote = await asyncio.to_thread(quote, order, parts, supply, rules, account_id, now)
    if parts:
        _tasks(control, order, parts, new_quote)  # refuse at once what does not fit
    return PricedOrder(order, parts, new_quote)


async def draft(
    transaction: Connection, control: Control, body: Mapping[str, Any], priced: PricedOrder, account_id: UUID
) -> UUID:
    """Keep a new job with its quote."""
    now, most = control.clock.now(), control.settings.market.unconfirmed_max
    unless_refused(await jobs.room_for_another(transaction, account_id, most, now))
    job_id = control.ids.new(now)
    order = priced.order
    await jobs.make(transaction, Draft(job_id, account_id, order.kind, body, order.budget_uc), now)
    await keep_quote(transaction, control, account_id, job_id, priced.quote, now)
    return job_id


async def requote(control: Control, job: Job) -> Quote:
    """The price of a job whose quote has expired, from now on."""
    order = read_order(job.asked, control.settings.market.tasks_max)
    supply = await control.supply.look(control, control.route_database)
    async with control.route_database.transaction() as transaction:
        priced = await price_order(control, transaction, order, supply, job.account_id)
        await keep_quote(transaction, control, job.account_id, job.id, priced.quote, control.clock.now())
    return priced.quote


async def keep_quote(
    transaction: Connection, control: Control, account_id: UUID, job_id: UUID, quote: Quote, now: Instant
) -> None:
    """Store the quote of a job."""
    if not await jobs.set_quote(transaction, job_id, quote_json(quote), quote.expires_at):
        raise RouteRefused(JobRefusal.JOB_NOT_QUOTED)
    quoted = JobQuoted(account_id, job_id, quote.kind, quote.tasks, quote.low_uc, quote.high_uc)
    await events.append(transaction, [quoted], control.ids, now)


async def confirm(
    transaction: Connection, control: Control, caller: Caller, job_id: UUID, at_most_uc: int | None, now: Instant
) -> None:
    """Hold the upper end and make the tasks. If that raises a refusal, nothing has changed."""
    job = unless_refused(await jobs.lock(transaction, job_id, caller.account_id))
    quote = _confirmable(job, at_most_uc, now)
    order = read_order(job.asked, control.settings.market.tasks_max)
    parts = await _parts(transaction, order, job.account_id)
    new = _new_tasks(control, order, parts, quote, now)
    await _use_inputs(transaction, order, new)
    await _count_spending(transaction, caller, quote.high_uc)
    customer = LedgerAccount(AccountKind.CUSTOMER, job.account_id)
    await ledger.open_accounts(transaction, [customer], now)
    plan = _plan(control, order, quote, new, now)
    refusal = await jobs.confirm(transaction, job_id, plan, control.ids, now)
    if refusal is not None:
        raise RouteRefused(refusal)
    confirmed = JobConfirmed(job.account_id, job_id, len(new), plan.hold_uc, plan.deadline_at)
    await events.append(transaction, [confirmed], control.ids, now)


def why_not(quote: Quote, budget_uc: int | None) -> JobRefusal | None:
    """Why a quote that has not expired cannot be confirmed."""
    if not quote.has_runner:
        return JobRefusal.NO_RUNNER
    if budget_uc is not None and quote.high_uc > budget_uc:
        return JobRefusal.BUDGET_TOO_SMALL
    return None


def _confirmable(job: LockedJob, at_most_uc: int | None, now: Instant) -> Quote:
    if job.state is not JobState.QUOTED:
        raise RouteRefused(JobRefusal.JOB_NOT_QUOTED)
    assert job.quote is not None, "a quoted job has a quote"
    assert job.quote_expires_at is not None, "which ends"
    quote = quote_from_json(job.quote)
    if refusal := why_not(quote, job.budget_uc):
        raise RouteRefused(refusal)
    if now >= job.quote_expires_at:
        raise RouteRefused(JobRefusal.QUOTE_EXPIRED)
    if at_most_uc is not None and quote.high_uc > at_most_uc:
        raise RouteRefused(JobRefusal.PRICE_ABOVE_CONFIRMED)
    return quote


async def _parts(connection: Connection, order: Order, account_id: UUID) -> Sequence[OrderPart]:
    """The parts of an order, with its inputs. An artefact of another account counts as unknown."""
    if not order.has_runner:
        return ()
    inputs = []
    for name, artefact_id in order.inputs:
        artefact = await artefacts.get(connection, artefact_id)
        if artefact is None or artefact.account_id != account_id:
            raise RouteRefused(ArtefactRefusal.UNKNOWN_ARTEFACT)
        inputs.append(Input(name, artefact.digest, artefact.size_bytes))
    return _unless_objected(divide(order, inputs))


def _new_tasks(control: Control, order: Order, parts: Sequence[OrderPart], quote: Quote, now: Instant) -> list[NewTask]:
    if len(parts) != len(quote.costs_max_uc):
        raise RouteRefused(JobRefusal.QUOTE_EXPIRED)  # the pool divides work in another way by now
    plans = _tasks(control, order, parts, quote)
    return [NewTask(control.ids.new(now), plan.body, plan.demand, plan.cost_max_uc, plan.expected) for plan in plans]


def _tasks(control: Control, order: Order, parts: Sequence[OrderPart], quote: Quote) -> Sequence[TaskPlan]:
    verification, containers = control.verification.public, control.settings.containers
    return _unless_objected(tasks_of(order, parts, quote.costs_max_uc, quote.limit_s, verification, containers))


async def _use_inputs(transaction: Connection, order: Order, new: Sequence[NewTask]) -> None:
    """Mark the inputs as used, so that nobody deletes them. Refused if one was deleted just now."""
    inputs = {artefact_id for _, artefact_id in order.inputs}
    needs = [(task.id, artefact_id) for task in new for artefact_id in sorted(inputs)]
    if needs and set(await artefacts.use(transaction, needs)) != inputs:
        raise RouteRefused(ArtefactRefusal.UNKNOWN_ARTEFACT)


async def _count_spending(transaction: Connection, caller: Caller, amount_uc: int) -> None:
    if caller.key_id is not None and (refusal := await api_keys.spend(transaction, caller.key_id, amount_uc)):
        raise RouteRefused(refusal)


def _plan(control: Control, order: Order, quote: Quote, new: Sequence[NewTask], now: Instant) -> JobPlan:
    settings = control.settings
    work_s = quote.hours_high * 3600 * settings.jobs.deadline_factor
    usual_s = min(DEADLINE_S[1], max(settings.market.deadline_s, work_s))
    deadline_at = Instant(now + int((order.deadline_s or usual_s) * SECOND))
    hold_until = Instant(deadline_at + HELD_LONGER_US)
    return JobPlan(new, sum(task.cost_max_uc for task in new), RANKS[order.priority], deadline_at, hold_until)


def _unless_objected(answer: T | TaskObjection) -> T:
    """The answer of core, unless it is an objection. A refusal carries the objection's own sentence."""
    if isinstance(answer, TaskObjection):
        raise RouteRefused(answer.refusal, sentence=answer.sentence)
    return answer
