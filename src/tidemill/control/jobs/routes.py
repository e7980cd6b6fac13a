"""Jobs: ordered, quoted, confirmed, looked at, called off. One's own, and all of them for operators to look at.

Another account's job is answered as if it did not exist. Only the paying account can order and confirm.
"""

import asyncio
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit, device_of
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.idempotency import IdempotencyPart
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import JobId, OwnerFilter
from tidemill.control.http.statuses import RequestRefusal
from tidemill.control.http.views import API
from tidemill.control.jobs import job_orders, job_waits
from tidemill.control.jobs.job_logs import LogFollower, followed
from tidemill.control.jobs.job_views import (
    AttemptUsePage,
    AttemptUseView,
    JobPage,
    JobView,
    OutputPage,
    OutputPieceView,
    QuoteView,
    ResultPage,
    job_view,
    quote_view,
    result_views,
)
from tidemill.control.jobs.order_bodies import OrderBody
from tidemill.control.terms import work_terms
from tidemill.core.accounts.roles import Caller
from tidemill.core.clock import HOUR, Instant
from tidemill.core.events.log import Cursor
from tidemill.core.jobs.job import ENDED, JobState
from tidemill.core.jobs.plans.job_changes import JobExtension
from tidemill.core.jobs.quotes.order_schema import job_file_schema
from tidemill.core.jobs.quotes.quote import quote_from_json
from tidemill.core.jobs.quotes.tasks import task_count
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.money import micro_credits
from tidemill.store.jobs import abandoned_work, job_views, jobs
from tidemill.store.jobs.job_views import Job
from tidemill.store.operations.idempotent_answers import HttpAnswer
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/marketplace/jobs", tags=["jobs"], route_class=GuardedRoute)

_SWEPT = 10_000
_HOURS_MAX = 1_000_000
"""No deadline is that far away; what a job may get is said in its refusal."""


class JobConfirmation(BaseModel):
    at_most: str | float | int | None = Field(
        None, description="The upper end that you have seen; refused if the quote's is above it."
    )


class Extension(BaseModel):
    hours: float = Field(0, ge=0, le=_HOURS_MAX, description="How much later the deadline is to be.")
    max_budget: str | float | int | None = Field(None, description="A larger budget, before the job is confirmed.")


async def _cursor(
    after: Annotated[str | None, Query(description="A cursor; without one from the beginning.")] = None,
    last_event_id: Annotated[str | None, Header(description="Where a broken stream goes on.")] = None,
) -> Cursor | None:
    text = last_event_id or after
    cursor = Cursor.parse(text) if text else None
    if text and cursor is None:
        raise RouteRefused(RequestRefusal.CURSOR_MALFORMED)
    return cursor


@router.post("", status_code=201, response_model=JobView, responses=documented(400, 404, 409, 413, 422))
async def order(body: OrderBody, control: ControlPart, caller: CallerPart, once: IdempotencyPart) -> Response:
    """Order a job. It is quoted at once, and nothing is paid before it is confirmed."""
    account_id, supply = _account(caller), await control.supply.look(control, control.route_database)
    job_order, asked = job_orders.read_new_order(control, body, supply)
    await job_orders.count_order(control, account_id, task_count(job_order))

    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        quote = await job_orders.price_order(control, transaction, job_order, supply, account_id)
        job = await job_orders.draft(transaction, control, asked, job_order, quote, account_id)
        return await _answer(control, transaction, job, now, status=201)

    async with control.pricing.turn(account_id):
        return await once.answer(effect)


@router.get("", responses=documented(404, 409, 422))
async def list_jobs(
    control: ControlPart,
    caller: CallerPart,
    most: PageLimit,
    owner: OwnerFilter,
    state: Annotated[JobState | None, Query(description="Only those in this state.")] = None,
    after: UUID | None = None,
) -> JobPage:
    """Your jobs, newest first; an operator sees everybody's."""
    whose = owner if caller.is_operator else caller.account_id
    async with control.route_database.connection() as connection:
        page = await job_views.listed(connection, whose, state, after, most + 1)
    items = [job_view(job, control.settings.money, control.clock.now()) for job in page[:most]]
    return JobPage(items=items, has_more=len(page) > most, after=items[-1].id if items else None)


@router.get("/schema")
async def schema() -> dict[str, Any]:
    """The JSON schema of job files: editors complete and check them by it."""
    return job_file_schema()


@router.get("/{job_id}", responses=documented(404, 422))
async def show(job_id: JobId, control: ControlPart, caller: CallerPart) -> JobView:
    """One job: where it is, what it waits for, what it costs and what it has cost."""
    job, stopped = await _readable(control, caller, job_id), await _stopped(control)
    waits_for = await job_waits.waits_for(control, job, stopped)
    money, now = control.settings.money, control.clock.now()
    return job_view(job, money, now, stopped_placement=stopped, waits_for=waits_for)


@router.get("/{job_id}/quote", responses=documented(404, 409, 422))
async def show_quote(job_id: JobId, control: ControlPart, caller: CallerPart) -> QuoteView:
    """What a job costs, and why. A quote that has expired is made anew, at today's prices."""
    job, now = await _readable(control, caller, job_id), control.clock.now()
    assert job.quote is not None, "a job is quoted when it is made"
    assert job.quote_expires_at is not None
    quote = quote_from_json(job.quote)
    if job.state is JobState.QUOTED and now >= job.quote_expires_at:
        quote = await job_orders.requote(control, job)
    return quote_view(quote, job.budget_uc, control.settings.money, await _stopped(control))


@router.post("/{job_id}/confirm", response_model=JobView, responses=documented(400, 402, 404, 409, 413, 422))
async def confirm(
    job_id: JobId,
    control: ControlPart,
    caller: CallerPart,
    once: IdempotencyPart,
    confirmation: JobConfirmation | None = None,
) -> Response:
    """Confirm a quote: its upper end is held, and the job's tasks wait for nodes."""
    at_most = confirmation.at_most if confirmation else None
    at_most_uc = None if at_most is None else unless_refused(micro_credits(at_most))

    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        job = await job_orders.confirm(transaction, control, caller, job_id, at_most_uc, now)
        return await _answer(control, transaction, job, now)

    async with control.pricing.turn(_account(caller)):
        return await once.answer(effect)


@router.get(
    "/{job_id}/logs",
    response_model=OutputPage,
    responses={
        200: {
            "description": "A page, or a stream of server-sent events if `text/event-stream` is asked for.",
            "content": {"text/event-stream": {}},
        },
        **documented(400, 404, 422),
    },
)
async def logs(
    job_id: JobId,
    request: Request,
    control: ControlPart,
    caller: CallerPart,
    most: PageLimit,
    cursor: Annotated[Cursor | None, Depends(_cursor)],
) -> Response | OutputPage:
    """What the tasks of a job print: a page (the default), or followed (`Accept: text/event-stream`)."""
    await _readable(control, caller, job_id)
    if "text/event-stream" in request.headers.get("accept", ""):
        follower = LogFollower(caller, device_of(request), job_id, cursor)
        return followed(control, follower)
    async with control.route_database.connection() as connection:
        page = await job_views.output_pieces(connection, job_id, cursor, most + 1)
    items = [OutputPieceView.model_validate(piece) for piece in page[:most]]
    return OutputPage(items=items, has_more=len(page) > most, after=items[-1].cursor if items else str(cursor or ""))


@router.get("/{job_id}/resources", responses=documented(404, 422))
async def resources(
    job_id: JobId, control: ControlPart, caller: CallerPart, most: PageLimit, after: UUID | None = None
) -> AttemptUsePage:
    """The attempts of a job: which nodes have or had its tasks, for how long, and what they were paid."""
    await _readable(control, caller, job_id)
    async with control.route_database.connection() as connection:
        page = await job_views.attempt_uses(connection, job_id, after, most + 1)
    items = [AttemptUseView.model_validate(attempt) for attempt in page[:most]]
    return AttemptUsePage(items=items, has_more=len(page) > most, after=items[-1].attempt_id if items else None)


@router.get("/{job_id}/result", responses=documented(404, 409, 422))
async def result(
    job_id: JobId,
    control: ControlPart,
    caller: CallerPart,
    most: PageLimit,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1, description="The number of a task; -1 begins.")] = -1,
) -> ResultPage:
    """What came of each task of a job that is over, also of one that was cut short."""
    job = await _readable(control, caller, job_id)
    if job.state not in ENDED:
        raise RouteRefused(JobRefusal.RESULT_NOT_READY)
    async with control.route_database.connection() as connection:
        page = await job_views.results(connection, job_id, after, most + 1)
    items = await asyncio.to_thread(result_views, job, page[:most], control.verification)
    return ResultPage(items=items, has_more=len(page) > most, after=items[-1].task if items else None)


@router.post("/{job_id}/cancel", response_model=JobView, responses=documented(400, 404, 409, 413, 422))
async def cancel(job_id: JobId, control: ControlPart, caller: CallerPart, once: IdempotencyPart) -> Response:
    """Call a job off: it starts nothing more. What was delivered is judged and paid, and the rest goes back."""

    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        unless_refused(await jobs.call_off(transaction, job_id, _whose(caller), control.ids, now))
        return await _answer(control, transaction, await _changed(transaction, job_id), now)

    answer = await once.answer(effect)
    await _sweep(control)
    return answer


@router.post("/{job_id}/extend", response_model=JobView, responses=documented(400, 404, 409, 413, 422))
async def extend(
    job_id: JobId, extension: Extension, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """More time for a job that was confirmed, or a larger budget for one that was not."""
    budget = extension.max_budget
    budget_uc = None if budget is None else unless_refused(micro_credits(budget))
    more = JobExtension(int(extension.hours * HOUR), budget_uc, control.settings.money.currency)

    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        await job_orders.refuse_while_stopped(transaction)
        unless_refused(await jobs.extend(transaction, job_id, _whose(caller), more, control.ids, now))
        return await _answer(control, transaction, await _changed(transaction, job_id), now)

    return await once.answer(effect)


async def _sweep(control: Control) -> None:
    """End the open tasks of closed jobs at once. Tasks that are being placed right now are left to the loop."""
    await abandoned_work.sweep(
        control.route_database, _SWEPT, work_terms(control.settings), control.ids, control.clock.now()
    )


async def _readable(control: Control, caller: Caller, job_id: UUID) -> Job:
    async with control.route_database.connection() as connection:
        job = await job_views.get(connection, job_id, _whose(caller))
    return unless_refused(job or JobRefusal.UNKNOWN_JOB)


async def _changed(transaction: Connection, job_id: UUID) -> Job:
    """A job that this transaction has changed, with its tasks counted."""
    job = await job_views.get(transaction, job_id, None)
    assert job, "it is there"
    return job


async def _stopped(control: Control) -> str | None:
    async with control.route_database.connection() as connection:
        return await job_waits.stopped_placement(connection)


async def _answer(
    control: Control, transaction: Connection, job: Job, now: Instant, *, status: int = 200
) -> HttpAnswer:
    stopped = await job_waits.stopped_placement(transaction)
    waits_for = stopped if job.waiting else None
    view = job_view(job, control.settings.money, now, stopped_placement=stopped, waits_for=waits_for)
    return HttpAnswer(status, view.model_dump_json().encode())


def _whose(caller: Caller) -> UUID | None:
    """The account whose jobs a caller may read and call off; None is everybody's, for operators."""
    return None if caller.is_operator else caller.account_id


def _account(caller: Caller) -> UUID:
    assert caller.account_id, "the guard lets in only callers with an account"
    return caller.account_id
