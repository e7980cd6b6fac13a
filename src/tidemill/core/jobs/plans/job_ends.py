"""What follows for jobs once they have counted ends of tasks: which are over, who owes whom, and what is announced."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids
from tidemill.core.jobs.events import JobEnded
from tidemill.core.jobs.job import ENDED, ClosingReason, EndCounts, JobLife, JobState, after_count
from tidemill.core.jobs.plans.happenings import WorkTerms
from tidemill.core.jobs.plans.work_plan import TaskEnd, WorkPlan
from tidemill.core.jobs.task import TaskState
from tidemill.core.settlement.obligations import Obligation
from tidemill.core.settlement.rewards import HoldOf, owed_for

HOLD_ENDS = "job ended"


class JobCount(NamedTuple):
    """How many tasks of a job end by a plan, and what they cost."""

    job_id: UUID
    completed: int
    failed: int
    cancelled: int
    spent_uc: int


class CountedJob(NamedTuple):
    """A job after its ends were counted."""

    id: UUID
    account_id: UUID
    state: JobState
    closing: ClosingReason | None
    hold_id: UUID
    tasks: int
    completed: int
    failed: int
    cancelled: int
    spent_uc: int

    @property
    def life(self) -> JobLife:
        return JobLife(self.state, self.tasks, EndCounts(self.completed, self.failed, self.cancelled), self.closing)


@dataclass(frozen=True)
class JobsPlan:
    """What follows for the jobs of a plan. Nothing else is written."""

    ended: Mapping[UUID, JobState] = field(default_factory=dict)
    obligations: Sequence[Obligation] = ()
    ended_hold_ids: Sequence[UUID] = ()
    events: Sequence[Event] = ()


def counts_of(ends: Iterable[TaskEnd]) -> list[JobCount]:
    """What the jobs of ended tasks have to count. Audits have no job."""
    counts: dict[UUID, Counter[TaskState]] = defaultdict(Counter)
    spent_uc: Counter[UUID] = Counter()
    for end in ends:
        if not end.is_audit:
            counts[end.job_id][end.state] += 1
            spent_uc[end.job_id] += end.cost_uc
    return [
        JobCount(
            job_id,
            count[TaskState.COMPLETED],
            count[TaskState.FAILED],
            count[TaskState.CANCELLED],
            spent_uc[job_id],
        )
        for job_id, count in counts.items()
    ]


def conclude(
    plan: WorkPlan, jobs: Sequence[CountedJob], fund_uc: int, terms: WorkTerms, ids: Ids, now: Instant
) -> JobsPlan:
    """What follows once the jobs have counted their ends. `fund_uc` is what the bonus fund has, if a bonus is due."""
    over = [(job, state) for job in jobs if (state := after_count(job.life).state) in ENDED]
    holds = {job.id: HoldOf(job.account_id, job.hold_id) for job in jobs}
    return JobsPlan(
        {job.id: state for job, state in over},
        owed_for(plan.paid, plan.reward_ids, holds, fund_uc, terms.plan, lambda: ids.new(now)),
        [job.hold_id for job, _ in over],
        [
            JobEnded(job.account_id, job.id, state.value, job.completed, job.failed, job.cancelled, job.spent_uc)
            for job, state in over
        ],
    )
