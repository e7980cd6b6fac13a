"""What happens to jobs, as events. Their customer may read them."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.events.log import Event


@dataclass(frozen=True)
class JobSubject:
    """What events about one job share: its customer and its id."""

    account_id: UUID
    job_id: UUID

    @property
    def subject(self) -> str:
        return f"job:{self.job_id}"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,)


@dataclass(frozen=True)
class JobQuoted(JobSubject, Event, kind="job.quoted"):
    """A job has a price, from the least to the most that it can cost."""

    work: str
    tasks: int
    low_uc: int
    high_uc: int


@dataclass(frozen=True)
class JobConfirmed(JobSubject, Event, kind="job.confirmed"):
    """A customer confirmed a quote: its upper end is held, and its tasks wait for nodes."""

    tasks: int
    held_uc: int
    deadline_at_us: int


@dataclass(frozen=True)
class JobExtended(JobSubject, Event, kind="job.extended"):
    """A job has more time, or a larger budget. None is what was left as it was."""

    deadline_at_us: int | None
    budget_uc: int | None


@dataclass(frozen=True)
class JobEnded(JobSubject, Event, kind="job.ended"):
    """A job's last task has ended, or a job that was never confirmed was called off."""

    state: str
    completed: int
    failed: int
    cancelled: int
    spent_uc: int
