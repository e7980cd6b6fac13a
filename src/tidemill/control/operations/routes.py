"""The operator's routes: the kill switches, the control processes of the pool, and changes of critical settings."""

from typing import Literal
from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from tidemill.control.context import CallerPart, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.idempotency import IdempotencyPart
from tidemill.control.http.problems import documented, unless_refused, unless_too_new
from tidemill.control.http.views import API, OperatorReason, Timestamp, View
from tidemill.core.clock import Instant
from tidemill.core.operations.switches import Switch
from tidemill.core.operations.switches import effect as switch_effect
from tidemill.core.settings.critical import SettingChangeState
from tidemill.store.accounts import operator_words
from tidemill.store.operations import critical_settings, processes, switches
from tidemill.store.operations.idempotent_answers import HttpAnswer
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/admin", tags=["admin"], route_class=GuardedRoute)


class SwitchView(View):
    name: Switch = Field(validation_alias="switch")
    stopped: bool
    reason: str
    changed_by: str
    changed_at: Timestamp | None
    effect: str = Field("", description="After a change: what stands now, and what goes on.")


class SwitchList(BaseModel):
    items: list[SwitchView]


class ProcessView(View):
    id: UUID
    host: str
    pid: int
    version: str
    settings: str = Field(description="Fingerprint of the pool's settings; it must be the same in all processes.")
    started_at: Timestamp
    seen_at: Timestamp
    state: Literal["running", "stopped", "lost"]


class ProcessPage(BaseModel):
    items: list[ProcessView]
    has_more: bool
    after: UUID | None


class SettingChangeView(View):
    name: str
    value: str
    state: SettingChangeState
    proposed_by: str = Field(description="Who started the process that brought it in.")
    proposed_at: Timestamp
    vouched_by: str | None = Field(description="The first operator who approved it.")
    decided_by: str | None
    decided_at: Timestamp | None
    reason: str | None


@router.get("/switches", responses=documented(401, 403))
async def list_switches(control: ControlPart) -> SwitchList:
    """How every switch stands."""
    async with control.route_database.connection() as connection:
        states = await switches.states(connection)
    return SwitchList(items=[SwitchView.model_validate(state) for state in states.values()])


@router.post("/switches/{name}/stop", response_model=SwitchView, responses=documented(400, 401, 403, 409, 413, 422))
async def stop(
    name: Switch, reason: OperatorReason, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Stop a part of the pool."""
    return await _throw(control, once, caller.name, name, stop=True, reason=reason.reason)


@router.post("/switches/{name}/start", response_model=SwitchView, responses=documented(400, 401, 403, 409, 413, 422))
async def start(
    name: Switch, reason: OperatorReason, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Start a part of the pool again."""
    return await _throw(control, once, caller.name, name, stop=False, reason=reason.reason)


@router.get("/processes", responses=documented(401, 403, 422))
async def list_processes(control: ControlPart, most: PageLimit, after: UUID | None = None) -> ProcessPage:
    """The control processes of the pool, newest first."""
    page = await processes.listed(control.route_database, after, most + 1)
    items = [ProcessView.model_validate(process) for process in page[:most]]
    return ProcessPage(items=items, has_more=len(page) > most, after=items[-1].id if items else None)


@router.post(
    "/settings/{name}/approve",
    response_model=SettingChangeView,
    responses=documented(400, 401, 403, 404, 409, 413, 422),
)
async def approve_setting(
    name: str, reason: OperatorReason, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Approve a change of a critical setting. With a second operator's approval it takes effect at the next start."""
    return await _settle_setting(control, once, caller.name, name, approve=True, reason=reason.reason)


@router.post(
    "/settings/{name}/reject",
    response_model=SettingChangeView,
    responses=documented(400, 401, 403, 404, 409, 413, 422),
)
async def reject_setting(
    name: str, reason: OperatorReason, control: ControlPart, caller: CallerPart, once: IdempotencyPart
) -> Response:
    """Reject a change of a critical setting: it never takes effect, however long it is configured."""
    return await _settle_setting(control, once, caller.name, name, approve=False, reason=reason.reason)


async def _settle_setting(
    control: ControlPart, once: IdempotencyPart, by: str, name: str, *, approve: bool, reason: str
) -> Response:
    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        word = await operator_words.read(transaction, by, control.settings.trail)
        change = await critical_settings.settle_change(
            transaction, name, approve=approve, reason=reason, word=word, ids=control.ids, now=now
        )
        return HttpAnswer(
            200, SettingChangeView.model_validate(unless_too_new(change, word)).model_dump_json().encode()
        )

    return await once.answer(effect)


async def _throw(
    control: ControlPart, once: IdempotencyPart, by: str, switch: Switch, *, stop: bool, reason: str
) -> Response:
    async def effect(transaction: Connection, now: Instant) -> HttpAnswer:
        state = await switches.set_switch(
            transaction, switch, stop=stop, reason=reason, by=by, ids=control.ids, now=now
        )
        thrown = unless_refused(state)
        states = (await switches.states(transaction)).values()
        view = SwitchView.model_validate(thrown).model_copy(update={"effect": switch_effect(thrown, states)})
        return HttpAnswer(200, view.model_dump_json().encode())

    return await once.answer(effect)
