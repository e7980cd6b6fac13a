"""What nodes say about their attempts, as it arrived: claims, each of an attempt under a lease."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID


class OfAttempt(NamedTuple):
    """Which attempt, under which lease."""

    attempt_id: UUID
    lease: int


@dataclass(frozen=True, slots=True)
class Accepted:
    of: OfAttempt


@dataclass(frozen=True, slots=True)
class Declined:
    of: OfAttempt
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    of: OfAttempt
    share_ppm: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a task's output, the first of which has this number."""

    of: OfAttempt
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Receipts:
    """A batch of receipts under one signature, as it was sent."""

    batch: bytes
    signature: bytes


WorkSaid: TypeAlias = Accepted | Declined | Progress | Lines | Receipts
