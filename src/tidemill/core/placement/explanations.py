"""Which placement decisions are explained, so that the cost stays small and bounded however many there are.

The first tasks of a job, and every task placed again after a try, are weighed in every batch, up to a bound; of the
rest, a few a second. Alike tasks of a job that are placed together share one explanation. Each shape of waiting tasks
is explained when it begins to wait and every so often after; those explained longest ago come first.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.considerations import CandidateComparison, WaitReasons
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.plan import AlikeTasks, PlacementPlan, QueuedTask, TaskPlacement

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


@dataclass
class _TaskShape:
    looked_at: Instant
    told_at: Instant
    nowhere: WaitReasons
    jobs: set[UUID]


class ExplanationMemory:
    """Remembers what was explained. It may be dropped at any moment: then some things are explained once more."""

    def __init__(self) -> None:
        self._jobs: dict[UUID, None] = {}
        self._sampled_at = Instant(0)
        self._shapes: dict[Hashable, _TaskShape] = {}
        """Those that were looked at longest ago come first."""
        self._explained: list[PlacementExplanation] = []
        self._waits: list[QueueExplanation] = []

    def choose(self, tasks: Sequence[QueuedTask], now: Instant) -> Set[UUID]:
        """The tasks of a batch to weigh."""
        jobs, chosen = self._jobs, dict[Hashable, UUID]()
        for task in tasks:
            if task.tries or task.job_id not in jobs:
                chosen.setdefault((task.job_id, task.excluded), task.task_id)
        if tasks and not 0 <= now - self._sampled_at < SAMPLE_EVERY_US:
            for some in (tasks[0], tasks[now % len(tasks)]):  # the first is likely to be placed, the other may be stuck
                chosen.setdefault((some.job_id, some.excluded), some.task_id)
        return set(chosen.values())

    def placed(self, plan: PlacementPlan, applied: Set[UUID], now: Instant) -> None:
        """Keep the explanations of the tasks that were placed, with those that are alike."""
        self._sampled_at = now
        together: dict[tuple[UUID, frozenset[UUID]], list[TaskPlacement]] = defaultdict(list)
        for placement in plan.placements:
            if placement.task.task_id in applied:
                together[placement.task.job_id, placement.task.excluded].append(placement)
        for (job_id, _), placements in together.items():
            first = next((placement for placement in placements if placement.task.task_id in plan.comparisons), None)
            if first:
                self._remember(job_id)
                weighing, kind = plan.comparisons[first.task.task_id], first.demand.demand.kind
                shared = _shared(first, placements)
                self._explained.extend(
                    PlacementExplanation(job_id, now, kind, task_ids, weighing) for task_ids in shared
                )

    def waiting(self, plan: PlacementPlan, placer: Placer, now: Instant) -> None:
        """Find out why no node was found, for the shapes whose turn it is."""
        self._forget(now)
        due = [alike for alike in plan.waiting if self._is_due(alike, now)]
        for alike in sorted(due, key=lambda alike: self._looked_at(alike.key))[:SHAPES_MAX]:
            self._waits.extend(self._told(alike, placer.why_nowhere(alike.tasks[0], now), now))

    def take(self) -> tuple[Sequence[PlacementExplanation], Sequence[QueueExplanation]]:
        """The explanations to write down now."""
        pending = self._explained, self._waits
        self._explained, self._waits = [], []
        return pending

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
