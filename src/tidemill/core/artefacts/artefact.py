"""An artefact: its digest, what it is for, and the name that people see.

A digest names the bytes and is the only name that storage knows. The name that people see is never part of a path.
We check it nevertheless, because it becomes a file name when somebody downloads the artefact.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tidemill.core.artefacts.refusals import NAME_MAX_BYTES, ArtefactRefusal
from tidemill.core.clock import Instant

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
"""Invisible, yet a part of how some scripts are written."""


class Purpose(StrEnum):
    """What an artefact is for."""

    INPUT = "input"
    MODEL = "model"
    RESULT = "result"


@dataclass(frozen=True, order=True)
class Digest:
    """SHA-256 of the bytes, in lower-case hexadecimal."""

    text: str

    def __post_init__(self) -> None:
        assert _DIGEST.fullmatch(self.text), f"{self.text!r} is no digest"

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Artefact:
    """Bytes that an account keeps. Two accounts with the same bytes have an artefact each; storage holds them once."""

    id: UUID
    account_id: UUID
    digest: Digest
    size_bytes: int
    purpose: Purpose
    name: str
    made_at: Instant
    attempt_id: UUID | None = None


def read_digest(text: str) -> Digest | ArtefactRefusal:
    """A digest as it came from outside."""
    return Digest(text) if _DIGEST.fullmatch(text) else ArtefactRefusal.DIGEST_MALFORMED


def checked_name(name: str) -> str | ArtefactRefusal:
    """The name as it is stored: normalised, so that names that look the same are the same."""
    name = unicodedata.normalize("NFC", name).strip()
    if name in ("", ".", "..") or any(_is_unfit(character) for character in name):
        return ArtefactRefusal.ARTEFACT_NAME_MALFORMED
    return name if len(name.encode()) <= NAME_MAX_BYTES else ArtefactRefusal.ARTEFACT_NAME_MALFORMED


def checked_range(first: int, end: int | None, size_bytes: int) -> tuple[int, int] | ArtefactRefusal:
    """The existing bytes from `first` up to, not including, `end`. An end behind the last byte means the last byte."""
    stop = size_bytes if end is None else min(end, size_bytes)
    is_there = 0 <= first < stop or (first == 0 and end is None)
    return (first, stop) if is_there else ArtefactRefusal.RANGE_NOT_THERE


def _is_unfit(character: str) -> bool:
    """Whether a character separates paths, is invisible, or changes the direction of the text around it."""
    return character in "/\\" or (unicodedata.category(character) in _UNSHOWN and character not in _JOINERS)
