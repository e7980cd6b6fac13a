"""Models: what the pool serves, each an artefact with a name, a licence, and what a node needs to run it.

Operators add them and everybody sees them. A model's bytes never change: another version is another model.
"""

import re
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.artefacts.artefact import Artefact, Digest, Purpose
from tidemill.core.clock import Instant
from tidemill.core.references import refused_name
from tidemill.core.refusals import Refusal

NAME_MAX = 100
TEXT_MAX = 500
MEMORY_MAX_MIB = 1 << 30

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


class ModelRefusal(Refusal):
    UNKNOWN_MODEL = "The pool has no such model: `tidemill models list` shows those that there are."
    MODEL_NAME_MALFORMED = (
        f"A model's name is 1 to {NAME_MAX} letters, digits, dots, dashes and underscores, and begins with a letter or "
        "a digit: choose such a one."
    )
    MODEL_NAME_TAKEN = "There is a model of this name already: choose another, or remove that one first."
    MODEL_TEXT_MALFORMED = f"Source and licence are 1 to {TEXT_MAX} printable characters each: write such ones."
    MODEL_NEEDS_MALFORMED = "What a model needs is given in whole MiB, from 0 upwards: give such numbers."
    MODEL_ARTEFACT_WRONG = "A model is made of an artefact that was uploaded with the purpose `model`: give its id."


@dataclass(frozen=True)
class Model:
    """A model of the pool. `memory_mib` and `gpu_memory_mib` are what a node must have free to run it."""

    id: UUID
    name: str
    source: str
    licence: str
    artefact_id: UUID
    digest: Digest
    size_bytes: int
    memory_mib: int
    gpu_memory_mib: int
    added_by: str
    added_at: Instant


@dataclass(frozen=True)
class ModelDescription:
    """A model as an operator asks for it."""

    name: str
    source: str
    licence: str
    memory_mib: int
    gpu_memory_mib: int


def is_name(text: str) -> bool:
    """Whether a model could have this name."""
    return _NAME.fullmatch(text) is not None


def refused_model(description: ModelDescription, artefact: Artefact | None) -> Refusal | None:
    """Why the pool may not have such a model of this artefact; None if it may."""
    if not is_name(description.name):
        return ModelRefusal.MODEL_NAME_MALFORMED
    if refusal := refused_name(description.name):
        return refusal
    if not (_is_shown(description.source) and _is_shown(description.licence)):
        return ModelRefusal.MODEL_TEXT_MALFORMED
    if not all(0 <= mib <= MEMORY_MAX_MIB for mib in (description.memory_mib, description.gpu_memory_mib)):
        return ModelRefusal.MODEL_NEEDS_MALFORMED
    is_model = artefact is not None and artefact.purpose is Purpose.MODEL
    return None if is_model else ModelRefusal.MODEL_ARTEFACT_WRONG


def _is_shown(text: str) -> bool:
    return 1 <= len(text) <= TEXT_MAX and text.isprintable() and bool(text.strip())
