"""What happens to jobs, to their tasks, and to what nodes deliver, as events. Tasks: one for each job and batch."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.events.log import Event
from tidemill.core.nodes.events import NodeSubject


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


@dataclass(frozen=True)
class TasksPlaced(JobSubject, Event, kind="tasks.placed"):
    """Tasks of a job went to nodes."""

    count: int
    nodes: int


@dataclass(frozen=True)
class TasksEnded(JobSubject, Event, kind="tasks.ended"):
    """Tasks of a job have ended, by how."""

    completed: int
    failed: int


@dataclass(frozen=True)
class AttemptsPaid(Event, kind="attempts.paid"):
    """Attempts of an owner's nodes passed, and were paid together."""

    account_id: UUID
    count: int
    paid_uc: int

    @property
    def subject(self) -> str:
        return f"account:{self.account_id}"

    @property
    def accounts(self) -> tuple[UUID, ...]:
        return (self.account_id,)


@dataclass(frozen=True)
class TimesDoubted(NodeSubject, Event, kind="node.times_doubted", audited=True):
    """A receipt of a node tells of times that cannot be true. Its result was judged after somebody had looked."""

    attempt_id: UUID
    sentence: str


@dataclass(frozen=True)
class ReviewAsked(NodeSubject, Event, kind="node.review_asked"):
    """A right result of a node has times that cannot be true, and no house node could execute it again: nothing is paid
    before an operator has decided."""

    attempt_id: UUID
    sentence: str


@dataclass(frozen=True)
class ReviewDecided(NodeSubject, Event, kind="node.review_decided", audited=True):
    """An operator decided whether a result is paid."""

    attempt_id: UUID
    verdict: str
    reason: str
    by: str


@dataclass(frozen=True)
class ReceiptsRefused(NodeSubject, Event, kind="node.receipts_refused", audited=True):
    """A node sent receipts that cannot be taken. Forged and moved ones are nobody's accident."""

    code: str
    sentence: str
    severe: bool
