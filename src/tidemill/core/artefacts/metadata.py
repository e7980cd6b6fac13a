"""What the header `Upload-Metadata` of tus says about an upload that begins.

We ignore unknown keys, as clients send their own. Missing keys have defaults: a person uploads an input, a node a
result.
"""

import base64
import binascii
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest, Purpose, checked_name, read_digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.refusals import Refusal

_KEYS_MAX = 50
_RESULT = "result"
_LENGTH_MAX_DIGITS = 18


@dataclass(frozen=True)
class UploadDescription:
    """An upload as its sender describes it. With an attempt it is that attempt's result."""

    name: str
    purpose: Purpose
    expected: Digest | None
    attempt_id: UUID | None = None


def read_metadata(header: str, *, by_node: bool) -> UploadDescription | ArtefactRefusal | UploadRefusal:
    """The description in the header, if all of it can be read."""
    pairs = _pairs(header)
    if pairs is None:
        return UploadRefusal.UPLOAD_METADATA_MALFORMED
    name = checked_name(pairs.get("name") or pairs.get("filename") or (_RESULT if by_node else ""))
    expected = read_digest(pairs["sha256"]) if "sha256" in pairs else None
    for read in (name, expected):
        if isinstance(read, Refusal):
            return read
    attempt_id, purpose = _attempt(pairs.get("attempt")), _purpose(pairs.get("purpose"), by_node=by_node)
    if purpose is None or (attempt_id is None) == by_node:
        return UploadRefusal.UPLOAD_METADATA_MALFORMED
    assert isinstance(name, str)
    assert not isinstance(expected, Refusal)
    return UploadDescription(name, purpose, expected, attempt_id)


def write_metadata(**pairs: str) -> str:
    """The header with these pairs."""
    return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in pairs.items())


def read_number(header: str | None) -> int | None:
    """A length or an offset; None for what is neither."""
    if header is None or not (header.isascii() and header.isdigit()) or len(header) > _LENGTH_MAX_DIGITS:
        return None
    return int(header)


def _purpose(text: str | None, *, by_node: bool) -> Purpose | None:
    """Results come from nodes only, and nodes upload nothing else."""
    if by_node:
        return Purpose.RESULT if text in (None, Purpose.RESULT) else None
    if text is None:
        return Purpose.INPUT
    return Purpose(text) if text in (Purpose.INPUT, Purpose.MODEL) else None


def _attempt(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        return None


def _pairs(header: str) -> dict[str, str] | None:
    """Keys and values; None if the header is not such a list, or repeats a key."""
    parts = [part.strip() for part in header.split(",")] if header.strip() else []
    pairs: dict[str, str] = {}
    for part in parts:
        key, _, text = part.partition(" ")
        value = _value(text)
        if not key or key in pairs or value is None or len(pairs) >= _KEYS_MAX:
            return None
        pairs[key] = value
    return pairs


def _value(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
