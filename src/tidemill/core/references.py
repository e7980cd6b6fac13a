"""What people write to name a job, a node, a key or anything else that has an id: how it is read, and what it means.

Four forms, told apart by how they look: a whole id; the end of one, 8 digits or more; `last`, `last-1` and so on,
newest first; else a name. So no name may look like another form, or an owner could not reach what they named.

The beginning of an id is time, and repeats; its last 32 bits are random, also of ids made in one burst, and of ids that
are hashes. An end may still be shared: then it means nothing, and the caller is told the longer ends.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.ids import SHORT_DIGITS
from tidemill.core.refusals import Refusal

REFERENCE_MAX = 255
BACK_MAX = 999
"""How far back `last-999` counts, since each step costs a row."""
CHOICES_MAX = 5
"""How many are named when a reference means several."""

_WHOLE = re.compile(r"[0-9a-f]{8}(-?)[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_END = re.compile(r"[0-9a-f]{8,31}|([0-9a-f]{1,8}-)?([0-9a-f]{1,4}-){0,3}[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_BACK = re.compile(r"last(-[0-9]+)?", re.ASCII | re.IGNORECASE)
_MINUS = re.compile(r"-[0-9]+", re.ASCII)
_IN_ADDRESSES = frozenset({".", "..", "join-tokens", "uploads", "usage", "by-digest", "schema"})
"""Where a name would stand in an address, these mean something else."""


class ReferenceRefusal(Refusal):
    REFERENCE_MALFORMED = (
        f"This names nothing: give an id, its last {SHORT_DIGITS} digits or more, `last`, `last-1` and so on up to "
        f"`last-{BACK_MAX}`, or the name of what has one."
    )
    REFERENCE_AMBIGUOUS = "This means several: say which by its id."
    NAME_LIKE_AN_ID = (
        f"This name would be read as an id ({SHORT_DIGITS} or more of the digits 0-9 and a-f) or as a place in a list "
        "(`last`, `last-1`, `-1`): choose another one."
    )
    NAME_NOT_IN_ADDRESSES = (
        "A name with a slash, and a few such as `..` and `usage`, cannot stand in an address: choose another."
    )


class ObjectKind(Enum):
    """What has an id that people write, and what several of it are called."""

    ACCOUNT = "accounts"
    ADJUSTMENT = "adjustments"
    ARTEFACT = "artefacts"
    JOB = "jobs"
    JOIN_TOKEN = "join tokens"  # noqa: S105
    KEY = "API keys"
    LEDGER_ACCOUNT = "accounts of the ledger"
    LETTER = "letters"
    MODEL = "models"
    NODE = "nodes"
    REVIEW = "reviews"
    SESSION = "sessions"


NAMED = frozenset(
    {
        ObjectKind.ACCOUNT,
        ObjectKind.ARTEFACT,
        ObjectKind.JOB,
        ObjectKind.JOIN_TOKEN,
        ObjectKind.KEY,
        ObjectKind.MODEL,
        ObjectKind.NODE,
    }
)
"""Kinds whose objects have names; an account's is its e-mail address."""

NEWEST_OF_ITS_NAME = frozenset({ObjectKind.JOB})
"""Kinds of which people give the same name again and mean the newest."""


@dataclass(frozen=True)
class IdEnd:
    """The last digits of an id, without hyphens."""

    digits: str


@dataclass(frozen=True)
class FromLast:
    """A place counted from the newest, which is 0."""

    back: int


@dataclass(frozen=True)
class GivenName:
    text: str


Reference: TypeAlias = UUID | IdEnd | FromLast | GivenName


class Referent(NamedTuple):
    """What a reference may mean: an object that its caller may see."""

    id: UUID
    account_id: UUID | None
    name: str
    state: str


@dataclass(frozen=True)
class ReferenceObjection:
    """Why a reference means nothing: the refusal, and among what to choose."""

    refusal: ReferenceRefusal
    sentence: str


def read_reference(text: str, kind: ObjectKind) -> Reference | ReferenceRefusal:
    """What somebody wrote. Only what is well-formed reaches the database."""
    if _WHOLE.fullmatch(text):
        return UUID(text)
    if _END.fullmatch(text):
        return IdEnd(text.replace("-", "").lower())
    if _BACK.fullmatch(text):
        return _place(text)
    is_name = 0 < len(text) <= REFERENCE_MAX and text.isprintable() and not _MINUS.fullmatch(text)
    return GivenName(text) if is_name and kind in NAMED else ReferenceRefusal.REFERENCE_MALFORMED


def choose(
    kind: ObjectKind, reference: Reference, referents: Sequence[Referent]
) -> Referent | ReferenceObjection | None:
    """The one that is meant, of those found, newest first; None if there is none. Nobody guesses among several."""
    owners = {referent.account_id for referent in referents}
    if isinstance(reference, GivenName) and kind in NEWEST_OF_ITS_NAME and len(owners) == 1:
        return referents[0]
    if len(referents) < 2:
        return referents[0] if referents else None
    how = f"end in {reference.digits}" if isinstance(reference, IdEnd) else "have this name"
    ends = distinct_ends([referent.id for referent in referents])
    choices = [_words(end, referent) for end, referent in zip(ends, referents, strict=True)]
    listed = ", ".join(choices[:CHOICES_MAX]) + (", …" if len(choices) > CHOICES_MAX else "")
    sentence = f"Several of the {kind.value} {how}: {listed}. Say which by these digits."
    return ReferenceObjection(ReferenceRefusal.REFERENCE_AMBIGUOUS, sentence)


def refused_name(name: str) -> ReferenceRefusal | None:
    """Why nothing may have this name: nobody could reach it by that."""
    bare = name.strip()
    if any(form.fullmatch(bare) for form in (_WHOLE, _END, _BACK, _MINUS)):
        return ReferenceRefusal.NAME_LIKE_AN_ID
    return None if is_addressable(bare) else ReferenceRefusal.NAME_NOT_IN_ADDRESSES


def is_addressable(text: str) -> bool:
    """Whether a text can stand in an address in the place of an id."""
    return "/" not in text and text not in _IN_ADDRESSES


def distinct_ends(ids: Collection[UUID]) -> list[str]:
    """The ends by which these differ from one another, as short as may be."""
    digits = [identifier.hex for identifier in ids]
    length = SHORT_DIGITS
    while len({text[-length:] for text in digits}) < len(digits):
        length += 1
    return [text[-length:] for text in digits]


def _place(text: str) -> FromLast | ReferenceRefusal:
    digits = text[len("last-") :]
    if len(digits) > len(str(BACK_MAX)):
        return ReferenceRefusal.REFERENCE_MALFORMED
    return FromLast(int(digits or 0))


def _words(end: str, referent: Referent) -> str:
    about = ", ".join(word for word in (referent.name, referent.state) if word)
    return f"{end} ({about})" if about else end
