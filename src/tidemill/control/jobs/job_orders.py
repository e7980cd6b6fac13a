"""From a customer's order to a confirmed job: price it, keep its quote, confirm it. Core reads, divides and decides.

A key's spending counts at the quote's upper end, since its cap must hold in the worst case.
"""

import asyncio
from collections.abc import Mapping
from math import ceil
from typing import Any
from uuid import UUID

from tidemill.control.context import Control
from tidemill.control.http.guard import limited
from tidemill.control.http.problems import RouteRefused, unless_refused
from tidemill.control.http.statuses import RequestRefusal
from tidemill.control.terms import work_terms
from tidemill.core.accounts.roles import Caller
from tidemill.core.clock import Instant
from tidemill.core.jobs.events import JobQuoted
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.plans import job_changes
from tidemill.core.jobs.quotes import Order, Quote, parse_order, quote, tasks_of
from tidemill.core.jobs.quotes.known_names import KnownNames, unknown_names, with_whole_ids
from tidemill.core.jobs.quotes.quote import quote_json, rules_of
from tidemill.core.jobs.quotes.tasks import OrderTerms, divide, inputs_of, task_count
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.jobs.shortfalls import balance_short, cap_reached
from tidemill.core.ledger import PostingRefusal
from tidemill.core.operations.switches import SwitchRefusal, refused_order
from tidemill.core.placement.supply import Supply
from tidemill.store.accounts import api_keys
from tidemill.store.artefacts import artefacts
from tidemill.store.events import events
from tidemill.store.jobs import jobs
from tidemill.store.jobs.job_views import Job
from tidemill.store.jobs.jobs import Draft
from tidemill.store.ledger import ledger
from tidemill.store.operations import switches
from tidemill.store.query import Connection

COUNTED_TASKS = 100
"""So many tasks of an order take about as long to price as comparing a thousand nodes does."""


_ASK_AGAIN_S = 60


def read_order(body: Mapping[str, Any], tasks_max: int) -> Order:
    """Parse the order in a body; raises a refusal if something is wrong with it."""
    return unless_refused(parse_order(body, tasks_max))


async def refuse_while_stopped(connection: Connection) -> None:
    """Refuse an order, a quote, a confirmation or an extension while an operator has stopped orders."""
    if sentence := refused_order((await switches.states(connection)).values()):
        raise RouteRefused(SwitchRefusal.ORDERS_STOPPED, _ASK_AGAIN_S, sentence=sentence)


def read_new_order(control: Control, body: Mapping[str, Any], supply: Supply) -> tuple[Order, Mapping[str, Any]]:
    """Parse a new order, and compare what it names with what there is. Returns it with its body, ids written out."""
    body = with_whole_ids(body, supply.sellers)
    order = read_order(body, control.settings.market.tasks_max)
    unless_refused(unknown_names(order, KnownNames.of(supply.sellers, control.policies)))
    return order, body


async def count_order(control: Control, account_id: UUID, tasks: int) -> None:
    """Count an order in its account's limit: once for each hundred tasks begun, since each costs time to divide."""
    cost = ceil(tasks / COUNTED_TASKS)
    await limited(
        control, control.limits.orders, str(account_id), cost=max(1, cost), refusal=RequestRefusal.TOO_MANY_ORDERS
    )


async def price_order(
    control: Control, connection: Connection, order: Order, supply: Supply, account_id: UUID
) -> Quote:
    """What an order costs now. Dividing it and comparing many nodes takes a moment, so a thread does it while others
    are served.

    The caller has read the supply before it took a connection: waiting for a second connection while keeping a first
    could last for ever.
    """
    await refuse_while_stopped(connection)
    settings, now = control.settings, control.clock.now()
    rules = rules_of(work_terms(settings).plan, settings.money, settings.market, settings.jobs, settings.containers)
    if not order.has_runner:
        return await asyncio.to_thread(quote, order, (), supply, rules, account_id, now)
    own = await artefacts.own(connection, [artefact_id for _, artefact_id in order.inputs], account_id)
    inputs, terms = unless_refused(inputs_of(order, own)), _terms(control)

    def price() -> Quote | TaskObjection:
        parts = divide(order, inputs)
        if isinstance(parts, TaskObjection):
            return parts
        new_quote = quote(order, parts, supply, rules, account_id, now)
        costs_uc, limit_s = new_quote.costs_max_uc, new_quote.limit_s
        tasks = tasks_of(order, parts, costs_uc, limit_s, terms.verification, terms.containers)
        return tasks if isinstance(tasks, TaskObjection) else new_quote

    return unless_refused(await asyncio.to_thread(price))


async def draft(
    transaction: Connection, control: Control, body: Mapping[str, Any], order: Order, quote: Quote, account_id: UUID
) -> Job:
    """Keep a new job with its quote."""
    now = control.clock.now()
    unless_refused(await jobs.room_for_another(transaction, account_id, control.settings.market))
    job_id = control.ids.new(now)
    await jobs.make(transaction, Draft(job_id, account_id, order.kind, body, order.budget_uc), now)
    return await keep_quote(transaction, control, job_id, quote, now)


async def requote(control: Control, job: Job) -> Quote:
    """The price of a job whose quote has expired, from now on."""
    order = read_order(job.asked, control.settings.market.tasks_max)
    await count_order(control, job.account_id, task_count(order))
    supply = await control.supply.look(control, control.route_database)
    async with control.pricing.turn(job.account_id), control.route_database.transaction() as transaction:
        new_quote = await price_order(control, transaction, order, supply, job.account_id)
        await keep_quote(transaction, control, job.id, new_quote, control.clock.now())
    return new_quote


async def keep_quote(transaction: Connection, control: Control, job_id: UUID, quote: Quote, now: Instant) -> Job:
    """Store the quote of a job."""
    kept = await jobs.set_quote(transaction, job_id, quote_json(quote), quote.expires_at)
    job = unless_refused(kept or JobRefusal.JOB_NOT_QUOTED)
    quoted = JobQuoted(job.account_id, job_id, quote.kind, quote.tasks, quote.low_uc, quote.high_uc)
    await events.append(transaction, [quoted], control.ids, now)
    return job


async def confirm(
    transaction: Connection, control: Control, caller: Caller, job_id: UUID, at_most_uc: int | None, now: Instant
) -> Job:
    """Hold the upper end and make the tasks. If that raises a refusal, nothing has changed."""
    await refuse_while_stopped(transaction)
    job = unless_refused(await jobs.lock(transaction, job_id, caller.account_id))
    await count_order(control, job.account_id, int((job.quote or {}).get("tasks", 1)))
    own = await artefacts.own(transaction, job.input_ids, job.account_id)
    plan = unless_refused(job_changes.confirm(job, own, at_most_uc, _terms(control), control.ids, now))
    if caller.key_id is not None:
        await _spend(transaction, control, caller.key_id, plan.hold.amount_uc)
    confirmed = await jobs.confirm(transaction, plan, control.ids, now)
    if confirmed is PostingRefusal.INSUFFICIENT_FUNDS:
        available_uc = await ledger.available_uc(transaction, plan.hold.payer)
        return unless_refused(balance_short(plan.hold.amount_uc, available_uc, control.settings.money.currency))
    return unless_refused(confirmed)


async def _spend(transaction: Connection, control: Control, key_id: UUID, amount_uc: int) -> None:
    """Count what a key buys; refused with the amounts if its cap is reached."""
    if await api_keys.spend(transaction, key_id, amount_uc) is None:
        return
    cap_uc, spent_uc = await api_keys.spending(transaction, key_id)
    unless_refused(cap_reached(amount_uc, cap_uc, spent_uc, control.settings.money.currency))


def _terms(control: Control) -> OrderTerms:
    settings = control.settings
    return OrderTerms(
        settings.market, settings.jobs, settings.containers, control.verification.public, settings.money.currency
    )
