"""When nodes are present: they come and go by chance (Weibull spans) and by their owners' hours.

Spans are drawn as if the pool had been running for ever: a node present at the beginning is in the middle of a span. A
shape below 1 means that nodes that have stayed long stay longer, as people's machines do.
"""

import csv
from dataclasses import dataclass
from math import gamma
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import HOUR, Instant
from tidemill.core.nodes.rules import windows
from tidemill.sim.days.worlds.world import Member, World, WorldFault

Instants = NDArray[np.int64]
Turn = tuple[int, int, bool]
"""The time, the member, and whether it comes."""


SHAPES = (0.1, 100.0)
SCALES_H = (0.01, 1e6)
"""The bounds of a fit: beyond them, nodes would come and go all the time, or numbers would overflow."""


@dataclass(frozen=True)
class Spans:
    """How long something lasts, in hours."""

    shape: float
    scale_h: float

    @property
    def mean_h(self) -> float:
        return self.scale_h * gamma(1 + 1 / self.shape)


@dataclass(frozen=True)
class Churn:
    """How long nodes stay, and how long they are away."""

    there: Spans
    away: Spans

    @property
    def there_share(self) -> float:
        return self.there.mean_h / (self.there.mean_h + self.away.mean_h)


AT_HOME = Churn(Spans(0.6, 30.0), Spans(0.6, 4.0))
"""Machines of people: present nine hours of ten, mostly for days, and many come and go often."""


def read_churn(file: Path, name: str) -> Churn:
    """One row of a table of fits, by the name in its column `dataset`."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            rows = {row["dataset"]: row for row in csv.DictReader(opened)}
        if name not in rows:
            raise WorldFault(f"There is no fit called {name} in {file}: there are {', '.join(rows) or 'none'}.")
        present, away = (
            Spans(float(rows[name][f"{prefix}_weibull_shape"]), float(rows[name][f"{prefix}_weibull_scale_h"]))
            for prefix in ("avail", "unavail")
        )
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        columns = "dataset and avail_ and unavail_weibull_shape and _weibull_scale_h"
        raise WorldFault(f"{file} is no table of Weibull fits: it needs numbers in the columns {columns}.") from error
    shapes, scales = (present.shape, away.shape), (present.scale_h, away.scale_h)
    if not all(SHAPES[0] <= shape <= SHAPES[1] for shape in shapes) or not all(
        SCALES_H[0] <= scale <= SCALES_H[1] for scale in scales
    ):
        raise WorldFault(
            f"The fit {name} in {file} is none: shapes are from {SHAPES[0]:g} to {SHAPES[1]:g}, "
            f"and scales from {SCALES_H[0]:g} to {SCALES_H[1]:g} hours."
        )
    return Churn(present, away)


def turns(
    world: World, churn: Churn | None, begins: Instant, until_us: int, seed: int
) -> tuple[list[bool], list[Turn]]:
    """Which nodes are present at first, and which come and go when, in order. Without churn none goes by chance."""
    count = len(world.members)
    present = np.ones(count, np.bool_)
    rounds: list[tuple[Instants, Instants, bool]] = []
    if churn is not None:
        present, rounds = _by_chance(churn, count, until_us, np.random.default_rng((seed, 2)))
    turns_of: dict[int, list[Turn]] = {}
    for at, members, comes in rounds:
        for one_at, number in zip(at.tolist(), members.tolist(), strict=True):
            turns_of.setdefault(number, []).append((one_at, number, comes))
    is_there = present.tolist()
    for number, member in enumerate(world.members):
        if member.left_out:
            is_there[number] = False
            turns_of.pop(number, None)
        elif member.windows:
            hours = _hours(member, begins, until_us)
            is_there[number], turns_of[number] = _both(number, is_there[number], turns_of.get(number, []), *hours)
    return is_there, sorted(turn for member_turns in turns_of.values() for turn in member_turns)


def _by_chance(
    churn: Churn, count: int, until_us: int, dice: np.random.Generator
) -> tuple[NDArray[np.bool_], list[tuple[Instants, Instants, bool]]]:
    """Rounds of turns of all members at once, until every next turn is after the end."""
    present = dice.random(count) < churn.there_share
    at = np.where(present, _residual(churn.there, count, dice), _residual(churn.away, count, dice))
    rounds: list[tuple[Instants, Instants, bool]] = []
    is_there, members = present.copy(), np.arange(count)
    while len(members := members[at[members] < until_us]):
        is_there[members] = ~is_there[members]
        for comes in (True, False):
            turning = members[is_there[members] == comes]
            rounds.append((at[turning].copy(), turning, comes))
            at[turning] += _drawn(churn.there if comes else churn.away, len(turning), dice)
    return present, rounds


def _drawn(spans: Spans, count: int, dice: np.random.Generator) -> Instants:
    hours = spans.scale_h * dice.weibull(spans.shape, count)
    return (np.minimum(hours, 1e6) * HOUR).astype(np.int64) + 1


def _residual(spans: Spans, count: int, dice: np.random.Generator) -> Instants:
    """The rest of the span that a moment falls into: long spans are likelier to be hit, at any point."""
    whole_h = spans.scale_h * dice.gamma(1 + 1 / spans.shape, 1.0, count) ** (1 / spans.shape)
    hours = np.minimum(whole_h, 1e6) * dice.random(count)
    return (hours * HOUR).astype(np.int64) + 1


def _hours(member: Member, begins: Instant, until_us: int) -> tuple[bool, list[Turn]]:
    """An owner's hours as turns."""
    is_open = windows.is_open(member.windows, begins, member.utc_offset_s)
    hour_turns: list[Turn] = []
    at, now_open = begins, is_open
    while True:
        ahead = windows.closes_at if now_open else windows.opens_at
        following = ahead(member.windows, at, member.utc_offset_s)
        if following is None or following - begins >= until_us:
            return is_open, hour_turns
        at, now_open = following, not now_open
        hour_turns.append((at - begins, 0, now_open))


def _both(
    number: int, is_present: bool, turns_: list[Turn], is_open: bool, hours: list[Turn]
) -> tuple[bool, list[Turn]]:
    """A node is present when chance and its owner's hours allow it."""
    first = present = is_present and is_open
    merged_turns: list[Turn] = []
    merged = sorted([*((at, 0, comes) for at, _, comes in turns_), *((at, 1, opens) for at, _, opens in hours)])
    for at, which, on in merged:
        is_present, is_open = (on, is_open) if which == 0 else (is_present, on)
        if (is_present and is_open) != present:
            present = not present
            merged_turns.append((at, number, present))
    return first, merged_turns
