"""What the header `Upload-Metadata` of tus says about an upload that begins.

Keys that we do not know are left alone, as clients send their own. What is not said has a meaning: a person uploads an
input, a node a result.
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
    """What was said, if all of it can be understood."""
    said = _pairs(header)
    if said is None:
        return UploadRefusal.UPLOAD_METADATA_MALFORMED
    name = checked_name(said.get("name") or said.get("filename") or (_RESULT if by_node else ""))
    expected = read_digest(said["sha256"]) if "sha256" in said else None
    for read in (name, expected):
        if isinstance(read, Refusal):
            return read
    attempt_id, purpose = _attempt(said.get("attempt")), _purpose(said.get("purpose"), by_node=by_node)
    if purpose is None or (attempt_id is None) == by_node:
        return UploadRefusal.UPLOAD_METADATA_MALFORMED
    assert isinstance(name, str)
    assert not isinstance(expected, Refusal)
    return UploadDescription(name, purpose, expected, attempt_id)


def write_metadata(**said: str) -> str:
    """The header that says this."""
    return ",".join(f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in said.items())


def read_number(header: str | None) -> int | None:
    """A length or an offset; None for what is neither."""
    if header is None or not (header.isascii() and header.isdigit()) or len(header) > _LENGTH_MAX_DIGITS:
        return None
    return int(header)


def _purpose(text: str | None, *, by_node: bool) -> Purpose | None:
    """Results come from nodes, and from nodes comes nothing else."""
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
    """Keys and values; None if the header is no such list, or says something twice."""
    parts = [part.strip() for part in header.split(",")] if header.strip() else []
    said: dict[str, str] = {}
    for part in parts:
        key, _, text = part.partition(" ")
        value = _value(text)
        if not key or key in said or value is None or len(said) >= _KEYS_MAX:
            return None
        said[key] = value
    return said


def _value(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
