"""What nodes report about their attempts, as it arrived; each report names an attempt and its lease."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID


class AttemptLease(NamedTuple):
    """Which attempt, under which lease."""

    attempt_id: UUID
    lease: int


@dataclass(frozen=True, slots=True)
class AcceptReport:
    of: AttemptLease


@dataclass(frozen=True, slots=True)
class DeclineReport:
    of: AttemptLease
    reason: str


@dataclass(frozen=True, slots=True)
class ProgressReport:
    of: AttemptLease
    share_ppm: int


@dataclass(frozen=True, slots=True)
class OutputReport:
    """Lines of a task's output, the first of which has this number."""

    of: AttemptLease
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReceiptsReport:
    """A batch of receipts under one signature, as it was sent."""

    batch: bytes
    signature: bytes


AttemptReport: TypeAlias = AcceptReport | DeclineReport | ProgressReport | OutputReport | ReceiptsReport
