"""What happens to attempts, and to what it happens: the leases as they were locked, with the terms of their tasks."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.attempt import AttemptState, Happening
from tidemill.core.jobs.kinds import OUR_KINDS
from tidemill.core.jobs.task import RetryLimits
from tidemill.core.settlement.pay import PayTerms, RewardPlan, UsedTime

WANTED_NO_MORE = "The job wants no more of its tasks."


class Lease(NamedTuple):
    """An attempt that holds its task, with the terms of its task and job. `tries` is also the lease's token.

    An audit belongs to no job: it has no hold, and is always wanted. `begun_at` is when the pool learnt that the node
    had begun, `heard_at` when it last heard of its progress.
    """

    attempt_id: UUID
    task_id: UUID
    job_id: UUID
    account_id: UUID
    node_id: UUID
    owner_id: UUID
    rank: int
    failures: int
    tries: int
    state: AttemptState
    batch_id: UUID | None
    place: int | None
    hourly_uc: int
    quoted_ms: int
    work_ms: int
    offered_at: Instant
    begun_at: Instant | None
    heard_at: Instant | None
    house: bool
    expected: bytes | None
    cost_max_uc: int
    hold_id: UUID | None
    wanted: bool
    private: bool
    kind: str

    @property
    def terms(self) -> PayTerms:
        return PayTerms(self.hourly_uc, self.quoted_ms, self.work_ms)

    @property
    def is_of_our_kind(self) -> bool:
        return self.kind in OUR_KINDS

    def may_be_at_fault(self, happenings: Collection[Happening]) -> bool:
        """Whether the order may be why an attempt at it failed."""
        failed = Happening.CRASHED in happenings and not self.is_of_our_kind
        return failed or (Happening.UNSURE in happenings and self.expected is not None)

    def missed_by(self, happening: "AttemptHappening") -> int:
        """How many owners have come to another hash than the customer expects, if it happens to this one now."""
        if self.expected is None or Happening.UNSURE not in happening.happenings:
            return 0
        return len({self.owner_id, *(failure.owner_id for failure in happening.earlier if not failure.is_crash)})

    def is_held_by(self, node_id: UUID, token: int) -> bool:
        return self.tries == token and self.node_id == node_id


Leases: TypeAlias = Mapping[UUID, Lease]
"""By attempt."""


class CheckNotes(NamedTuple):
    """What a check found besides its verdict: a doubt about times, and the second execution that it compared with."""

    doubt: str = ""
    was_repeated: bool = False
    repeated_sha256: bytes | None = None
    repeated_by: UUID | None = None
    """The attempt of the second execution, whose result is wanted no more."""

    repeated_ms: int = 0
    """How long it took there."""


class EarlierFailure(NamedTuple):
    """An attempt at a task that failed by what its node says, or whose result was not what the customer expects."""

    task_id: UUID
    attempt_id: UUID
    owner_id: UUID
    reason: str
    is_crash: bool
    house: bool
    hourly_uc: int
    quoted_ms: int
    work_ms: int
    offered_at: Instant
    ended_at: Instant

    @property
    def terms(self) -> PayTerms:
        return PayTerms(self.hourly_uc, self.quoted_ms, self.work_ms)

    @property
    def passed_ms(self) -> int:
        return (self.ended_at - self.offered_at) // 1_000

    def may_be_the_orders(self, kind: str) -> bool:
        """Whether the order may be at fault: its own program failed, or it expects something else."""
        return not self.house and (kind not in OUR_KINDS or not self.is_crash)


EarlierFailures: TypeAlias = Mapping[UUID, Sequence[EarlierFailure]]
"""By task, the oldest first."""


class AttemptHappening(NamedTuple):
    """What happened to an attempt of a node, under a lease. A report by another node changes nothing.

    `batch_id` and `place` say where its receipt is.
    """

    attempt_id: UUID
    lease: int
    node_id: UUID
    happenings: tuple[Happening, ...]
    reason: str = ""
    verdict: str = ""
    used: UsedTime = UsedTime(0, 0)
    batch_id: UUID | None = None
    place: int = 0
    notes: CheckNotes | None = None
    is_orders_fault: bool = False
    """Whether the order itself is at fault: its customer pays for the time, and nobody is blamed."""
    earlier: Sequence[EarlierFailure] = ()
    """What failed before at the same task, the oldest first."""

    @property
    def undecided(self) -> "AttemptHappening":
        """The same without a passing verdict: the result is here, and waits."""
        if Happening.PASSED not in self.happenings:
            return self
        return self._replace(happenings=(Happening.DELIVERED,), verdict="", reason="")


class LateDelivery(NamedTuple):
    """An attempt that was given up and delivers after all, while its task waits again or another attempt has it.

    Its lease has the failures and tries of its task by now, so that none is forgotten.
    """

    lease: Lease
    holder: Lease | None


class UnwantedTask(NamedTuple):
    """A task that waited for a node, and that nobody wants any more; with what was held for it, and what failed at it
    before."""

    task_id: UUID
    job_id: UUID
    is_audit: bool
    cost_max_uc: int = 0
    kind: str = ""
    earlier: Sequence[EarlierFailure] = ()


@dataclass(frozen=True)
class WorkTerms:
    """The rules: when tasks are given up, and what is paid."""

    patience: RetryLimits
    plan: RewardPlan


def call_offs(unwanted: Iterable[Lease], earlier: EarlierFailures) -> list[AttemptHappening]:
    """Leases that closed jobs want no more, as happenings."""
    return [
        AttemptHappening(
            *(lease.attempt_id, lease.tries, lease.node_id, (Happening.CALLED_OFF,), WANTED_NO_MORE),
            earlier=earlier.get(lease.task_id, ()),
        )
        for lease in unwanted
    ]
