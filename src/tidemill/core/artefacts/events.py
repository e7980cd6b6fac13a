"""What happens to artefacts and models, as events. An artefact's owner may read what concerns it."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.events.log import Event


@dataclass(frozen=True)
class _OfArtefact:
    account_id: UUID
    artefact_id: UUID

    @property
    def subject(self) -> str:
        return f"artefact:{self.artefact_id}"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,)


@dataclass(frozen=True)
class ArtefactMade(_OfArtefact, Event, kind="artefact.made"):
    """An upload was finished, and is an artefact now."""

    digest: str
    size_bytes: int
    purpose: str
    name: str


@dataclass(frozen=True)
class ArtefactDeleted(_OfArtefact, Event, kind="artefact.deleted"):
    """Its owner deleted an artefact, or left the pool."""

    digest: str
    name: str


@dataclass(frozen=True)
class ArtefactRemoved(_OfArtefact, Event, kind="artefact.removed", audited=True):
    """An operator deleted somebody else's artefact."""

    digest: str
    name: str
    reason: str
    by: str


@dataclass(frozen=True)
class ArtefactExpired(_OfArtefact, Event, kind="artefact.expired"):
    """An artefact was deleted because its owner did not pay for keeping it, some days after being told."""

    digest: str
    name: str


@dataclass(frozen=True)
class StorageUnpaid(Event, kind="storage.unpaid"):
    """An account cannot pay for what it keeps; what is not free will be deleted then."""

    account_id: UUID
    kept_bytes: int
    expires_at: int

    @property
    def subject(self) -> str:
        return f"account:{self.account_id}"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,)


@dataclass(frozen=True)
class _OfModel:
    model_id: UUID
    name: str

    @property
    def subject(self) -> str:
        return f"model:{self.model_id}"


@dataclass(frozen=True)
class ModelAdded(_OfModel, Event, kind="model.added", public=True, audited=True):
    """An operator added a model to the pool."""

    digest: str
    licence: str
    by: str


@dataclass(frozen=True)
class ModelRemoved(_OfModel, Event, kind="model.removed", public=True, audited=True):
    """An operator removed a model from the pool. Its artefact stays."""

    digest: str
    by: str
