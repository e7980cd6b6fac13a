"""Grants: what a node may do with artefacts for one attempt, and until when.

A read grant names one digest. A write grant allows the upload of one result, which will belong to the account that
the attempt works for. Whoever gives the grant has reserved the room: no result is refused because a quota is used up.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.clock import Instant


class Access(StrEnum):
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True)
class Grant:
    """What one attempt gives its node. Reading names a digest, writing does not."""

    attempt_id: UUID
    node_id: UUID
    account_id: UUID
    access: Access
    size_max_bytes: int
    until: Instant
    digest: Digest | None = None

    def __post_init__(self) -> None:
        assert (self.access is Access.READ) == (self.digest is not None), "one reads what has a digest"


def refused_result(grant: Grant | None, length_bytes: int, now: Instant) -> ArtefactRefusal | UploadRefusal | None:
    """Why a node may not begin to upload a result of this length; None if it may."""
    if length_bytes < 0:
        return UploadRefusal.UPLOAD_LENGTH_MALFORMED
    if grant is None or grant.access is not Access.WRITE or now >= grant.until:
        return UploadRefusal.UPLOAD_NOT_GRANTED
    return ArtefactRefusal.ARTEFACT_TOO_LARGE if length_bytes > grant.size_max_bytes else None
