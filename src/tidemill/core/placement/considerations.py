"""What speaks for and against the candidates of one task, collected before one of them is taken.

Only a few candidates are considered, however many there are: the best, the nodes that must not have the task, and some
of the others in turn, so that every node is considered now and then. Considering changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.candidate_pool import CandidatePool, PolicyAssessment
from tidemill.core.placement.objections import PlacementObjection
from tidemill.core.placement.seller import Seller

BEST_MAX = 4
OTHERS_MAX = 6

BUSY = frozenset(
    {
        PlacementObjection.DEVICES_BUSY,
        PlacementObjection.PROCESSOR_BUSY,
        PlacementObjection.MEMORY_BUSY,
        PlacementObjection.DISK_FULL,
    }
)
"""Objections that may end when other tasks finish."""


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


def compare_candidates(
    pool: CandidatePool, demand: Demand, now: Instant, others: Iterable[UUID], is_too_dear: Callable[[UUID], bool]
) -> CandidateComparison | None:
    """Compare the best, the nodes that must not have the task, and some of the others. None if no node can have it."""
    best: dict[UUID, ConsideredCandidate] = {}
    rest = {node_id: _excluded(pool, demand, now, node_id) for node_id in sorted(demand.excluded_nodes)[:OTHERS_MAX]}
    for assessment in _explained(pool, demand, now, pool.ranked(demand, now, BEST_MAX + OTHERS_MAX)):
        (rest if is_too_dear(assessment.node_id) else best)[assessment.node_id] = _weighed(assessment, is_too_dear)
        if len(best) == BEST_MAX:
            break
    if not best:
        return None
    for assessment in _explained(pool, demand, now, others):
        if len(rest) >= OTHERS_MAX:
            break
        if assessment.node_id not in best:
            rest.setdefault(assessment.node_id, _weighed(assessment, is_too_dear))
    candidates = (*best.values(), *list(rest.values())[:OTHERS_MAX])
    return CandidateComparison(candidates, len(pool), demand.policy, pool.counts_costs(demand.policy))


def count(
    objected: Iterable[tuple[UUID, tuple[PlacementObjection, ...]]],
    demand: Demand,
    sellers: Mapping[UUID, Seller],
    is_too_dear: Callable[[UUID], bool],
) -> WaitReasons:
    """Count each objection. A free node that could have the task is too expensive, or was not considered then."""
    counts: Counter[str] = Counter()
    looked = soon = 0
    for node_id, against in objected:
        dear = is_too_dear(node_id)
        looked += 1
        counts.update(objection.code for objection in against)
        counts[PlacementObjection.TOO_DEAR.code] += dear and PlacementObjection.TOO_DEAR not in against
        soon += not dear and BUSY.issuperset(against) and _holds_when_free(sellers[node_id], demand)
    return WaitReasons({code: times for code, times in counts.items() if times}, len(sellers), looked, soon)


def _explained(
    pool: CandidatePool, demand: Demand, now: Instant, node_ids: Iterable[UUID]
) -> Iterator[PolicyAssessment]:
    for node_id in node_ids:
        if assessment := pool.explain(demand, now, node_id):
            yield assessment


def _weighed(assessment: PolicyAssessment, is_too_dear: Callable[[UUID], bool]) -> ConsideredCandidate:
    if not assessment.objections and is_too_dear(assessment.node_id):
        return ConsideredCandidate(assessment.node_id, (PlacementObjection.TOO_DEAR.code,), {})
    return ConsideredCandidate(
        assessment.node_id, tuple(objection.code for objection in assessment.objections), assessment.terms
    )


def _excluded(pool: CandidatePool, demand: Demand, now: Instant, node_id: UUID) -> ConsideredCandidate:
    """A node that must not have the task is listed even after it has left the pool."""
    assessment = pool.explain(demand, now, node_id)
    objections = assessment.objections if assessment else (PlacementObjection.EXCLUDED,)
    return ConsideredCandidate(node_id, tuple(objection.code for objection in objections), {})


def _holds_when_free(seller: Seller, demand: Demand) -> bool:
    """Whether the node could have the task if it had nothing else."""
    node = seller.candidate
    return (
        len(node.devices) >= demand.devices
        and node.cpu_milli >= demand.cpu_milli
        and node.memory_mib >= demand.memory_mib
        and node.disk_mib >= demand.disk_mib
    )
