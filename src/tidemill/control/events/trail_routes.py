"""The audit trail over HTTP: its tip for everybody, its acts for operators."""

import json
from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, BeforeValidator, Field

from tidemill.control.context import ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import documented
from tidemill.control.http.views import API, Timestamp, View
from tidemill.store.events import trail

router = APIRouter(prefix=f"{API}/audit", tags=["audit"], route_class=GuardedRoute)


def _hex(sha256: bytes) -> str:
    return sha256.hex()


Sha256 = Annotated[str, BeforeValidator(_hex)]
FilterText = Annotated[str | None, Query(max_length=500, pattern=r"^[^\x00]+$")]


class TrailTipView(View):
    number: int = Field(description="How many acts the trail has.")
    sha256: Sha256 = Field(description="The hash of the last one, which covers all before it.")
    at: Timestamp | None = Field(description="When the last one happened.")


class ActView(View):
    number: int
    at: Timestamp
    event_id: UUID
    kind: str
    subject: str
    body: Annotated[Mapping[str, Any], BeforeValidator(json.loads)]
    previous: Sha256
    sha256: Sha256


class ActPage(BaseModel):
    items: list[ActView]
    has_more: bool
    after: int | None


@router.get("/head", responses=documented())
async def head(control: ControlPart) -> TrailTipView:
    """Where the audit trail ends now. Keep it: everything up to it can be verified against it."""
    async with control.route_database.connection() as connection:
        return TrailTipView.model_validate(await trail.tip(connection))


@router.get("", responses=documented(401, 403, 422))
async def acts(
    control: ControlPart,
    most: PageLimit,
    after: Annotated[int | None, Query(ge=1, le=trail.NUMBER_MAX, description="Go on behind this number.")] = None,
    kind: FilterText = None,
    subject: FilterText = None,
) -> ActPage:
    """The acts of the audit trail, newest first."""
    async with control.route_database.connection() as connection:
        page = await trail.listed(connection, kind=kind, subject=subject, before=after, limit=most + 1)
    items = [ActView.model_validate(act) for act in page[:most]]
    return ActPage(items=items, has_more=len(page) > most, after=items[-1].number if items else None)
