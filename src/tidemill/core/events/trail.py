"""The audit trail: acts chained by their hashes, so that no change to what was written stays unnoticed.

An act is an audited event in its place of the chain. Its hash covers all that it says and the hash of the act before
it. Whoever edits, removes or moves an act breaks the chain there; whoever computes the rest of it anew, or cuts it
off, no longer agrees with a head that somebody kept. A restored backup takes acts away, too, but says so by an act.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from uuid import UUID

from tidemill.core.clock import Instant, as_datetime
from tidemill.core.events.log import LOG_START, Cursor, PoolRestored, RecordedEvent

_DOMAIN = "tidemill audit trail 1"
_NEIGHBOURS = 1_000
"""How far away we look for the number under which a moved act was written."""


@dataclass(frozen=True)
class TrailTip:
    """The end of a chain: whoever keeps it can tell later whether everything up to it is as it was."""

    number: int
    sha256: bytes
    at: Instant | None

    def __str__(self) -> str:
        return f"{self.number}:{self.sha256.hex()}"


NO_ACTS = TrailTip(0, bytes(32), None)
"""The head of a trail with nothing in it."""


@dataclass(frozen=True)
class Act:
    """One row of the trail. `body` is JSON on one line, kept exactly as it was hashed."""

    number: int
    cursor: Cursor
    at: Instant
    event_id: UUID
    kind: str
    subject: str
    body: str
    previous: bytes
    sha256: bytes

    @property
    def tip(self) -> TrailTip:
        return TrailTip(self.number, self.sha256, self.at)


class Damage(StrEnum):
    """What was done to a trail."""

    EDITED = "edited"
    REMOVED = "removed"
    REORDERED = "reordered"
    REWRITTEN = "rewritten"
    CUT = "tail cut"
    UNTOLD = "left out"


@dataclass(frozen=True)
class Flaw:
    """The first thing that is wrong with a trail: what, at which act, and how it shows."""

    damage: Damage
    number: int
    sentence: str


def digest(act: Act) -> bytes:
    """The hash of an act. Only its subject may hold a line break, so no two acts have the same lines."""
    lines = (
        _DOMAIN,
        str(act.number),
        act.previous.hex(),
        str(act.cursor),
        str(act.at),
        str(act.event_id),
        act.kind,
        act.subject,
        act.body,
    )
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).digest()


def chain_events(head: TrailTip, events: Iterable[RecordedEvent]) -> Sequence[Act]:
    """The acts that continue a chain behind its head, one for each event."""
    acts: list[Act] = []
    for event in events:
        body = json.dumps(event.body, sort_keys=True, separators=(",", ":"))
        loose = Act(
            head.number + 1, event.cursor, event.at, event.id, event.kind, event.subject, body, head.sha256, b""
        )
        acts.append(replace(loose, sha256=digest(loose)))
        head = acts[-1].tip
    return acts


class TrailVerifier:
    """Takes the acts of a trail in their order, and tells the first flaw. Keeps nothing but the last act.

    Heads that are `demanded` must be in the trail. Those that are `expected` may be missing where the trail itself
    says that a backup was restored after them; they are then `lost`. A `partial` trail begins anywhere.
    """

    def __init__(
        self, *, demanded: Iterable[TrailTip] = (), expected: Iterable[TrailTip] = (), partial: bool = False
    ) -> None:
        self.head = NO_ACTS
        self.lost: list[TrailTip] = []
        self._demanded = frozenset(demanded)
        self._heads = sorted({*self._demanded, *expected}, key=lambda head: head.number, reverse=True)
        self._partial = partial
        self._first = True
        self._cursor = LOG_START
        self._restores: list[Act] = []

    def take(self, act: Act) -> Flaw | None:
        """The flaw that shows at this act, given all before it."""
        first, self._first = self._first, False
        if first and self._partial and act.number > 1 and (flaw := self._begin_at(act)):
            return flaw
        if flaw := _break(self.head, self._cursor, act):
            return flaw
        if act.kind == PoolRestored.kind:
            self._restores.append(act)
        self.head, self._cursor = act.tip, act.cursor
        while self._heads and self._heads[-1].number <= act.number:
            head = self._heads.pop()
            if head.sha256 != act.sha256 and not self._excused(head):
                return self._unlike(head)
        return None

    def finish(self) -> Flaw | None:
        """The flaw that shows only at the end: less is there than a head says there was."""
        while self._heads:
            head = self._heads.pop()
            if not self._excused(head):
                seen = f"The trail ends at act {self.head.number}, and once had {head.number}"
                return Flaw(Damage.CUT, self.head.number + 1, f"{seen}: its tail was cut.{self._of_restores(head)}")
        return None

    def _begin_at(self, act: Act) -> Flaw | None:
        """What came before this act is not here, so nothing can be said of its heads, except of the last."""
        self.head = TrailTip(act.number - 1, act.previous, None)
        while self._heads and self._heads[-1].number < act.number:
            head = self._heads.pop()
            if head.number == self.head.number and head.sha256 != act.previous:
                return self._unlike(head)
            if head.number < self.head.number and head in self._demanded:
                sentence = f"Act {head.number} is not here: this part of the trail begins at act {act.number}."
                return Flaw(Damage.REMOVED, head.number, sentence)
        return None

    def _excused(self, head: TrailTip) -> bool:
        if head in self._demanded or not self._restores_after(head):
            return False
        self.lost.append(head)
        return True

    def _restores_after(self, head: TrailTip) -> list[Act]:
        return [
            act for act in self._restores if head.at is not None and head.at <= act.at and head.number >= act.number
        ]

    def _unlike(self, head: TrailTip) -> Flaw:
        seen = f"Act {head.number} is not the one that was published as {head.sha256.hex()}"
        return Flaw(
            Damage.REWRITTEN,
            head.number,
            f"{seen}: it, or something before it, was written anew.{self._of_restores(head)}",
        )

    def _of_restores(self, head: TrailTip) -> str:
        """A head that was demanded may be gone for a reason that the trail knows; say it."""
        told = [act for act in self._restores if head.number >= act.number]
        return "".join(f" Act {act.number} says that a backup was restored at {_time(act)}." for act in told)


def _break(last: TrailTip, last_cursor: Cursor, act: Act) -> Flaw | None:
    """How an act does not continue the chain."""
    whole = digest(act) == act.sha256 and "\n" not in act.kind + act.body
    if flaw := _misplaced(last, act, whole=whole):
        return flaw
    if not whole:
        return Flaw(Damage.EDITED, act.number, f"Act {act.number} does not say what it said when it was written.")
    if act.previous != last.sha256:
        return _broken_between(last, act)
    if act.cursor <= last_cursor:
        return Flaw(Damage.REORDERED, act.number, f"Act {act.number} tells of an event before that of the act before.")
    return None


def _misplaced(last: TrailTip, act: Act, *, whole: bool) -> Flaw | None:
    """How an act is not where it belongs."""
    expected = last.number + 1
    if not whole and (written := _written_as(act, expected)) is not None:
        sentence = f"Act {act.number} was written as act {written}: acts were moved, added or taken out."
        return Flaw(Damage.REORDERED, act.number, sentence)
    if act.number > expected:
        missing = f"Act {expected} is" if act.number == expected + 1 else f"Acts {expected} to {act.number - 1} are"
        return Flaw(Damage.REMOVED, expected, f"{missing} missing.")
    if act.number < expected:
        return Flaw(Damage.REORDERED, act.number, f"Act {act.number} comes behind act {last.number}.")
    return None


def _broken_between(last: TrailTip, act: Act) -> Flaw:
    """Two acts that are each whole and do not fit: the earlier one was exchanged, or the chain has no beginning."""
    if last.number == 0:
        return Flaw(Damage.REMOVED, act.number, f"Act {act.number} continues a chain whose beginning is not here.")
    sentence = f"Act {last.number} is not the one that act {act.number} was chained to: it was exchanged."
    return Flaw(Damage.EDITED, last.number, sentence)


def _written_as(act: Act, expected: int) -> int | None:
    """The number that makes a broken act whole, which it therefore had when it was written."""
    near = range(max(1, act.number - _NEIGHBOURS), act.number + _NEIGHBOURS)
    numbers = chain((expected,), near)
    return next((n for n in numbers if n != act.number and digest(replace(act, number=n)) == act.sha256), None)


def _time(act: Act) -> str:
    return as_datetime(act.at).isoformat(timespec="seconds")
