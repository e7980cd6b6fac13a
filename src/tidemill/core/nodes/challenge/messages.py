"""What pool and node send each other in a challenge, as JSON that fits into one report or instruction each.

An instruction repeats the state in the database, so a node may see it twice. An answer comes from a stranger: it is
bounded here, and `ChallengeAnswer.fits` says whether it belongs to this challenge before any of it is kept.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Annotated
from uuid import UUID

from tidemill.core.bounded_json import Malformed, Most, Text, Whole, json_bytes, read_json
from tidemill.core.merkle import HASH_BYTES, path_bytes
from tidemill.core.nodes.challenge.tasks import DIGESTS_IN_LEAF, PAGE_BYTES, PARENTS, MemoryTask, SpeedTask
from tidemill.core.nodes.machine.hardware import DEVICES_MAX, LINKS_MAX, WORDS_MAX, Index

CHALLENGE = "challenge"
"""The kind of the pool's instructions and of the node's facts."""

BODY_MAX_BYTES = 64 * 1024
ORDER_MAX_BYTES = 64 * 1024
PAGES_DRAWN = 24
ROWS_DRAWN = 4

LEAF_BYTES = DIGESTS_IN_LEAF * 8

HOST = DEVICES_MAX
"""The number under which a machine with GPUs shows its own cores and memory. Without GPUs its CPU shows them."""

CHALLENGED_MAX = DEVICES_MAX + 1
ChallengedIndex = Annotated[int, Whole(0, HOST)]
LeafPosition = Annotated[int, Whole(0, 2**48)]
ChallengeName = Annotated[str, Text(32)]


class ChallengePart(Enum):
    """The part of a device that is tested."""

    SPEED = "speed"
    MEMORY = "memory"


class AnswerStep(Enum):
    COMMITMENT = "commitment"
    OPENING = "opening"
    LINKS = "links"
    CANNOT = "cannot"


@dataclass(frozen=True)
class DeviceTask:
    """What one device, or the machine itself, must do: multiply first, then fill its memory and keep it."""

    index: ChallengedIndex
    speed: SpeedTask
    memory: MemoryTask


@dataclass(frozen=True)
class DevicePair:
    """Two devices that claim to be linked."""

    one: Index
    other: Index


@dataclass(frozen=True)
class LinkRate:
    """What one device sent to the other, by the node's own clock."""

    one: Index
    other: Index
    mb_per_s: Annotated[int, Whole(0, 10_000_000)]


@dataclass(frozen=True)
class DeviceDraw:
    """The pages and the rows that a device has to show."""

    index: ChallengedIndex
    pages: Annotated[tuple[LeafPosition, ...], Most(PAGES_DRAWN)]
    rows: Annotated[tuple[LeafPosition, ...], Most(ROWS_DRAWN)]


@dataclass(frozen=True)
class ChallengeInstruction:
    """Either the tasks or the draw. Memory is kept for `keep_s` at most, however long the draw takes."""

    challenge: ChallengeName
    keep_s: Annotated[int, Whole(1, 7 * 86_400)]
    tasks: Annotated[tuple[DeviceTask, ...], Most(CHALLENGED_MAX)] = ()
    pairs: Annotated[tuple[DevicePair, ...], Most(LINKS_MAX)] = ()
    draws: Annotated[tuple[DeviceDraw, ...], Most(CHALLENGED_MAX)] = ()


@dataclass(frozen=True)
class ChallengeAnswer:
    """One answer of a node. `shown` is base64; `words` say why it cannot be challenged."""

    challenge: ChallengeName
    device: ChallengedIndex
    step: AnswerStep
    part: ChallengePart = ChallengePart.SPEED
    place: LeafPosition = 0
    shown: Annotated[str, Text(46_000)] = ""
    words: Annotated[str, Text(WORDS_MAX)] = ""
    links: Annotated[tuple[LinkRate, ...], Most(LINKS_MAX)] = ()

    @property
    def challenge_id(self) -> UUID | None:
        return UUID(self.challenge) if _is_hex(self.challenge) else None

    @property
    def content(self) -> bytes | None:
        """The shown bytes; None if they are not base64."""
        try:
            return base64.b64decode(self.shown, validate=True)
        except (binascii.Error, ValueError):
            return None

    def fits(self, task: DeviceTask, draw: DeviceDraw | None) -> bool:
        """Whether this is a commitment, or an opening of a drawn position, that the device was asked for; or one of the
        statements of which each device makes one."""
        content = self.content
        if content is None:
            return False
        if self.step in (AnswerStep.LINKS, AnswerStep.CANNOT):
            return not content and self.part is ChallengePart.SPEED and self.place == 0
        if self.step is AnswerStep.COMMITMENT:
            return len(content) == HASH_BYTES and self.place == 0
        if self.step is not AnswerStep.OPENING or draw is None:
            return False
        if self.part is ChallengePart.MEMORY:
            return self.place in draw.pages and len(content) == page_opening_bytes(task.memory, self.place)
        return self.place in draw.rows and len(content) == row_opening_bytes(task.speed)


def page_opening_bytes(task: MemoryTask, position: int) -> int:
    """A page, the page above it and its parents, each with its path; a page of the first step stands alone."""
    pages = 1 if position < task.width else 2 + PARENTS
    return pages * (PAGE_BYTES + path_bytes(task.pages))


def row_opening_bytes(task: SpeedTask) -> int:
    """A row, the leaf with its digest, and the leaf's path."""
    return task.side * 4 + LEAF_BYTES + path_bytes(task.leaves)


def instruction_bytes(instruction: ChallengeInstruction) -> bytes:
    body = json_bytes(instruction)
    assert len(body) <= ORDER_MAX_BYTES, "an instruction fits into one message"
    return body


def instruction_of(body: bytes) -> ChallengeInstruction | Malformed:
    return read_json(ChallengeInstruction, body, ORDER_MAX_BYTES)


def answer_bytes(answer: ChallengeAnswer) -> bytes:
    """An answer as it travels. Shortens words that are too long, and replaces what cannot be shown."""
    words = "".join(letter for letter in answer.words if letter.isprintable())[:WORDS_MAX]
    body = json_bytes(replace(answer, words=words))
    assert len(body) <= BODY_MAX_BYTES, "an answer fits into one report"
    return body


def answer_of(body: bytes) -> ChallengeAnswer | Malformed:
    return read_json(ChallengeAnswer, body, BODY_MAX_BYTES)


def as_text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _is_hex(text: str) -> bool:
    return len(text) == 32 and all(letter in "0123456789abcdef" for letter in text)


@dataclass(frozen=True)
class DeviceOpenings:
    """What a device answered: its two commitments, and its openings, by position."""

    speed_root: bytes
    memory_root: bytes
    pages: Mapping[int, bytes]
    rows: Mapping[int, bytes]
