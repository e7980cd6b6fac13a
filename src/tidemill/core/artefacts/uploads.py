"""A resumable upload, by tus 1.0: where it stands, what may be added, and when it is over.

Bytes are only ever added at the offset where the upload stands and never beyond the declared length, so the stored
bytes are always a prefix of the content. A part with a checksum is stored completely or not at all.
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
from tidemill.core.clock import HOUR, Instant

CHECKSUMS = ("sha1", "sha256")
"""tus requires SHA-1 of every server: it finds damage on the way. We rely on SHA-256 over all the bytes."""

UPLOADS_MAX = 1_000
"""How many uploads of one account may be under way: each costs a directory, however small it is."""

FINISHED_KEEP_US = HOUR
"""How long a finished upload is remembered, for a client that missed the answer."""

_CHECKSUM_BYTES = {"sha1": 20, "sha256": 32}


class Hash(Protocol):
    """Computes a checksum or a digest."""

    def update(self, piece: bytes | memoryview, /) -> None: ...

    def digest(self) -> bytes: ...


@dataclass(frozen=True)
class Upload:
    """An upload. `begun_by` is the account or the node that began it; nobody else may continue it.

    A result has the attempt that it belongs to. A finished upload has the artefact that it became.
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
    """The checksum that a part should have."""

    algorithm: str
    value: bytes

    def __post_init__(self) -> None:
        assert len(self.value) == _CHECKSUM_BYTES[self.algorithm], f"{self.algorithm} of {len(self.value)} bytes"

    def hash(self) -> Hash:
        return hashlib.new(self.algorithm, usedforsecurity=False)

    def fits(self, computed: Hash) -> bool:
        return hmac.compare_digest(self.value, computed.digest())


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
    """Why a caller may not continue an upload; None if they may. To a stranger it does not exist."""
    if caller_id != upload.begun_by:
        return UploadRefusal.UNKNOWN_UPLOAD
    return UploadRefusal.UPLOAD_EXPIRED if now >= upload.expires_at else None


def refused_part(length_bytes: int, stands_at: int, offset: int, part_bytes: int = 0) -> UploadRefusal | None:
    """Why a part may not be added; None if it may. If its size is not known yet, ask again as it arrives."""
    if offset != stands_at:
        return UploadRefusal.UPLOAD_OFFSET_WRONG
    return UploadRefusal.UPLOAD_BEYOND_LENGTH if stands_at + part_bytes > length_bytes else None


def refused_end(length_bytes: int, stands_at: int) -> UploadRefusal | None:
    """Why an upload may not be finished yet; None if it may."""
    return None if stands_at == length_bytes else UploadRefusal.UPLOAD_INCOMPLETE


def expires_at(last_bytes_at: Instant, keep_us: int) -> Instant:
    """Until when an upload waits for its next bytes."""
    return Instant(last_bytes_at + keep_us)
