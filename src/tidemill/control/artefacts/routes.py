"""Artefacts: one's own, and all of them for operators; and for nodes the bytes that their attempts need.

Another account's artefact is answered as if it did not exist, and so is a digest that no attempt of the node needs.
"""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, BeforeValidator, Field

from tidemill.control.artefacts.downloads import content
from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import ArtefactId, OwnerFilter
from tidemill.control.http.views import API, Timestamp, View
from tidemill.core.accounts.roles import Caller
from tidemill.core.artefacts import storage_fees as fees
from tidemill.core.artefacts.access import AccountCaller, NodeNeed, refused_node, refused_reading
from tidemill.core.artefacts.artefact import Artefact, Purpose, read_digest
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.clock import SECOND, Instant, as_datetime
from tidemill.core.money import credits_of
from tidemill.core.reasons import REASON_MAX
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.core.settlement.rewards import customer_account
from tidemill.store.artefacts import artefact_grants, artefacts, storage_fees
from tidemill.store.artefacts.artefacts import ArtefactFilter, Deletion
from tidemill.store.artefacts.storage_fees import StorageUsage
from tidemill.store.ledger import ledger

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


class StorageUsageView(BaseModel):
    used_bytes: int = Field(description="What you keep; the smallest artefact counts 4 KiB.")
    reserved_bytes: int = Field(description="What your uploads under way will need.")
    allowed_bytes: int = Field(description="What you may keep, with your uploads, at your balance.")
    free_bytes: int = Field(description="What every account may keep without money.")
    price: str = Field(description="What a GiB beyond that costs a month, in credits.")
    fee: str = Field(description="What a day of what you keep costs now, in credits; young results cost nothing.")
    unpaid_until: datetime | None = Field(
        description="Your balance does not pay the fee: what is not free is deleted then, the oldest first."
    )


class ArtefactPage(BaseModel):
    items: list[ArtefactView]
    has_more: bool
    after: UUID | None


async def _filter(
    caller: CallerPart,
    owner: OwnerFilter,
    purpose: Annotated[Purpose | None, Query(description="Only what is for this.")] = None,
    digest: Annotated[str | None, Query(max_length=64, description="Only these bytes.")] = None,
) -> ArtefactFilter:
    whose = owner if caller.is_operator else caller.account_id
    return ArtefactFilter(whose, purpose, None if digest is None else unless_refused(read_digest(digest)))


@router.get("", responses=documented(404, 409, 422))
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


@router.get("/usage", responses=documented())
async def show_usage(control: ControlPart, caller: CallerPart) -> StorageUsageView:
    """How much you keep, how much you may keep, and what a day of it costs."""
    rules, account_id = control.settings.artefacts, caller.account_id or NOBODY
    since = Instant(control.clock.now() - int(rules.result_keep_s * SECOND))
    async with control.route_database.connection() as connection:
        usage = await storage_fees.usage(connection, account_id)
        charged_bytes = await storage_fees.kept_bytes(connection, account_id, since)
        balance_uc = await ledger.available_uc(connection, customer_account(account_id))
    return _usage_view(usage, charged_bytes, balance_uc, rules, is_operator=caller.is_operator)


@router.get("/{artefact_id}", responses=documented(404, 422))
async def show(artefact_id: ArtefactId, control: ControlPart, caller: CallerPart) -> ArtefactView:
    """One artefact."""
    return ArtefactView.model_validate(await _readable(control, caller, artefact_id))


@router.get("/{artefact_id}/content", response_class=Response, responses=SENT)
async def read(artefact_id: ArtefactId, request: Request, control: ControlPart, caller: CallerPart) -> Response:
    """An artefact's bytes, all of them or those that `Range` asks for."""
    artefact = await _readable(control, caller, artefact_id)
    return await content(request, control.artefacts, artefact.digest, artefact.name)


@router.head("/{artefact_id}/content", response_class=Response, responses=TOLD)
async def measure(artefact_id: ArtefactId, request: Request, control: ControlPart, caller: CallerPart) -> Response:
    """How many bytes an artefact has, and their digest."""
    artefact = await _readable(control, caller, artefact_id)
    return await content(request, control.artefacts, artefact.digest, artefact.name)


@router.delete("/{artefact_id}", responses=documented(404, 409, 422))
async def delete(
    artefact_id: ArtefactId,
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


def _usage_view(
    usage: StorageUsage, charged_bytes: int, balance_uc: int, rules: ArtefactsSettings, *, is_operator: bool
) -> StorageUsageView:
    unpaid_since = usage.unpaid_since
    return StorageUsageView(
        used_bytes=usage.used_bytes,
        reserved_bytes=usage.reserved_bytes,
        allowed_bytes=rules.quota_bytes if is_operator else fees.allowed_bytes(balance_uc, rules),
        free_bytes=rules.free_bytes,
        price=credits_of(rules.price_uc),
        fee=credits_of(0 if is_operator else fees.day_fee_uc(charged_bytes, rules)),
        unpaid_until=None if unpaid_since is None else as_datetime(fees.expires_at(unpaid_since, rules)),
    )
