"""The audit trail: acts chained by their hashes, so that every change to them is noticed.

An act is an audited event at its position in the chain. Its hash covers its content and the hash of the act before
it. Whoever edits, removes or moves an act breaks the chain there; whoever recomputes the rest of it, or cuts it off, no
longer agrees with a tip that somebody kept. A restored backup removes acts, too, but an act records the restore.
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
    """The end of a chain: whoever keeps it can later check that everything up to it is unchanged."""

    number: int
    sha256: bytes
    at: Instant | None

    def __str__(self) -> str:
        return f"{self.number}:{self.sha256.hex()}"


NO_ACTS = TrailTip(0, bytes(32), None)
"""The tip of a trail without acts."""


@dataclass(frozen=True)
class Act:
    """One row of the trail. `body` is JSON on one line, kept exactly as it was hashed."""

    number: int
    generation: int
    transaction: int
    event_number: int
    at: Instant
    event_id: UUID
    kind: str
    subject: str
    body: str
    previous: bytes
    sha256: bytes

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.generation, self.transaction, self.event_number)

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
    """The first thing that is wrong with a trail: the damage, the act, and a sentence about it."""

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


def chain_events(tip: TrailTip, events: Iterable[RecordedEvent]) -> Sequence[Act]:
    """The acts that continue a chain behind its tip, one for each event."""
    acts: list[Act] = []
    for event in events:
        body = json.dumps(event.body, sort_keys=True, separators=(",", ":"))
        loose = Act(tip.number + 1, *event.cursor, event.at, event.id, event.kind, event.subject, body, tip.sha256, b"")
        acts.append(replace(loose, sha256=digest(loose)))
        tip = acts[-1].tip
    return acts


class TrailVerifier:
    """Takes the acts of a trail in order and reports the first flaw. Remembers only the last act.

    Tips that are `demanded` must be in the trail. Tips that are `expected` may be missing where the trail itself
    records that a backup was restored after them; they are then `lost`. A `partial` trail begins anywhere.
    """

    def __init__(
        self, *, demanded: Iterable[TrailTip] = (), expected: Iterable[TrailTip] = (), partial: bool = False
    ) -> None:
        self.head = NO_ACTS
        self.lost: list[TrailTip] = []
        self._demanded = frozenset(demanded)
        self._tips = sorted({*self._demanded, *expected}, key=lambda tip: tip.number, reverse=True)
        self._partial = partial
        self._first = True
        self._cursor = LOG_START
        self._restores: list[Act] = []

    def take(self, act: Act) -> Flaw | None:
        """The flaw that this act shows, after all the acts before it."""
        first, self._first = self._first, False
        if first and self._partial and act.number > 1 and (flaw := self._begin_at(act)):
            return flaw
        if flaw := _break(self.head, self._cursor, act):
            return flaw
        if act.kind == PoolRestored.kind:
            self._restores.append(act)
        self.head, self._cursor = act.tip, act.cursor
        while self._tips and self._tips[-1].number <= act.number:
            tip = self._tips.pop()
            if tip.sha256 != act.sha256 and not self._excused(tip):
                return self._unlike(tip)
        return None

    def finish(self) -> Flaw | None:
        """The flaw that only the end shows: the trail is shorter than a tip says it was."""
        while self._tips:
            tip = self._tips.pop()
            if not self._excused(tip):
                shortened = f"The trail ends at act {self.head.number}, and once had {tip.number}"
                return Flaw(Damage.CUT, self.head.number + 1, f"{shortened}: its tail was cut.{self._of_restores(tip)}")
        return None

    def _begin_at(self, act: Act) -> Flaw | None:
        """The acts before this one are not here, so no tip before it can be checked, except the last."""
        self.head = TrailTip(act.number - 1, act.previous, None)
        while self._tips and self._tips[-1].number < act.number:
            tip = self._tips.pop()
            if tip.number == self.head.number and tip.sha256 != act.previous:
                return self._unlike(tip)
            if tip.number < self.head.number and tip in self._demanded:
                sentence = f"Act {tip.number} is not here: this part of the trail begins at act {act.number}."
                return Flaw(Damage.REMOVED, tip.number, sentence)
        return None

    def _excused(self, tip: TrailTip) -> bool:
        if tip in self._demanded or not self._restores_after(tip):
            return False
        self.lost.append(tip)
        return True

    def _restores_after(self, tip: TrailTip) -> list[Act]:
        return [act for act in self._restores if tip.at is not None and tip.at <= act.at and tip.number >= act.number]

    def _unlike(self, tip: TrailTip) -> Flaw:
        mismatch = f"Act {tip.number} is not the one that was published as {tip.sha256.hex()}"
        return Flaw(
            Damage.REWRITTEN,
            tip.number,
            f"{mismatch}: it, or something before it, was written anew.{self._of_restores(tip)}",
        )

    def _of_restores(self, tip: TrailTip) -> str:
        """A demanded tip may be missing because of a restore that the trail records; then say so."""
        restores = [act for act in self._restores if tip.number >= act.number]
        return "".join(f" Act {act.number} says that a backup was restored at {_time(act)}." for act in restores)


def _break(tip: TrailTip, last_cursor: Cursor, act: Act) -> Flaw | None:
    """Why an act does not continue the chain."""
    intact = digest(act) == act.sha256 and "\n" not in act.kind + act.body
    if flaw := _misplaced(tip, act, intact=intact):
        return flaw
    if not intact:
        return Flaw(Damage.EDITED, act.number, f"Act {act.number} does not say what it said when it was written.")
    if act.previous != tip.sha256:
        return _broken_between(tip, act)
    if act.cursor <= last_cursor:
        return Flaw(Damage.REORDERED, act.number, f"Act {act.number} tells of an event before that of the act before.")
    return None


def _misplaced(tip: TrailTip, act: Act, *, intact: bool) -> Flaw | None:
    """Why an act is not where it belongs."""
    expected = tip.number + 1
    if not intact and (written := _written_as(act, expected)) is not None:
        sentence = f"Act {act.number} was written as act {written}: acts were moved, added or taken out."
        return Flaw(Damage.REORDERED, act.number, sentence)
    if act.number > expected:
        missing = f"Act {expected} is" if act.number == expected + 1 else f"Acts {expected} to {act.number - 1} are"
        return Flaw(Damage.REMOVED, expected, f"{missing} missing.")
    if act.number < expected:
        return Flaw(Damage.REORDERED, act.number, f"Act {act.number} comes behind act {tip.number}.")
    return None


def _broken_between(tip: TrailTip, act: Act) -> Flaw:
    """Two acts that are each intact and do not fit: the earlier one was exchanged, or the chain has no beginning."""
    if tip.number == 0:
        return Flaw(Damage.REMOVED, act.number, f"Act {act.number} continues a chain whose beginning is not here.")
    sentence = f"Act {tip.number} is not the one that act {act.number} was chained to: it was exchanged."
    return Flaw(Damage.EDITED, tip.number, sentence)


def _written_as(act: Act, expected: int) -> int | None:
    """The number that makes a broken act intact, and that it therefore had when it was written."""
    near = range(max(1, act.number - _NEIGHBOURS), act.number + _NEIGHBOURS)
    numbers = chain((expected,), near)
    return next((n for n in numbers if n != act.number and digest(replace(act, number=n)) == act.sha256), None)


def _time(act: Act) -> str:
    return as_datetime(act.at).isoformat(timespec="seconds")
