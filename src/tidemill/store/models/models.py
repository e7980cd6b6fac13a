"""The registry of models in the database. A model's artefact stays as long as the model does."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.events import ModelAdded, ModelRemoved
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.models.model import Model, ModelDescription, ModelRefusal, refused_model
from tidemill.core.refusals import Refusal
from tidemill.store.artefacts import artefacts
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


class _ModelRow(NamedTuple):
    id: UUID
    name: str
    source: str
    licence: str
    artefact_id: UUID
    digest: str
    size_bytes: int
    memory_mib: int
    gpu_memory_mib: int
    added_by: str
    added_at: Instant

    def model(self) -> Model:
        return Model(*self[:5], Digest(self.digest), *self[6:])


_ADD = Query("models/model/add", UUID)
_LIST = Query("models/model/list", _ModelRow)
_FIND = Query("models/model/find", _ModelRow)
_REMOVE = Query("models/model/remove", UUID)


async def add(
    transaction: Connection, description: ModelDescription, artefact_id: UUID, *, by: str, ids: Ids, now: Instant
) -> Model | Refusal:
    """Add a model whose content is an artefact."""
    artefact = await artefacts.locked(transaction, artefact_id)
    if refusal := refused_model(description, artefact):
        return refusal
    assert artefact
    model_id = ids.new(now)
    added = await _ADD.row(transaction, **vars(description), id=model_id, artefact_id=artefact_id, added_by=by, now=now)
    if not added:
        return ModelRefusal.MODEL_NAME_TAKEN
    event = ModelAdded(model_id, description.name, artefact.digest.text, description.licence, by)
    await events.append(transaction, [event], ids, now)
    return Model(
        **vars(description),
        id=model_id,
        artefact_id=artefact_id,
        digest=artefact.digest,
        size_bytes=artefact.size_bytes,
        added_by=by,
        added_at=now,
    )


async def listed(connection: Connection, after_name: str | None, limit: int) -> Sequence[Model]:
    """Models, by their names."""
    return [row.model() for row in await _LIST.rows(connection, after=after_name, limit=limit)]


async def get(connection: Connection, name: str) -> Model | None:
    row = await _FIND.row(connection, name=name)
    return row.model() if row else None


async def remove(transaction: Connection, name: str, *, by: str, ids: Ids, now: Instant) -> Model | ModelRefusal:
    """Remove a model. Nodes that run it continue; its artefact can be deleted from now on."""
    model = await get(transaction, name)
    if model is None or not await _REMOVE.row(transaction, id=model.id):
        return ModelRefusal.UNKNOWN_MODEL
    await events.append(transaction, [ModelRemoved(model.id, model.name, model.digest.text, by)], ids, now)
    return model
