"""What can be posted: transfers, holds and releases; and every reason to refuse one.

A capture is a transfer out of an account that names a hold on it. Whoever causes an entry makes its id and stores it
with the cause, so that a retry carries the same id. Whether an entry is linked belongs to its batch, not to the entry.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.refusals import Refusal

LATEST = Instant(7_258_118_400 * SECOND)
"""The year 2200: PostgreSQL counts microseconds exactly until then, and somewhat longer."""
TEXT_MAX = 2_000


def is_storable(*texts: str) -> bool:
    """Whether a database can hold these texts: none empty or long, no NUL, nothing that UTF-8 cannot encode."""
    return all(0 < len(text) <= TEXT_MAX and "\0" not in text and _has_bytes(text) for text in texts)


def _has_bytes(text: str) -> bool:
    return text.isascii() or text.encode(errors="ignore").decode() == text


@dataclass(frozen=True, slots=True)
class Transfer:
    """One debit and one credit. `linked`: succeeds or fails together with the next entry of the batch."""

    id: UUID
    debit_id: UUID
    credit_id: UUID
    amount_uc: int
    currency: str
    kind: str
    cause: str
    hold_id: UUID | None = None
    linked: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        assert is_storable(self.currency, self.kind, self.cause), "an entry's texts are not empty, and can be stored"


@dataclass(frozen=True, slots=True)
class Hold:
    """Part of a balance reserved for a purpose, until it is captured, released or expired."""

    id: UUID
    account_id: UUID
    amount_uc: int
    currency: str
    expires_at: Instant
    cause: str
    linked: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        assert is_storable(self.currency, self.cause), "an entry's texts are not empty, and can be stored"
        assert 0 <= self.expires_at < LATEST, "a hold expires at a time that can be stored"


@dataclass(frozen=True, slots=True)
class Release:
    """Gives back what is left of a hold. After it nothing can be captured."""

    id: UUID
    hold_id: UUID
    cause: str
    linked: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        assert is_storable(self.cause), "an entry's texts are not empty, and can be stored"


Entry: TypeAlias = Transfer | Hold | Release

_FIELDS = {shape: [part.name for part in fields(shape) if part.compare] for shape in (Transfer, Hold, Release)}


def body(entry: Entry) -> dict[str, Any]:
    """An entry as JSON can hold it: its shape and fields, ids as text."""
    values = {name: getattr(entry, name) for name in _FIELDS[type(entry)]}
    texts = {name: str(value) if isinstance(value, UUID) else value for name, value in values.items()}
    return {"shape": type(entry).__name__} | texts


def entry_of(written: Mapping[str, Any]) -> Entry:
    """The entry that a body encodes."""
    shape = next(shape for shape in _FIELDS if shape.__name__ == written["shape"])
    values = {name: written[name] for name in _FIELDS[shape]}
    ids = {name: UUID(value) for name, value in values.items() if name.endswith("id") and value is not None}
    return shape(**(values | ids))


def fingerprint(entry: Entry) -> bytes:
    """Sixteen bytes that stand for an entry when it is archived."""
    text = json.dumps(body(entry), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()[:16]


class PostingRefusal(Refusal):
    """Why an entry was not posted, in order of precedence: of several reasons the first is reported."""

    ID_REUSED = "This id was used for another entry: nothing was posted; use a new id for a new cause."
    LINK_REPEATED = "Some of the linked entries were answered before, or name one id twice: nothing was posted."
    ID_OUT_OF_TIME = "The entry's id was made too long ago, or in the future: make a new one for a new cause."
    AMOUNT_OUT_OF_BOUNDS = "An amount is at least one micro-credit and at most a thousand million credits."
    SAME_ACCOUNT = "Money cannot move from an account to itself."
    UNKNOWN_ACCOUNT = "There is no such account: open it first."
    CURRENCY_MISMATCH = "The accounts and the entry are not all in one currency."
    ACCOUNT_FROZEN = "The account is frozen: an operator must unfreeze it first."
    UNKNOWN_HOLD = "There is no such hold."
    HOLD_OF_ANOTHER_ACCOUNT = "The hold is not on the account that is debited."
    HOLD_OVER = "The hold was released or has expired."
    HOLD_TOO_SMALL = "The hold has less left than is to be captured."
    INSUFFICIENT_FUNDS = "The account has less available than that."
    LINK_BROKEN = "Another of the linked entries was refused, so none of them was posted."
