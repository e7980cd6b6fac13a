"""What speaks for and against the candidates of one task, looked at before one of them is taken.

Few candidates are looked at, however many there are: the best, the nodes that must not have the task, and some of the
others, in turn, so that every node is looked at now and then. Looking takes nothing and changes nothing.
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
"""Objections that may be over when others have finished."""


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
    """The candidates of a task; the one that gets it first, then the next best, then some of the others.

    `nodes` is how many there were in all. Where `lower_wins`, terms are costs.
    """

    candidates: tuple[ConsideredCandidate, ...]
    nodes: int
    policy: str
    lower_wins: bool


@dataclass(frozen=True)
class WaitReasons:
    """Why a task waits: how many of the nodes looked at there is each objection to.

    `soon` of them could have it as soon as what they have in hand is done.
    """

    counts: Mapping[str, int]
    nodes: int
    looked: int
    soon: int


def compare_candidates(
    pool: CandidatePool, request: Demand, now: Instant, others: Iterable[UUID], is_too_dear: Callable[[UUID], bool]
) -> CandidateComparison | None:
    """The best, those that must not have the task, and some of the others. None if nobody can have it."""
    best: dict[UUID, ConsideredCandidate] = {}
    rest = {node_id: _excluded(pool, request, now, node_id) for node_id in sorted(request.excluded_nodes)[:OTHERS_MAX]}
    for one in _explained(pool, request, now, pool.ranked(request, now, BEST_MAX + OTHERS_MAX)):
        (rest if is_too_dear(one.node_id) else best)[one.node_id] = _weighed(one, is_too_dear)
        if len(best) == BEST_MAX:
            break
    if not best:
        return None
    for one in _explained(pool, request, now, others):
        if len(rest) >= OTHERS_MAX:
            break
        if one.node_id not in best:
            rest.setdefault(one.node_id, _weighed(one, is_too_dear))
    candidates = (*best.values(), *list(rest.values())[:OTHERS_MAX])
    return CandidateComparison(candidates, len(pool), request.policy, pool.counts_costs(request.policy))


def count(
    objected: Iterable[tuple[UUID, tuple[PlacementObjection, ...]]],
    request: Demand,
    sellers: Mapping[UUID, Seller],
    is_too_dear: Callable[[UUID], bool],
) -> WaitReasons:
    """How many there is each objection to. Who is free and could have it is too dear, or was not looked at then."""
    counts: Counter[str] = Counter()
    looked = soon = 0
    for node_id, against in objected:
        dear = is_too_dear(node_id)
        looked += 1
        counts.update(why.code for why in against)
        counts[PlacementObjection.TOO_DEAR.code] += dear and PlacementObjection.TOO_DEAR not in against
        soon += not dear and BUSY.issuperset(against) and _holds_when_free(sellers[node_id], request)
    return WaitReasons({code: times for code, times in counts.items() if times}, len(sellers), looked, soon)


def _explained(
    pool: CandidatePool, request: Demand, now: Instant, node_ids: Iterable[UUID]
) -> Iterator[PolicyAssessment]:
    for node_id in node_ids:
        if one := pool.explain(request, now, node_id):
            yield one


def _weighed(one: PolicyAssessment, is_too_dear: Callable[[UUID], bool]) -> ConsideredCandidate:
    if not one.objections and is_too_dear(one.node_id):
        return ConsideredCandidate(one.node_id, (PlacementObjection.TOO_DEAR.code,), {})
    return ConsideredCandidate(one.node_id, tuple(why.code for why in one.objections), one.terms)


def _excluded(pool: CandidatePool, request: Demand, now: Instant, node_id: UUID) -> ConsideredCandidate:
    """A node that must not have the task is told also when it is in the pool no more."""
    one = pool.explain(request, now, node_id)
    objections = one.objections if one else (PlacementObjection.EXCLUDED,)
    return ConsideredCandidate(node_id, tuple(why.code for why in objections), {})


def _holds_when_free(seller: Seller, request: Demand) -> bool:
    """Whether the node could have the task if it had nothing else."""
    node = seller.candidate
    return (
        len(node.devices) >= request.devices
        and node.cpu_milli >= request.cpu_milli
        and node.memory_mib >= request.memory_mib
        and node.disk_mib >= request.disk_mib
    )
