"""Artefacts: one's own, and all of them for operators; and for nodes the bytes that their attempts need.

Another account's artefact is answered as if it did not exist, and so is a digest that no attempt of the node needs.
"""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, BeforeValidator

from tidemill.control.artefacts.downloads import content
from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.views import API, Timestamp, View
from tidemill.core.accounts.roles import Caller
from tidemill.core.artefacts.access import AccountCaller, NodeNeed, refused_node, refused_reading
from tidemill.core.artefacts.artefact import Artefact, Purpose, read_digest
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.reasons import REASON_MAX
from tidemill.store.artefacts import artefact_grants, artefacts
from tidemill.store.artefacts.artefacts import ArtefactFilter, Deletion

router = APIRouter(prefix=f"{API}/artefacts", tags=["artefacts"], route_class=GuardedRoute)

NOBODY = UUID(int=0)
"""The owner of the home is an operator without an account."""

_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
SENT: dict[int | str, dict[str, Any]] = {
    200: {"content": _BYTES, "description": "The bytes, all of them."},
    206: {"content": _BYTES, "description": "The range that `Range` asked for."},
    304: {"description": "You have them: `If-None-Match` names their digest."},
    **documented(401, 403, 404, 416, 422, 429),
}
TOLD: dict[int | str, dict[str, Any]] = {
    200: {"description": "How many bytes there are, and their digest as ETag."},
    206: {"description": "The same of a range."},
    304: {"description": "You have them."},
    **documented(401, 403, 404, 416, 422, 429),
}


class ArtefactView(View):
    id: UUID
    account_id: UUID
    digest: Annotated[str, BeforeValidator(str)]
    size_bytes: int
    purpose: Purpose
    name: str
    made_at: Timestamp
    attempt_id: UUID | None


class ArtefactPage(BaseModel):
    items: list[ArtefactView]
    has_more: bool
    after: UUID | None


async def _filter(
    caller: CallerPart,
    owner: Annotated[UUID | None, Query(description="Of which account; for operators.")] = None,
    purpose: Annotated[Purpose | None, Query(description="Only what is for this.")] = None,
    digest: Annotated[str | None, Query(max_length=64, description="Only these bytes.")] = None,
) -> ArtefactFilter:
    whose = owner if caller.is_operator else caller.account_id
    return ArtefactFilter(whose, purpose, None if digest is None else unless_refused(read_digest(digest)))


@router.get("", responses=documented(422))
async def list_artefacts(
    control: ControlPart,
    most: PageLimit,
    filters: Annotated[ArtefactFilter, Depends(_filter)],
    after: UUID | None = None,
) -> ArtefactPage:
    """Your artefacts, newest first; an operator sees everybody's."""
    async with control.route_database.connection() as connection:
        page = await artefacts.listed(connection, filters, after, most + 1)
    items = [ArtefactView.model_validate(artefact) for artefact in page[:most]]
    return ArtefactPage(items=items, has_more=len(page) > most, after=items[-1].id if items else None)


@router.get("/by-digest/{digest}/content", response_class=Response, responses=SENT)
async def read_granted(digest: str, request: Request, control: ControlPart, caller: CallerPart) -> Response:
    """The bytes that an attempt of this node needs."""
    return await _granted_content(control, caller, digest, request)


@router.head("/by-digest/{digest}/content", response_class=Response, responses=TOLD)
async def measure_granted(digest: str, request: Request, control: ControlPart, caller: CallerPart) -> Response:
    """How many bytes an attempt of this node needs."""
    return await _granted_content(control, caller, digest, request)


@router.get("/{artefact_id}", responses=documented(404, 422))
async def show(artefact_id: UUID, control: ControlPart, caller: CallerPart) -> ArtefactView:
    """One artefact."""
    return ArtefactView.model_validate(await _readable(control, caller, artefact_id))


@router.get("/{artefact_id}/content", response_class=Response, responses=SENT)
async def read(artefact_id: UUID, request: Request, control: ControlPart, caller: CallerPart) -> Response:
    """An artefact's bytes, all of them or those that `Range` asks for."""
    artefact = await _readable(control, caller, artefact_id)
    return await content(request, control.artefacts, artefact.digest, artefact.name)


@router.head("/{artefact_id}/content", response_class=Response, responses=TOLD)
async def measure(artefact_id: UUID, request: Request, control: ControlPart, caller: CallerPart) -> Response:
    """How many bytes an artefact has, and their digest."""
    artefact = await _readable(control, caller, artefact_id)
    return await content(request, control.artefacts, artefact.digest, artefact.name)


@router.delete("/{artefact_id}", responses=documented(404, 409, 422))
async def delete(
    artefact_id: UUID,
    control: ControlPart,
    caller: CallerPart,
    reason: Annotated[str, Query(max_length=REASON_MAX, description="For operators: why, of somebody else's.")] = "",
) -> ArtefactView:
    """Delete an artefact that no unfinished work needs."""
    deleting = Deletion(_account_caller(caller), caller.name, reason)
    async with control.route_database.transaction() as transaction:
        gone = await artefacts.delete(transaction, artefact_id, deleting, control.ids, control.clock.now())
        return ArtefactView.model_validate(unless_refused(gone))


async def _readable(control: Control, caller: Caller, artefact_id: UUID) -> Artefact:
    async with control.route_database.connection() as connection:
        artefact = await artefacts.get(connection, artefact_id)
    readable = unless_refused(artefact or ArtefactRefusal.UNKNOWN_ARTEFACT)
    unless_refused(refused_reading(readable, _account_caller(caller), (), control.clock.now()))
    return readable


async def _granted_content(control: Control, caller: Caller, text: str, request: Request) -> Response:
    digest = unless_refused(read_digest(text))
    assert caller.node_id
    async with control.route_database.connection() as connection:
        grants = await artefact_grants.of_digest(connection, caller.node_id, digest)
    needs = [NodeNeed(grant.node_id, grant.until) for grant in grants]
    if refusal := refused_node(caller.node_id, needs, control.clock.now()):
        raise RouteRefused(refusal)
    return await content(request, control.artefacts, digest, digest.text)


def _account_caller(caller: Caller) -> AccountCaller:
    return AccountCaller(caller.account_id or NOBODY, caller.is_operator)
