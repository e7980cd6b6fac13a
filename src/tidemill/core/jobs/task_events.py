"""What happens to tasks and to what nodes deliver, as events: one for each job and batch, with counts."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.events.log import Event
from tidemill.core.jobs.events import JobSubject
from tidemill.core.nodes.events import NodeSubject


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
    """A receipt of a node tells of times that cannot be true. Its result was judged all the same."""

    attempt_id: UUID
    sentence: str


@dataclass(frozen=True)
class ReceiptsRefused(NodeSubject, Event, kind="node.receipts_refused", audited=True):
    """A node sent receipts that cannot be taken. Forged and moved ones are nobody's accident."""

    code: str
    sentence: str
    severe: bool
