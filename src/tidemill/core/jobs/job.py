"""The life of a job: what a customer ordered, quoted, confirmed, and carried out task by task.

Money is held when the job is confirmed. The rest of the hold goes back when the last task has ended, however the job
ends. A job that is called off, out of time or out of budget starts no more tasks; results delivered before are judged,
paid, and given to the customer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class JobState(StrEnum):
    DRAFT = "draft"
    QUOTED = "quoted"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class ClosingReason(StrEnum):
    """Why a job wants no more of its tasks done."""

    CALLED_OFF = "called_off"
    OUT_OF_TIME = "out_of_time"
    OUT_OF_BUDGET = "out_of_budget"


class JobHappening(StrEnum):
    QUOTED = "quoted"
    CONFIRMED = "confirmed"
    STARTED = "started"
    CALLED_OFF = "called_off"
    TIME_UP = "time_up"
    BUDGET_REACHED = "budget_reached"


ENDED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED})
_CONFIRMED = frozenset({JobState.QUEUED, JobState.RUNNING})

JOBS: Mapping[tuple[JobState, JobHappening], JobState] = {
    (JobState.DRAFT, JobHappening.QUOTED): JobState.QUOTED,
    (JobState.DRAFT, JobHappening.CALLED_OFF): JobState.CANCELLED,
    (JobState.QUOTED, JobHappening.QUOTED): JobState.QUOTED,  # anew, at today's prices
    (JobState.QUOTED, JobHappening.CONFIRMED): JobState.QUEUED,
    (JobState.QUOTED, JobHappening.CALLED_OFF): JobState.CANCELLED,
    (JobState.QUEUED, JobHappening.STARTED): JobState.RUNNING,
}
"""How a job gets to work. From then on it ends with its last task: see `after_count`."""

_CLOSINGS = {
    JobHappening.CALLED_OFF: ClosingReason.CALLED_OFF,
    JobHappening.TIME_UP: ClosingReason.OUT_OF_TIME,
    JobHappening.BUDGET_REACHED: ClosingReason.OUT_OF_BUDGET,
}


@dataclass(frozen=True, slots=True)
class EndCounts:
    """How many tasks have ended, by outcome."""

    completed: int = 0
    failed: int = 0
    cancelled: int = 0

    def __add__(self, more: "EndCounts") -> "EndCounts":
        return EndCounts(self.completed + more.completed, self.failed + more.failed, self.cancelled + more.cancelled)

    @property
    def total(self) -> int:
        return self.completed + self.failed + self.cancelled


@dataclass(frozen=True, slots=True)
class JobLife:
    """The state of a job. `closing` says why it wants no more of its tasks done, once that is so."""

    state: JobState = JobState.DRAFT
    tasks: int = 0
    ends: EndCounts = EndCounts()
    closing: ClosingReason | None = None

    @property
    def wants_tasks(self) -> bool:
        return self.closing is None


def step(job: JobLife, happening: JobHappening) -> JobLife | None:
    """What a happening does to a job; None if nothing changes, because it comes twice, too early or too late.

    Confirming holds the upper end of the quote and makes the tasks. A closing job's open tasks are cancelled.
    """
    if onwards := JOBS.get((job.state, happening)):
        return replace(job, state=onwards)
    if happening in _CLOSINGS and job.state in _CONFIRMED and job.wants_tasks:
        return replace(job, closing=_CLOSINGS[happening])
    return None


def after_count(job: JobLife) -> JobLife:
    """The job once ends of its tasks are counted. It ends with the last one, and what is left of its hold goes back."""
    assert job.state in _CONFIRMED, "tasks end while their job goes on"
    assert job.ends.total <= job.tasks, "no task ends twice"
    return job if job.ends.total < job.tasks else replace(job, state=_end(job))


def _end(job: JobLife) -> JobState:
    """Completed if every wanted task is, or else the reason why not."""
    if job.ends.completed == job.tasks:
        return JobState.COMPLETED
    if job.closing is ClosingReason.OUT_OF_TIME:
        return JobState.EXPIRED
    return JobState.FAILED if job.closing is None else JobState.CANCELLED
