"""The registry of models: everybody sees it, operators keep it."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, BeforeValidator, Field

from tidemill.control.context import CallerPart, ControlPart, PageLimit
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, documented, unless_refused
from tidemill.control.http.references import ModelName
from tidemill.control.http.views import API, Timestamp, View
from tidemill.core.models.model import MEMORY_MAX_MIB, NAME_MAX, TEXT_MAX, ModelDescription, ModelRefusal, is_name
from tidemill.store.models import models

router = APIRouter(prefix=f"{API}/models", tags=["models"], route_class=GuardedRoute)


class NewModel(BaseModel):
    name: str = Field(min_length=1, max_length=NAME_MAX, examples=["tiny-instruct-1.0"])
    source: str = Field(min_length=1, max_length=TEXT_MAX, description="Where it comes from, in words or as a URL.")
    licence: str = Field(min_length=1, max_length=TEXT_MAX, examples=["Apache-2.0"])
    artefact_id: UUID = Field(description="An artefact that was uploaded with the purpose `model`.")
    memory_mib: int = Field(0, ge=0, le=MEMORY_MAX_MIB, description="The memory that a node needs for it.")
    gpu_memory_mib: int = Field(0, ge=0, le=MEMORY_MAX_MIB, description="The GPU memory that it needs; 0 needs none.")


class ModelView(View):
    id: UUID
    name: str
    source: str
    licence: str
    artefact_id: UUID
    digest: Annotated[str, BeforeValidator(str)]
    size_bytes: int
    memory_mib: int
    gpu_memory_mib: int
    added_by: str
    added_at: Timestamp


class ModelPage(BaseModel):
    items: list[ModelView]
    has_more: bool
    after: str | None


async def _after_name(
    after: Annotated[str | None, Query(max_length=NAME_MAX, description="Behind the model of this name.")] = None,
) -> str | None:
    if after is not None and not is_name(after):
        raise RouteRefused(ModelRefusal.MODEL_NAME_MALFORMED)
    return after


After = Annotated[str | None, Depends(_after_name)]


@router.get("", responses=documented(422))
async def list_models(control: ControlPart, most: PageLimit, after: After) -> ModelPage:
    """The models of the pool, by name."""
    async with control.route_database.connection() as connection:
        page = await models.listed(connection, after, most + 1)
    items = [ModelView.model_validate(model) for model in page[:most]]
    return ModelPage(items=items, has_more=len(page) > most, after=items[-1].name if items else None)


@router.get("/{name}", responses=documented(404, 422))
async def show(name: ModelName, control: ControlPart) -> ModelView:
    """One model, by its name."""
    async with control.route_database.connection() as connection:
        model = await models.get(connection, name)
    return ModelView.model_validate(unless_refused(model or ModelRefusal.UNKNOWN_MODEL))


@router.post("", status_code=201, responses=documented(400, 409, 413, 422))
async def add(body: NewModel, control: ControlPart, caller: CallerPart) -> ModelView:
    """Add a model to the pool."""
    description = ModelDescription(body.name, body.source, body.licence, body.memory_mib, body.gpu_memory_mib)
    async with control.route_database.transaction() as transaction:
        added = await models.add(
            transaction, description, body.artefact_id, by=caller.name, ids=control.ids, now=control.clock.now()
        )
        return ModelView.model_validate(unless_refused(added))


@router.delete("/{name}", responses=documented(404, 422))
async def remove(name: ModelName, control: ControlPart, caller: CallerPart) -> ModelView:
    """Remove a model from the pool. Its artefact stays."""
    async with control.route_database.transaction() as transaction:
        removed = await models.remove(transaction, name, by=caller.name, ids=control.ids, now=control.clock.now())
        return ModelView.model_validate(unless_refused(removed))
