"""A resumable upload, as tus 1.0 has it: where it stands, what may be added, and when it is over.

Bytes are only ever added at the offset where the upload stands and never beyond the length that was declared, so what
is there is always the beginning of the whole. A part that came with a checksum is kept whole or not at all.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.clock import Instant

CHECKSUMS = ("sha1", "sha256")
"""tus asks every server for SHA-1: it finds damage on the way. What we rely on is SHA-256 over the whole."""

UPLOADS_MAX = 1_000
"""So many uploads of one account may be under way: each costs a directory, however small it is."""

_CHECKSUM_BYTES = {"sha1": 20, "sha256": 32}


class Hash(Protocol):
    """What computes a checksum or a digest."""

    def update(self, piece: bytes | memoryview, /) -> None: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True)
class Upload:
    """An upload. `begun_by` is the account or the node that began it; nobody else goes on with it.

    A result has the attempt it is of. What is finished has the artefact it became.
    """

    id: UUID
    account_id: UUID
    begun_by: UUID
    purpose: Purpose
    name: str
    length_bytes: int
    expected: Digest | None
    expires_at: Instant
    attempt_id: UUID | None = None
    artefact_id: UUID | None = None


@dataclass(frozen=True)
class Checksum:
    """What a part should have."""

    algorithm: str
    value: bytes

    def __post_init__(self) -> None:
        assert len(self.value) == _CHECKSUM_BYTES[self.algorithm], f"{self.algorithm} of {len(self.value)} bytes"

    def hash(self) -> Hash:
        return hashlib.new(self.algorithm, usedforsecurity=False)

    def fits(self, found: Hash) -> bool:
        return hmac.compare_digest(self.value, found.digest())


def read_checksum(header: str) -> Checksum | UploadRefusal:
    """The header `Upload-Checksum`."""
    algorithm, _, text = header.partition(" ")
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return UploadRefusal.UPLOAD_CHECKSUM_MALFORMED
    if len(value) != _CHECKSUM_BYTES.get(algorithm):
        return UploadRefusal.UPLOAD_CHECKSUM_MALFORMED
    return Checksum(algorithm, value)


def refused_caller(upload: Upload, caller_id: UUID, now: Instant) -> UploadRefusal | None:
    """Why a caller may not go on with an upload; None if they may. To a stranger it does not exist."""
    if caller_id != upload.begun_by:
        return UploadRefusal.UNKNOWN_UPLOAD
    return UploadRefusal.UPLOAD_EXPIRED if now >= upload.expires_at else None


def refused_part(length_bytes: int, stands_at: int, offset: int, part_bytes: int = 0) -> UploadRefusal | None:
    """Why a part may not be added; None if it may. Of one whose size nobody knows yet, ask again as it arrives."""
    if offset != stands_at:
        return UploadRefusal.UPLOAD_OFFSET_WRONG
    return UploadRefusal.UPLOAD_BEYOND_LENGTH if stands_at + part_bytes > length_bytes else None


def refused_end(length_bytes: int, stands_at: int) -> UploadRefusal | None:
    """Why an upload may not be finished yet; None if it may."""
    return None if stands_at == length_bytes else UploadRefusal.UPLOAD_INCOMPLETE


def expires_at(last_bytes_at: Instant, keep_us: int) -> Instant:
    """Until when an upload waits for its next bytes."""
    return Instant(last_bytes_at + keep_us)
