"""What the placer is asked and what it answers: tasks that wait, and a plan for them.

All of it are values. A plan is checked again when it is applied.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds import OUR_KINDS
from tidemill.core.placement.rule import Reservation
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.task_demand import TaskDemand
from tidemill.core.settlement.pay import PayTerms
from tidemill.core.trust.checks.judgement import THE_POOL

_NOBODY: frozenset[UUID] = frozenset()


class QueuedTask(NamedTuple):
    """A task that waits, as it is in the queue. Of two, the one with the lower rank and the older id comes first.

    What it demands and which nodes it must avoid are looked up afterwards. A task whose demand this version cannot read
    has none, and finds no node.
    """

    rank: int
    task_id: UUID
    job_id: UUID
    account_id: UUID
    customer_id: UUID
    """Whose turn it takes: its account's; of an audit, which is the pool's own, that of whose result it checks."""

    failures: int
    tries: int
    since: Instant
    body: bytes
    cost_max_uc: int
    demand_id: UUID
    demand: TaskDemand | None = None
    excluded: frozenset[UUID] = _NOBODY
    for_house: bool = False
    """Whether only the house may carry it out: an audit, or a task whose right result nobody could tell."""
    prefers_house: bool = False
    """Whether a house node is to say what is true of its failures, if there is one that can."""

    @property
    def is_audit(self) -> bool:
        return self.account_id == THE_POOL

    @property
    def key(self) -> bytes:
        """Identifies the task in the front of the queue. The key changes with each try."""
        return self.rank.to_bytes(2, "big") + self.tries.to_bytes(2, "big") + self.task_id.bytes


class TaskPlacement(NamedTuple):
    """The node for a task, and on which terms. `reservation` is what the pool took for it."""

    task: QueuedTask
    demand: TaskDemand
    seller: Seller
    terms: PayTerms
    reservation: Reservation[Any]


class PlannedAttempt(NamedTuple):
    """A placement as an attempt with a deadline."""

    placement: TaskPlacement
    attempt_id: UUID
    deadline_at: Instant


@dataclass(frozen=True)
class AlikeTasks:
    """Tasks that found no node and have the same demand: one of each job. `key` is equal for equal demands."""

    key: Hashable
    tasks: Sequence[QueuedTask]


@dataclass(frozen=True)
class PlacementPlan:
    """What a batch of tasks gets. The placer has reserved it; the caller applies each placement or gives it back."""

    placements: Sequence[TaskPlacement]
    """In the order in which they were decided."""

    waiting: Sequence[AlikeTasks]
    """The tasks that found no node."""


def house_after(task_demand: TaskDemand | None) -> int:
    """After how many failures a house node is asked: at once where the program is the customer's own, and then its own
    fault; for our kinds after the second, since one node may make a failure up."""
    is_ours = task_demand is None or task_demand.demand.kind in OUR_KINDS
    return 2 if is_ours else 1


def inputs_of(tasks: Iterable[QueuedTask]) -> set[Digest]:
    """The inputs of tasks, of which some node may have a copy."""
    return {needed.digest for task in tasks if task.demand is not None for needed in task.demand.inputs}
