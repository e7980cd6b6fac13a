"""What follows from what happened to attempts: one plan, which the pool writes and the simulator carries out.

`follow` takes the leases as they were locked, what happened to them, and the terms. It decides on lease changes, ends
of tasks, pay, what waits again, what nodes are told to stop, events, and what owners' records are told. A happening
that comes twice, late or from somebody else finds no lease that it fits, and nothing follows from it. What follows for
jobs is decided by `job_ends`, once they have counted their ends: their rows are locked last.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import OVER, AttemptState, Happening
from tidemill.core.jobs.events import AttemptsPaid, TasksEnded, TimesDoubted
from tidemill.core.jobs.plans.happenings import (
    AttemptHappening,
    CheckNotes,
    LateDelivery,
    Lease,
    Leases,
    UnwantedTask,
    WorkTerms,
)
from tidemill.core.jobs.plans.task_bills import GIVEN_UP, Bills, FailedTask, LatePay, TaskBill
from tidemill.core.jobs.task import ENDED, Attempt, Blame, RetryLimits, TaskLife, TaskState, TaskStep, Told
from tidemill.core.settlement.pay import AttemptPay
from tidemill.core.settlement.rewards import PaidAttempt

OVERTAKEN = "Another node delivered this task after all."

_TASK_STATES = {
    AttemptState.OFFERED: TaskState.ASSIGNED,
    AttemptState.ACCEPTED: TaskState.ASSIGNED,
    AttemptState.RUNNING: TaskState.COMPUTING,
    AttemptState.SUBMITTED: TaskState.VERIFYING,
}
_HOLDER = UUID(int=0)


class LeaseChange(NamedTuple):
    """A lease that goes on in another state."""

    attempt_id: UUID
    state: AttemptState
    batch_id: UUID | None
    place: int


class AttemptEnd(NamedTuple):
    """An attempt that is over. `transfer_id` is the payment that its pay is part of."""

    attempt_id: UUID
    state: AttemptState
    verdict: str
    reason: str
    paid_uc: int
    transfer_id: UUID | None
    batch_id: UUID | None
    place: int


class WaitingAgain(NamedTuple):
    """A task that goes back into the queue."""

    rank: int
    task_id: UUID
    job_id: UUID
    account_id: UUID
    failures: int
    tries: int


class TaskEnd(NamedTuple):
    """How a task ended, by which attempt (if any), and what its customer pays. The job of an audit is the audit."""

    task_id: UUID
    job_id: UUID
    state: TaskState
    attempt_id: UUID | None
    cost_uc: int
    is_audit: bool


class CallOff(NamedTuple):
    """An attempt that its node has to stop. It may use none of the customer's artefacts any more."""

    attempt_id: UUID
    node_id: UUID
    lease: int
    reason: str


class AuditVerdict(NamedTuple):
    """What a second execution found, the verdict on the first, and the attempt whose result is wanted no more."""

    attempt_id: UUID
    found: bytes | None
    verdict: str
    repeated_by: UUID | None


class WorkPlan(NamedTuple):
    """Everything that follows from what happened. Nothing else is written."""

    changes: Sequence[LeaseChange] = ()
    ends: Sequence[AttemptEnd] = ()
    waiting: Sequence[WaitingAgain] = ()
    resumed: Sequence[Lease] = ()
    """Attempts that hold their tasks again, with a result that waits to be judged."""

    task_ends: Sequence[TaskEnd] = ()
    called_off: Sequence[CallOff] = ()
    audit_verdicts: Sequence[AuditVerdict] = ()
    paid: Sequence[PaidAttempt] = ()
    reward_ids: Mapping[tuple[UUID, UUID], UUID] = MappingProxyType({})
    """The payment of each owner at each job. Who works for nothing gets none."""

    late_pays: Sequence[LatePay] = ()

    blames: Sequence[tuple[UUID, Blame]] = ()
    """What owners' records are told, besides their verified results, which are the paid ones."""

    events: Sequence[Event] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing follows."""
        return not any(self)

    @property
    def states(self) -> dict[UUID, AttemptState]:
        """The attempts that changed, with their new states."""
        changed = {change.attempt_id: change.state for change in self.changes}
        return changed | {end.attempt_id: end.state for end in self.ends}

    @property
    def ended_counts(self) -> Counter[tuple[AttemptState, str]]:
        """How many attempts are over, by state and verdict."""
        return Counter((end.state, end.verdict) for end in self.ends)

    @property
    def batch_ids(self) -> set[UUID]:
        """The batches of receipts that attempts refer to."""
        batch_ids = {change.batch_id for change in self.changes} | {end.batch_id for end in self.ends}
        return {batch_id for batch_id in batch_ids | {lease.batch_id for lease in self.resumed} if batch_id is not None}


def follow(
    happenings: Iterable[AttemptHappening],
    leases: Leases,
    terms: WorkTerms,
    ids: Ids,
    now: Instant,
    *,
    late: Sequence[LateDelivery] = (),
    unwanted: Sequence[UnwantedTask] = (),
) -> WorkPlan:
    """What follows from happenings to locked leases, from late deliveries, and for tasks that waited and that nobody
    wants. An attempt is named once.

    A task that a late delivery takes is left to it by whoever else has it.
    """
    happenings = list(happenings)
    assert len({happening.attempt_id for happening in happenings}) == len(happenings), "an attempt is named once"
    draft = _Draft(terms, ids, now)
    for delivery in late:
        draft.resume(delivery)
    overtaken = {delivery.lease.task_id for delivery in late}
    for happening in happenings:
        lease = leases.get(happening.attempt_id)
        if lease is None or lease.task_id in overtaken or not lease.is_held_by(happening.node_id, happening.lease):
            continue
        life = (lease.state, lease.failures, lease.tries, lease.wanted)
        by_house = lease.house and lease.hold_id is not None  # an audit is tried again
        told = Told(by_house, lease.is_of_our_kind, lease.missed_by(happening))
        step = _step(life, told, happening.happenings, terms.patience)
        if step is not None:
            draft.advance(happening, lease, step)
    for task in unwanted:
        draft.give_up(task)
    return draft.plan()


class _Draft:
    """A plan that is being made."""

    def __init__(self, terms: WorkTerms, ids: Ids, now: Instant) -> None:
        self._terms, self._bills = terms, Bills(terms.plan, ids, now)
        self.changes: list[LeaseChange] = []
        self.ends: list[AttemptEnd] = []
        self.waiting: list[WaitingAgain] = []
        self.resumed: list[Lease] = []
        self.task_ends: list[TaskEnd] = []
        self.called_off: list[CallOff] = []
        self.audit_verdicts: list[AuditVerdict] = []
        self.blames: list[tuple[UUID, Blame]] = []
        self._doubts: list[TimesDoubted] = []
        self._customers: dict[UUID, UUID] = {}

    def plan(self) -> WorkPlan:
        return WorkPlan(
            self.changes,
            self.ends,
            self.waiting,
            self.resumed,
            self.task_ends,
            self.called_off,
            self.audit_verdicts,
            self._bills.paid,
            self._bills.reward_ids,
            self._bills.late_pays,
            self.blames,
            [*self._doubts, *self._announcements()] if self._doubts or self._customers else (),
        )

    def advance(self, happening: AttemptHappening, lease: Lease, step: TaskStep) -> None:
        """The holder's attempt takes a step, and its task with it."""
        if step.attempt not in OVER:
            self.changes.append(LeaseChange(lease.attempt_id, step.attempt, happening.batch_id, happening.place))
            return
        is_audit = lease.hold_id is None  # the pool's own
        bill = TaskBill() if is_audit else self._bills.charge(happening, lease, step)
        if bill.is_given_up:
            happening = happening._replace(reason=f"{happening.reason} {GIVEN_UP}")
        self._end_attempt(happening, lease, step.attempt, bill.pay)
        self._move_task(lease, step, bill.cost_uc)
        if not is_audit:  # nobody's record tells of audits
            self._blame(happening, lease, step)
        if step.attempt is AttemptState.CANCELLED:
            self.called_off.append(CallOff(lease.attempt_id, lease.node_id, lease.tries, happening.reason))
        if happening.notes:
            self._note(happening, lease, happening.notes)

    def resume(self, delivery: LateDelivery) -> None:
        """An attempt that was given up has its task again; any other attempt at it is called off, without blame."""
        lease, holder = delivery.lease, delivery.holder
        state = TaskState.PENDING if holder is None else _TASK_STATES[holder.state]
        life = TaskLife(state, lease.failures, lease.tries, holder.attempt_id if holder else None)
        step = tasks.step(life, Attempt(lease.attempt_id, lease.state), Happening.DELIVERED, self._terms.patience)
        assert step, "what waits or is at work takes whatever comes first"
        self.resumed.append(lease._replace(state=step.attempt))
        if holder is not None:
            self.ends.append(AttemptEnd(holder.attempt_id, AttemptState.CANCELLED, "", OVERTAKEN, 0, None, None, 0))
            self.called_off.append(CallOff(holder.attempt_id, holder.node_id, holder.tries, OVERTAKEN))

    def give_up(self, task: UnwantedTask) -> None:
        """A task that waited ends. Its customer pays for what its own failures took before."""
        cost_uc = self._bills.charge_unshown(FailedTask(task.job_id, task.kind, task.cost_max_uc, task.earlier))
        self.task_ends.append(TaskEnd(task.task_id, task.job_id, TaskState.CANCELLED, None, cost_uc, task.is_audit))

    def _blame(self, happening: AttemptHappening, lease: Lease, step: TaskStep) -> None:
        """Tell the records of owners: of this attempt's; and, if it succeeded, of those whose attempts failed."""
        if step.blame:
            self.blames.append((lease.owner_id, step.blame))
        if step.task.state is TaskState.COMPLETED:
            self.blames += [
                (failure.owner_id, Blame.CRASHED if failure.is_crash else Blame.WRONG)
                for failure in happening.earlier
                if failure.owner_id != lease.owner_id
            ]

    def _end_attempt(
        self, happening: AttemptHappening, lease: Lease, state: AttemptState, pay: AttemptPay | None
    ) -> None:
        self.ends.append(
            AttemptEnd(
                lease.attempt_id,
                state,
                happening.verdict,
                happening.reason,
                pay.reward_uc if pay else 0,
                self._bills.transfer_of(lease, pay),
                happening.batch_id or lease.batch_id,
                happening.place or lease.place or 0,
            )
        )

    def _move_task(self, lease: Lease, step: TaskStep, cost_uc: int) -> None:
        """The task ends or waits again. A task that was called off was decided by no attempt."""
        if step.task.state not in ENDED:
            again = (step.task.failures, step.task.tries)
            self.waiting.append(WaitingAgain(lease.rank, lease.task_id, lease.job_id, lease.account_id, *again))
            return
        decided_by = None if step.attempt is AttemptState.CANCELLED else lease.attempt_id
        is_audit = lease.hold_id is None
        self.task_ends.append(TaskEnd(lease.task_id, lease.job_id, step.task.state, decided_by, cost_uc, is_audit))
        self._customers[lease.job_id] = lease.account_id

    def _note(self, happening: AttemptHappening, lease: Lease, notes: CheckNotes) -> None:
        if notes.doubt:
            self._doubts.append(TimesDoubted(lease.owner_id, lease.node_id, lease.attempt_id, notes.doubt))
        if notes.was_repeated:
            found = notes.repeated_sha256
            self.audit_verdicts.append(AuditVerdict(lease.attempt_id, found, happening.verdict, notes.repeated_by))

    def _announcements(self) -> list[Event]:
        """One event for each job whose tasks ended, and for each owner who was paid."""
        counts = Counter((end.job_id, end.state) for end in self.task_ends)
        rewards_uc: dict[UUID, list[int]] = defaultdict(list)
        for paid in (paid for paid in self._bills.paid if paid.due.reward_uc or paid.is_verified):
            rewards_uc[paid.owner_id].append(paid.due.reward_uc)
        return [
            *(
                TasksEnded(customer_id, job_id, counts[job_id, TaskState.COMPLETED], counts[job_id, TaskState.FAILED])
                for job_id, customer_id in self._customers.items()
            ),
            *(AttemptsPaid(owner_id, len(amounts_uc), sum(amounts_uc)) for owner_id, amounts_uc in rewards_uc.items()),
        ]


@lru_cache(maxsize=10_000)
def _step(
    life: tuple[AttemptState, int, int, bool], told: Told, happenings: tuple[Happening, ...], patience: RetryLimits
) -> TaskStep | None:
    """The next step of a task's attempt. It depends only on their states, so it is cached for all attempts."""
    state, failures, tries, wanted = life
    task = TaskLife(_TASK_STATES[state], failures, tries, _HOLDER)
    return tasks.steps(task, Attempt(_HOLDER, state), happenings, patience, wanted=wanted, told=told)
