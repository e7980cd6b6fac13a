"""Which decisions of placement are explained, so that the cost is small and bounded however many are made.

The first tasks of a job that are placed, and whatever is placed again after it was tried, are weighed in every batch,
up to a bound; of the rest a few a second. Alike tasks of a job that are placed together share one explanation. Of what
waits, each sort is told when it begins to wait and every so often after; those that were told longest ago come first.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.considerations import CandidateComparison, WaitReasons
from tidemill.core.placement.placer import AlikeTasks, PlacementDecisions, Placer, QueuedTask, TaskPlacement

SAMPLE_EVERY_US = SECOND // 2
SHARED_MAX = 100
JOBS_MAX = 100_000

SORTS_MAX = 10
"""So many sorts of what waits are looked at after one batch."""

LOOK_EVERY_US = 5 * SECOND
TELL_EVERY_US = 30 * SECOND
FORGET_AFTER_US = 600 * SECOND
"""A sort that was not looked at for so long has found its nodes, or is told anew."""

JOBS_TOLD_MAX = 200
"""Of one sort, so many jobs are told at once."""


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
        self._sorts: dict[Hashable, _TaskShape] = {}
        """Those that were looked at longest ago come first."""
        self._explained: list[PlacementExplanation] = []
        self._waits: list[QueueExplanation] = []

    def choose(self, wants: Sequence[QueuedTask], now: Instant) -> Set[UUID]:
        """The tasks of a batch that are to be weighed."""
        jobs, chosen = self._jobs, dict[Hashable, UUID]()
        for want in wants:
            if want.tries or want.job_id not in jobs:
                chosen.setdefault((want.job_id, want.excluded), want.task_id)
        if wants and not 0 <= now - self._sampled_at < SAMPLE_EVERY_US:
            for some in (wants[0], wants[now % len(wants)]):  # the first is likely to be placed, and may be stuck
                chosen.setdefault((some.job_id, some.excluded), some.task_id)
        return set(chosen.values())

    def placed(self, decided: PlacementDecisions, applied: Set[UUID], now: Instant) -> None:
        """Keep what was weighed of the tasks that were placed, with those that are alike."""
        self._sampled_at = now
        together: dict[tuple[UUID, frozenset[UUID]], list[TaskPlacement]] = defaultdict(list)
        for one in decided.placements:
            if one.task.task_id in applied:
                together[one.task.job_id, one.task.excluded].append(one)
        for (job_id, _), found in together.items():
            first = next((one for one in found if one.task.task_id in decided.comparisons), None)
            if first:
                self._remember(job_id)
                weighing, kind = decided.comparisons[first.task.task_id], first.demand.demand.kind
                shared = _shared(first, found)
                self._explained.extend(
                    PlacementExplanation(job_id, now, kind, task_ids, weighing) for task_ids in shared
                )

    def waiting(self, decided: PlacementDecisions, placer: Placer, now: Instant) -> None:
        """Look why nobody was found, for those sorts whose turn it is."""
        self._forget(now)
        due = [one for one in decided.waiting if self._is_due(one, now)]
        for one in sorted(due, key=lambda one: self._looked_at(one.key))[:SORTS_MAX]:
            self._waits.extend(self._told(one, placer.why_nowhere(one.tasks[0], now), now))

    def take(self) -> tuple[Sequence[PlacementExplanation], Sequence[QueueExplanation]]:
        """What is to be written down now."""
        taken = self._explained, self._waits
        self._explained, self._waits = [], []
        return taken

    def _remember(self, job_id: UUID) -> None:
        if len(self._jobs) >= JOBS_MAX:
            del self._jobs[next(iter(self._jobs))]
        self._jobs[job_id] = None

    def _forget(self, now: Instant) -> None:
        """Let go of sorts that wait no more, with the jobs that were told of them."""
        while self._sorts and not 0 <= now - next(iter(self._sorts.values())).looked_at < FORGET_AFTER_US:
            del self._sorts[next(iter(self._sorts))]

    def _looked_at(self, key: Hashable) -> Instant:
        known = self._sorts.get(key)
        return known.looked_at if known else Instant(0)

    def _is_due(self, one: AlikeTasks, now: Instant) -> bool:
        known = self._sorts.get(one.key)
        return (
            known is None
            or not 0 <= now - known.looked_at < LOOK_EVERY_US
            or any(want.job_id not in known.jobs for want in one.tasks[:JOBS_TOLD_MAX])
        )

    def _told(self, one: AlikeTasks, nowhere: WaitReasons, now: Instant) -> Iterator[QueueExplanation]:
        """What has changed is told, and what was told long ago; else only to jobs that were not told yet."""
        known = self._sorts.get(one.key)
        is_same = known is not None and known.nowhere == nowhere and 0 <= now - known.told_at < TELL_EVERY_US
        told = known.jobs if known and is_same else set[UUID]()
        for want in one.tasks[:JOBS_TOLD_MAX]:
            if want.job_id not in told:
                yield QueueExplanation(want.job_id, now, want.task_id, nowhere)
        if len(self._sorts) >= JOBS_MAX:
            self._sorts.clear()
        told_at = known.told_at if known and is_same else now
        self._sorts.pop(one.key, None)
        self._sorts[one.key] = _TaskShape(now, told_at, nowhere, {want.job_id for want in one.tasks[:JOBS_TOLD_MAX]})


def _shared(first: TaskPlacement, found: Iterable[TaskPlacement]) -> Iterable[Sequence[UUID]]:
    """The tasks that ask the same as the first: all that were tried before, in parts; of others one part will do."""
    request = first.demand.demand
    others = [one for one in found if one is not first and (one.demand is first.demand or one.demand.demand == request)]
    task_ids = [one.task.task_id for one in (first, *others)]
    parts = [task_ids[start : start + SHARED_MAX] for start in range(0, len(task_ids), SHARED_MAX)]
    return parts if first.task.tries else parts[:1]
