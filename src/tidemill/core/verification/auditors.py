"""Who may check whose work, and who sits on a jury.

A house node checks, wherever one is free. Only where none is, an owner does who is another than everyone involved and
has a record: friends under different names hand each other their answers, and save the work of every check that they
are drawn for. Nobody is asked whether they want to: an audit comes as a task like any other. When nobody independent is
there the verdict waits; it is never skipped.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from uuid import UUID

from tidemill.core.refusals import Refusal
from tidemill.core.settings.trust import AuditSettings

HOUSE_WEIGHT = 1000
"""On a jury, a house node is drawn as often as an owner's node of the highest reputation."""


class AuditorRefusal(Refusal):
    NO_INDEPENDENT_AUDITOR = "Nobody independent is there to check this: the verdict waits until somebody is."


@dataclass(frozen=True)
class Candidate:
    """A node that could execute the attempt again: device, memory and numeric class fit, and it is free."""

    node_id: UUID
    owner_id: UUID
    reputation_points: int
    house: bool = False


@dataclass(frozen=True)
class Chosen:
    """Who was drawn, out of how many, and what ruled the others out."""

    candidates: tuple[Candidate, ...]
    because: str


def choose_auditor(
    candidates: Sequence[Candidate], involved: Collection[UUID], draw: float, rules: AuditSettings
) -> Chosen | AuditorRefusal:
    """Draw one of the house, or, where none is free, one that shares no owner with anybody involved, by reputation."""
    eligible = _eligible(candidates, involved, rules)
    of_the_house = [one for one in eligible if one.house]
    return _drawn(of_the_house or eligible, [draw], len(candidates))


def choose_jury(
    candidates: Sequence[Candidate], involved: Collection[UUID], draws: Sequence[float], rules: AuditSettings
) -> Chosen | AuditorRefusal:
    """One juror a draw, no two of one owner, by reputation. House nodes count as nodes, not as one owner."""
    return _drawn(_eligible(candidates, involved, rules), draws, len(candidates))


def _eligible(candidates: Sequence[Candidate], involved: Collection[UUID], rules: AuditSettings) -> list[Candidate]:
    return [
        one
        for one in candidates
        if one.house or (one.owner_id not in involved and one.reputation_points >= rules.auditor_floor_points)
    ]


def _drawn(eligible: Sequence[Candidate], draws: Sequence[float], asked: int) -> Chosen | AuditorRefusal:
    left = sorted(eligible, key=lambda one: one.node_id)
    independent, chosen = len(left), list[Candidate]()
    for draw in draws:
        if not left:
            return AuditorRefusal.NO_INDEPENDENT_AUDITOR
        picked = _weighted(left, draw)
        chosen.append(picked)
        left = [one for one in left if one.node_id != picked.node_id and (one.house or not _same_owner(one, picked))]
    because = f"Drawn from {independent} nodes of the house, or independent with a record, of {asked} that were free."
    return Chosen(tuple(chosen), because)


def _same_owner(one: Candidate, other: Candidate) -> bool:
    return one.owner_id == other.owner_id


def _weighted(candidates: Sequence[Candidate], draw: float) -> Candidate:
    # A weight of at least one: where no reputation is asked for, an auditor with none can still be drawn.
    weights = [HOUSE_WEIGHT if one.house else max(1, one.reputation_points) for one in candidates]
    sums = list(accumulate(weights))
    return candidates[min(bisect_right(sums, draw * sums[-1]), len(candidates) - 1)]
