"""Explains placement decisions, so that the cost stays small and bounded however many there are.

The explainer listens: the placer tells it whose turn comes, and the caller what was applied. It changes nothing.

The first tasks of a job, and every task placed again after a try, are compared in every batch, up to a bound; of the
rest, a few a second. Alike tasks of a job that are placed together share one explanation. Each shape of waiting tasks
is explained when it begins to wait and every so often after; those explained longest ago come first.

Only a few candidates are considered, however many there are: the best, the nodes that must not have the task, and some
of the others in turn, so that every node is considered now and then.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.explanations import (
    CandidateComparison,
    ConsideredCandidate,
    PlacementExplanation,
    QueueExplanation,
    WaitReasons,
)
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.plan import AlikeTasks, PlacementPlan, QueuedTask, TaskPlacement
from tidemill.core.placement.rule import PlacementObjection, PlacementPool, PolicyAssessment
from tidemill.core.placement.supply import Seller

BEST_MAX = 4
OTHERS_MAX = 6
DEAR_MAX = 3
TURNS_MAX = 32
"""Where a node is found, so many others have their turn to be considered."""

COMPARED_MAX = 50
"""Of one batch; tasks beyond it are placed without a comparison."""

LOOKED_MAX = 2_000
"""Where no node is found, at most so many nodes are asked why."""

SAMPLE_EVERY_US = SECOND // 2
SHARED_MAX = 100
JOBS_MAX = 100_000

SHAPES_MAX = 10
"""How many shapes of waiting tasks are explained after one batch."""

LOOK_EVERY_US = 5 * SECOND
TELL_EVERY_US = 30 * SECOND
FORGET_AFTER_US = 600 * SECOND
"""A shape that was not looked at for so long has found its nodes, or is explained anew."""

JOBS_TOLD_MAX = 200
"""How many jobs of one shape are told at once."""

BUSY = frozenset(
    {
        PlacementObjection.DEVICES_BUSY,
        PlacementObjection.PROCESSOR_BUSY,
        PlacementObjection.MEMORY_BUSY,
        PlacementObjection.DISK_FULL,
    }
)
"""Objections that may end when other tasks finish."""


@dataclass
class _TaskShape:
    looked_at: Instant
    told_at: Instant
    nowhere: WaitReasons
    jobs: set[UUID]


class Explainer:
    """Remembers what was explained. It may be dropped at any moment: then some things are explained once more."""

    def __init__(self) -> None:
        self._jobs: dict[UUID, None] = {}
        """The jobs of which a task was explained."""
        self._sampled_at = Instant(0)
        self._chosen: Set[UUID] = frozenset()
        """The tasks of this batch to compare candidates for."""
        self._compared: dict[UUID, CandidateComparison] = {}
        """By task of this batch."""
        self._turns: Iterator[UUID] = iter(())
        """The nodes that are still to be considered in comparisons, before the first comes again."""
        self._shapes: dict[Hashable, _TaskShape] = {}
        """Those that were looked at longest ago come first."""
        self._explained: list[PlacementExplanation] = []
        self._waits: list[QueueExplanation] = []

    def begin(self, tasks: Sequence[QueuedTask], now: Instant) -> None:
        """A batch begins: choose the tasks to compare candidates for."""
        self._compared = {}
        jobs, chosen = self._jobs, dict[Hashable, UUID]()
        for task in tasks:
            if task.tries or task.job_id not in jobs:
                chosen.setdefault((task.job_id, task.excluded), task.task_id)
        if tasks and not 0 <= now - self._sampled_at < SAMPLE_EVERY_US:
            for some in (tasks[0], tasks[now % len(tasks)]):  # the first is likely to be placed, the other may be stuck
                chosen.setdefault((some.job_id, some.excluded), some.task_id)
        self._chosen = set(chosen.values())

    def turn(self, placer: Placer, task: QueuedTask, demand: Demand, now: Instant) -> None:
        """A task is about to be placed: compare its candidates as they are now."""
        if task.task_id not in self._chosen or len(self._compared) >= COMPARED_MAX:
            return
        too_dear = placer.too_dear(task)

        def is_too_dear(node_id: UUID) -> bool:
            return node_id in too_dear or placer.cost_uc(task, node_id) > task.cost_max_uc

        others = chain(islice(too_dear, DEAR_MAX), self._next_turns(placer.sellers))
        if comparison := _compare(placer.pool, demand, now, others, is_too_dear):
            self._compared[task.task_id] = comparison

    def applied(self, plan: PlacementPlan, task_ids: Set[UUID], placer: Placer, now: Instant) -> None:
        """These tasks of a plan were placed: explain them, and why others wait."""
        if task_ids and self._compared:
            self._explain(plan, task_ids, now)
        self._forget(now)
        due = [alike for alike in plan.waiting if self._is_due(alike, now)]
        for alike in sorted(due, key=lambda alike: self._looked_at(alike.key))[:SHAPES_MAX]:
            self._waits.extend(self._told(alike, why_nowhere(placer, alike.tasks[0], now), now))

    def take(self) -> tuple[Sequence[PlacementExplanation], Sequence[QueueExplanation]]:
        """The explanations to write down now."""
        pending = self._explained, self._waits
        self._explained, self._waits = [], []
        return pending

    def _next_turns(self, nodes: Collection[UUID]) -> Iterator[UUID]:
        """The nodes whose turn it is to be considered; after the last comes the first again."""
        for _ in range(min(TURNS_MAX, len(nodes))):
            if (node_id := next(self._turns, None)) is None:
                self._turns = iter(list(nodes))
                node_id = next(self._turns)
            yield node_id

    def _explain(self, plan: PlacementPlan, task_ids: Set[UUID], now: Instant) -> None:
        """Explain the tasks that got the best of the compared nodes, together with those that are alike."""
        together: dict[tuple[UUID, frozenset[UUID]], list[TaskPlacement]] = defaultdict(list)
        for placement in plan.placements:
            if placement.task.task_id in task_ids:
                together[placement.task.job_id, placement.task.excluded].append(placement)
        for (job_id, _), placements in together.items():
            if first := next(filter(self._is_explained, placements), None):
                self._sampled_at = now
                self._remember(job_id)
                comparison, kind = self._compared[first.task.task_id], first.demand.demand.kind
                shared = _shared(first, placements)
                self._explained.extend(
                    PlacementExplanation(job_id, now, kind, task_ids, comparison) for task_ids in shared
                )

    def _is_explained(self, placement: TaskPlacement) -> bool:
        """Whether its candidates were compared, and it got the best of them: some placements are kept for newcomers."""
        comparison = self._compared.get(placement.task.task_id)
        return comparison is not None and comparison.candidates[0].node_id == placement.seller.node_id

    def _remember(self, job_id: UUID) -> None:
        if len(self._jobs) >= JOBS_MAX:
            del self._jobs[next(iter(self._jobs))]
        self._jobs[job_id] = None

    def _forget(self, now: Instant) -> None:
        """Forget shapes that no longer wait, with the jobs that were told of them."""
        while self._shapes and not 0 <= now - next(iter(self._shapes.values())).looked_at < FORGET_AFTER_US:
            del self._shapes[next(iter(self._shapes))]

    def _looked_at(self, key: Hashable) -> Instant:
        shape = self._shapes.get(key)
        return shape.looked_at if shape else Instant(0)

    def _is_due(self, alike: AlikeTasks, now: Instant) -> bool:
        shape = self._shapes.get(alike.key)
        return (
            shape is None
            or not 0 <= now - shape.looked_at < LOOK_EVERY_US
            or any(task.job_id not in shape.jobs for task in alike.tasks[:JOBS_TOLD_MAX])
        )

    def _told(self, alike: AlikeTasks, nowhere: WaitReasons, now: Instant) -> Iterator[QueueExplanation]:
        """Tell what has changed, and what was told long ago; otherwise only the jobs that were not told yet."""
        shape = self._shapes.get(alike.key)
        is_same = shape is not None and shape.nowhere == nowhere and 0 <= now - shape.told_at < TELL_EVERY_US
        told_jobs = shape.jobs if shape and is_same else set[UUID]()
        for task in alike.tasks[:JOBS_TOLD_MAX]:
            if task.job_id not in told_jobs:
                yield QueueExplanation(task.job_id, now, task.task_id, nowhere)
        if len(self._shapes) >= JOBS_MAX:
            self._shapes.clear()
        told_at = shape.told_at if shape and is_same else now
        self._shapes.pop(alike.key, None)
        self._shapes[alike.key] = _TaskShape(
            now, told_at, nowhere, {task.job_id for task in alike.tasks[:JOBS_TOLD_MAX]}
        )


def _shared(first: TaskPlacement, placements: Iterable[TaskPlacement]) -> Iterable[Sequence[UUID]]:
    """The tasks with the same demand as the first: if tried before, all in parts, else one part."""
    demand = first.demand.demand
    alike = [
        placement
        for placement in placements
        if placement is not first and (placement.demand is first.demand or placement.demand.demand == demand)
    ]
    task_ids = [placement.task.task_id for placement in (first, *alike)]
    parts = [task_ids[start : start + SHARED_MAX] for start in range(0, len(task_ids), SHARED_MAX)]
    return parts if first.task.tries else parts[:1]


def _compare(
    pool: PlacementPool, demand: Demand, now: Instant, others: Iterable[UUID], is_too_dear: Callable[[UUID], bool]
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


def why_nowhere(placer: Placer, task: QueuedTask, now: Instant) -> WaitReasons:
    """Count, for each objection, the nodes to which it applies.

    A free node that could have the task is too expensive, or was not considered then.
    """
    demand, too_dear = placer.demand_of(task), placer.too_dear(task)
    counts: Counter[str] = Counter()
    looked = soon = 0
    for node_id, against in islice(placer.pool.against(demand, now), LOOKED_MAX):
        is_dear = node_id in too_dear
        looked += 1
        counts.update(objection.code for objection in against)
        counts[PlacementObjection.ABOVE_QUOTE.code] += is_dear
        soon += not is_dear and BUSY.issuperset(against) and _holds_when_free(placer.sellers[node_id], demand)
    return WaitReasons({code: times for code, times in counts.items() if times}, len(placer), looked, soon)


def _explained(
    pool: PlacementPool, demand: Demand, now: Instant, node_ids: Iterable[UUID]
) -> Iterator[PolicyAssessment]:
    for node_id in node_ids:
        if assessment := pool.explain(demand, now, node_id):
            yield assessment


def _weighed(assessment: PolicyAssessment, is_too_dear: Callable[[UUID], bool]) -> ConsideredCandidate:
    if not assessment.objections and is_too_dear(assessment.node_id):
        return ConsideredCandidate(assessment.node_id, (PlacementObjection.ABOVE_QUOTE.code,), {})
    return ConsideredCandidate(
        assessment.node_id, tuple(objection.code for objection in assessment.objections), assessment.terms
    )


def _excluded(pool: PlacementPool, demand: Demand, now: Instant, node_id: UUID) -> ConsideredCandidate:
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
