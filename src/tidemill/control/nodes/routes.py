"""Nodes: one's own, and all of them for operators. Another owner's node is answered as if it did not exist."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Body, Depends, Query
from pydantic import BaseModel, Field

from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit
from tidemill.control.events.routes import EventView
from tidemill.control.http.exact_numbers import ExactRoute
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import NodeId, OwnerFilter
from tidemill.control.http.statuses import RequestRefusal
from tidemill.control.http.views import API, OperatorReason
from tidemill.control.nodes.node_views import NodeDetailView, NodePage, detail, summaries
from tidemill.core.accounts.roles import Caller
from tidemill.core.events.log import Cursor
from tidemill.core.nodes.node import NAME_MAX, Node, NodeRefusal, checked_name
from tidemill.core.reasons import REASON_MAX
from tidemill.core.refusals import Refusal
from tidemill.store.nodes import node_views, nodes
from tidemill.store.nodes.nodes import NodeFilter
from tidemill.store.query import Connection

router = APIRouter(prefix=f"{API}/nodes", tags=["nodes"], route_class=ExactRoute)

_RULES_MAX = 20


class NewNodeName(BaseModel):
    name: str = Field(max_length=NAME_MAX, examples=["attic"])


class HistoryPage(BaseModel):
    items: list[EventView]
    has_more: bool
    after: str | None


RemovalReason = Annotated[
    str, Query(max_length=REASON_MAX, description="Kept with the removal. Operators have to give one.")
]
RulesBody = Annotated[
    dict[str, Any],
    Body(
        max_length=_RULES_MAX,
        description="A value for each rule to change; null takes it away.",
        examples=[{"price": "1.25", "windows": [{"from": "22:00", "until": "08:00"}]}],
    ),
]
NodeChange = Callable[[Connection], Awaitable[Node | Refusal]]


async def _filter(
    caller: CallerPart,
    owner: OwnerFilter,
    name: Annotated[str | None, Query(max_length=NAME_MAX, description="With exactly this name.")] = None,
    removed: Annotated[bool, Query(description="Those that were removed, instead of those that are there.")] = False,
) -> NodeFilter:
    whose = owner if caller.is_operator else caller.account_id
    return NodeFilter(whose, None if name is None else unless_refused(checked_name(name)), removed)


@router.get("", responses=documented(404, 409, 422))
async def list_nodes(
    control: ControlPart, most: PageLimit, filters: Annotated[NodeFilter, Depends(_filter)], after: UUID | None = None
) -> NodePage:
    """Your nodes, newest first; an operator sees everybody's."""
    async with control.route_database.connection() as connection:
        page = await nodes.listed(connection, filters, after, most + 1)
        items = await summaries(control, connection, page[:most])
    return NodePage(items=items, has_more=len(page) > most, after=items[-1].id if items else None)


@router.get("/{node_id}", responses=documented(404, 422))
async def show(node_id: NodeId, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """One node, with its rules and why it gets no work."""
    async with control.route_database.connection() as connection:
        node = await nodes.get(connection, node_id, _owner(caller))
        return await detail(control, connection, node or NodeRefusal.UNKNOWN_NODE)


@router.get("/{node_id}/history", responses=documented(400, 404, 422))
async def history(
    node_id: NodeId, control: ControlPart, caller: CallerPart, most: PageLimit, after: str | None = None
) -> HistoryPage:
    """What happened to a node, newest first."""
    cursor = None if after is None else unless_refused(Cursor.parse(after) or RequestRefusal.CURSOR_MALFORMED)
    async with control.route_database.connection() as connection:
        if await nodes.get(connection, node_id, _owner(caller)) is None:
            raise RouteRefused(NodeRefusal.UNKNOWN_NODE)
        page = await node_views.history(connection, node_id, caller.reader, cursor, most + 1)
    items = [EventView.model_validate(event) for event in page[:most]]
    return HistoryPage(items=items, has_more=len(page) > most, after=items[-1].cursor if items else None)


@router.patch("/{node_id}", responses=documented(400, 404, 410, 413, 422))
async def rename(node_id: NodeId, body: NewNodeName, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Give a node another name."""
    how = _change_terms(control, caller)
    return await _change(control, lambda transaction: nodes.rename(transaction, node_id, body.name, **how))


@router.put("/{node_id}/rules", responses=documented(400, 404, 410, 413, 422))
async def change_rules(node_id: NodeId, body: RulesBody, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Change rules of a node, all that are given or none. The node hears of it at once, or when it is back."""
    return await _set_rules(control, caller, node_id, body)


@router.post("/{node_id}/drain", responses=documented(404, 410, 422))
async def drain(node_id: NodeId, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Let a node finish what it has, and give it no more."""
    return await _set_rules(control, caller, node_id, {"work": "drain"})


@router.post("/{node_id}/pause", responses=documented(404, 410, 422))
async def pause(node_id: NodeId, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Stop a node's work at once."""
    return await _set_rules(control, caller, node_id, {"work": "pause"})


@router.post("/{node_id}/resume", responses=documented(404, 410, 422))
async def resume(node_id: NodeId, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Let a node work again that was paused or drained."""
    return await _set_rules(control, caller, node_id, {"work": "run"})


@router.delete("/{node_id}", responses=documented(404, 410, 422))
async def remove(
    node_id: NodeId, control: ControlPart, caller: CallerPart, reason: RemovalReason = ""
) -> NodeDetailView:
    """Remove a node for good: its link is closed, and its identity is worth nothing any more."""
    how = _change_terms(control, caller)
    return await _change(control, lambda transaction: nodes.remove(transaction, node_id, reason, **how))


@router.post("/{node_id}/suspend", responses=documented(400, 404, 409, 410, 413, 422))
async def suspend(node_id: NodeId, why: OperatorReason, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Keep a node from work. It stays connected."""
    return await _suspend(control, caller, node_id, why, suspended=True)


@router.post("/{node_id}/unsuspend", responses=documented(400, 404, 409, 410, 413, 422))
async def unsuspend(node_id: NodeId, why: OperatorReason, control: ControlPart, caller: CallerPart) -> NodeDetailView:
    """Let a suspended node work again."""
    return await _suspend(control, caller, node_id, why, suspended=False)


def _owner(caller: Caller) -> UUID | None:
    """Whose nodes a caller acts on; None is everybody's."""
    return None if caller.is_operator else caller.account_id


def _change_terms(control: Control, caller: Caller) -> dict[str, Any]:
    return {"owner": _owner(caller), "by": caller.name, "ids": control.ids, "now": control.clock.now()}


async def _change(control: Control, change: NodeChange) -> NodeDetailView:
    async with control.route_database.transaction() as transaction:
        return await detail(control, transaction, await change(transaction))


async def _set_rules(control: Control, caller: Caller, node_id: UUID, wishes: dict[str, Any]) -> NodeDetailView:
    how = _change_terms(control, caller)
    return await _change(control, lambda transaction: nodes.change_rules(transaction, node_id, wishes, **how))


async def _suspend(
    control: Control, caller: Caller, node_id: UUID, why: OperatorReason, *, suspended: bool
) -> NodeDetailView:
    now = control.clock.now()
    return await _change(
        control,
        lambda transaction: nodes.suspend(
            transaction, node_id, suspended=suspended, reason=why.reason, by=caller.name, ids=control.ids, now=now
        ),
    )
