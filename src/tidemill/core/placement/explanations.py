"""Why tasks went to their nodes and what others wait for: what is recorded of it, and in which sentences it is told.

The sentences say only what was recorded: where nothing was, they say that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.rule import PlacementObjection

SENTENCES: Mapping[str, str] = {why.code: why.sentence for why in PlacementObjection}

NOT_KEPT = "What spoke for and against the nodes was not kept for this attempt: it is, for some of many."
NO_NODES = "There is no node that may get work now."
SOON = "Nodes that could have it are busy, and it gets one as soon as there is room."


@dataclass(frozen=True)
class ConsideredCandidate:
    """One candidate: the codes of the objections to it, or the terms of its score."""

    node_id: UUID
    objections: tuple[str, ...]
    terms: Mapping[str, float]

    @property
    def score(self) -> float | None:
        return None if self.objections else sum(self.terms.values())


@dataclass(frozen=True)
class CandidateComparison:
    """The candidates of a task: first the one that gets it, then the next best, then some of the others.

    `nodes` is how many there were in all. Where `lower_wins`, terms are costs.
    """

    candidates: tuple[ConsideredCandidate, ...]
    nodes: int
    policy: str
    lower_wins: bool


@dataclass(frozen=True)
class WaitReasons:
    """Why a task waits: the number of considered nodes to which each objection applies.

    `soon` of them could have it as soon as their work in hand is done.
    """

    counts: Mapping[str, int]
    nodes: int
    looked: int
    soon: int


@dataclass(frozen=True)
class PlacementExplanation:
    """Why tasks of a job were placed as they were. The first of them was weighed; the others are alike."""

    job_id: UUID
    at: Instant
    kind: str
    task_ids: Sequence[UUID]
    weighing: CandidateComparison


@dataclass(frozen=True)
class QueueExplanation:
    """Why a task of a job, and those alike, wait."""

    job_id: UUID
    at: Instant
    task_id: UUID
    nowhere: WaitReasons


def objection(code: str) -> str:
    """The sentence of an objection; of one that this version does not know, its code."""
    return SENTENCES.get(code, code)


def why_waiting(nowhere: WaitReasons) -> str:
    """What a task waits for."""
    if not nowhere.looked:
        return NO_NODES
    looked = _counted(nowhere)
    if nowhere.soon:
        have = "has" if nowhere.soon == 1 else "have"
        return f"It waits for room: of {looked}, {nowhere.soon} could have it and {have} too little free."
    counts = sorted(nowhere.counts.items(), key=lambda pair: (-pair[1], pair[0]))
    reasons = " ".join(f"({count}) {objection(code)}" for code, count in counts)
    return f"No node can have it, of {looked}. {reasons}".rstrip()


def why_placed(weighing: CandidateComparison, node_id: UUID) -> str:
    """Why a task went to a node. Where alike tasks were placed together, only the first of them was weighed."""
    chosen = weighing.candidates[0]
    if node_id == chosen.node_id:
        return _why_chosen(weighing)
    mine = _of(weighing, node_id)
    stood = f"with {mine.score:.3f}" if mine and mine.score is not None else "not among the few that were looked at"
    return (
        f"It was placed together with alike tasks. When the first of them went elsewhere with {_score(chosen)}, this "
        f"node was {stood}; then its turn came."
    )


def why_lost(weighing: CandidateComparison, node_id: UUID) -> str:
    """Why a node did not get a task for which it was considered."""
    chosen, mine = weighing.candidates[0], _of(weighing, node_id)
    if mine is None or node_id == chosen.node_id:
        return "It was chosen."
    if mine.objections:
        return " ".join(objection(code) for code in mine.objections)
    if _is_as_good(mine, chosen, lower_wins=weighing.lower_wins):
        return f"It was as good as the chosen one, with {_score(mine)}; equals take turns."
    return f"Its score was {_score(mine)}, and that of the chosen one {_score(chosen)}{_lowest(weighing)}."


def _why_chosen(weighing: CandidateComparison) -> str:
    chosen, *rivals = weighing.candidates
    next_best = next((candidate for candidate in rivals if not candidate.objections), None)
    if next_best is None:
        only = (
            "It was the only node there was" if weighing.nodes == 1 else f"Of {weighing.nodes} nodes no other was found"
        )
        return f"{only} that could have it."
    best = f"It was the best of {weighing.nodes} nodes under the policy `{weighing.policy}`"
    if _is_as_good(next_best, chosen, lower_wins=weighing.lower_wins):
        return f"{best}, with {_score(chosen)}; the next was as good, and equals take turns."
    return f"{best}: its score was {_score(chosen)}, and that of the next {_score(next_best)}{_lowest(weighing)}."


def _is_as_good(rival: ConsideredCandidate, chosen: ConsideredCandidate, *, lower_wins: bool) -> bool:
    mine, its = rival.score or 0.0, chosen.score or 0.0
    return mine <= its if lower_wins else mine >= its


def _of(weighing: CandidateComparison, node_id: UUID) -> ConsideredCandidate | None:
    return next((candidate for candidate in weighing.candidates if candidate.node_id == node_id), None)


def _score(candidate: ConsideredCandidate) -> str:
    return f"{candidate.score or 0.0:.3f}"


def _lowest(weighing: CandidateComparison) -> str:
    return "; the lowest wins" if weighing.lower_wins else ""


def _counted(nowhere: WaitReasons) -> str:
    nodes = "1 node" if nowhere.looked == 1 else f"{nowhere.looked} nodes"
    return f"{nodes} that may get work" if nowhere.looked == nowhere.nodes else f"{nodes} that were looked at"
