"""What happened to attempts in money: what each is paid, what earlier ones get, and what a customer pays for nothing.

A task costs at most what was held for it. What nobody has earned goes into the audit budget: so nobody gains by making
a failure up, and nobody has a program executed for nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import AttemptState, Happening
from tidemill.core.jobs.plans.happenings import AttemptHappening, EarlierFailure, Lease
from tidemill.core.jobs.task import TaskState, TaskStep
from tidemill.core.settlement.pay import AttemptPay, RewardPlan, attempt_pay, stopped_pay, with_audits
from tidemill.core.settlement.rewards import PaidAttempt

GIVEN_UP = (
    "No house node could say whose fault it is, and nobody tries again: the customer pays for the time, and nobody is "
    "blamed."
)

HOUSE_RUNS = 2
"""How often the house executes a program before it says that its results differ. The customer pays for that, too."""


class LatePay(NamedTuple):
    """What an attempt gets that was over before."""

    attempt_id: UUID
    paid_uc: int
    transfer_id: UUID


class FailedTask(NamedTuple):
    """A task that ends without a result: what was held for it, and what failed at it before."""

    job_id: UUID
    kind: str
    cost_max_uc: int
    earlier: Sequence[EarlierFailure]


class TaskBill(NamedTuple):
    """What an attempt is paid, and what its task costs with everything that came before."""

    pay: AttemptPay | None = None
    cost_uc: int = 0
    is_given_up: bool = False
    """Whether nobody else tries the task, and nobody can tell whose fault that is."""


class Bills:
    """The bills of a plan that is being made."""

    def __init__(self, plan: RewardPlan, ids: Ids, now: Instant) -> None:
        self._plan, self._ids, self._now = plan, ids, now
        self.paid: list[PaidAttempt] = []
        self.reward_ids: dict[tuple[UUID, UUID], UUID] = {}
        self.late_pays: list[LatePay] = []

    def charge(self, happening: AttemptHappening, lease: Lease, step: TaskStep) -> TaskBill:
        """What follows from the end of an attempt at a customer's task."""
        pay = self._pay(happening, lease, step)
        cost_uc = pay.cost_uc if pay else 0
        if happening.is_orders_fault:
            cost_uc += self._pay_earlier(happening, lease, cost_uc)
            return TaskBill(pay, cost_uc)
        is_given_up = _is_given_up(happening, lease, step)
        if is_given_up or step.task.state is TaskState.CANCELLED:
            task = FailedTask(lease.job_id, lease.kind, lease.cost_max_uc, happening.earlier)
            cost_uc += self.charge_unshown(task, cost_uc)
        return TaskBill(pay, cost_uc, is_given_up and cost_uc > 0)

    def charge_unshown(self, task: FailedTask, spent_uc: int = 0) -> int:
        """Failures at a task that ends before the house has looked at them are paid for, as far as the hold goes. Their
        owners get none of it, since nobody has shown whose fault they are. Returns what it costs."""
        before_uc = spent_uc
        for failure in task.earlier:
            due = stopped_pay(self._plan, failure.terms, failure.passed_ms, 0)
            if due.cost_uc and failure.may_be_the_orders(task.kind) and spent_uc + due.cost_uc <= task.cost_max_uc:
                spent_uc += due.cost_uc
                self.paid.append(PaidAttempt(task.job_id, failure.owner_id, due, is_verified=False))
        return spent_uc - before_uc

    def transfer_of(self, lease: Lease, pay: AttemptPay | None) -> UUID | None:
        """The payment that an attempt's pay is part of."""
        return self.reward_ids[lease.job_id, lease.owner_id] if pay and pay.reward_uc else None

    def _pay(self, happening: AttemptHappening, lease: Lease, step: TaskStep) -> AttemptPay | None:
        """What an attempt pays: a result that passed; time that the customer called off; time that a faulty order took.
        A house node is paid for the latter only if nobody else is."""
        plan, terms = self._plan, lease.terms
        if step.task.state is TaskState.COMPLETED:
            pay = attempt_pay(plan, terms, happening.used)
        elif step.attempt is AttemptState.CANCELLED and lease.begun_at is not None:
            heard_at = lease.heard_at or lease.begun_at
            pay = stopped_pay(plan, terms, (self._now - lease.begun_at) // 1_000, (heard_at - lease.begun_at) // 1_000)
        elif happening.is_orders_fault and not (lease.house and _failed_alike(happening)):
            pay = stopped_pay(plan, terms, happening.used.believed_ms, happening.used.earned_ms)
            if happening.notes and happening.notes.was_repeated:
                pay = with_audits(pay, terms, HOUSE_RUNS, happening.notes.repeated_ms, lease.cost_max_uc)
        elif _may_be_at_fault(happening, lease, step):
            pay = stopped_pay(plan, terms, happening.used.believed_ms, 0)
        else:
            return None
        assert pay.cost_uc <= lease.cost_max_uc, "no task is placed where it would cost more than was held for it"
        self._owe(lease, lease.owner_id, pay, is_verified=step.task.state is TaskState.COMPLETED)
        return pay

    def _owe(self, lease: Lease, owner_id: UUID, pay: AttemptPay, *, is_verified: bool) -> None:
        self.paid.append(PaidAttempt(lease.job_id, owner_id, pay, is_verified))
        whose = (lease.job_id, owner_id)
        if pay.reward_uc and whose not in self.reward_ids:
            self.reward_ids[whose] = self._ids.new(self._now)

    def _pay_earlier(self, happening: AttemptHappening, lease: Lease, spent_uc: int) -> int:
        """Who failed in the same way before is paid for the time, as far as the hold goes. Returns what that costs."""
        before_uc = spent_uc
        for failure in _failed_alike(happening):
            late = stopped_pay(self._plan, failure.terms, failure.passed_ms, failure.passed_ms)
            if not late.reward_uc or spent_uc + late.cost_uc > lease.cost_max_uc:
                continue
            spent_uc += late.cost_uc
            self._owe(lease, failure.owner_id, late, is_verified=False)
            transfer_id = self.reward_ids[lease.job_id, failure.owner_id]
            self.late_pays.append(LatePay(failure.attempt_id, late.reward_uc, transfer_id))
        return spent_uc - before_uc


def _is_given_up(happening: AttemptHappening, lease: Lease, step: TaskStep) -> bool:
    """Whether strangers have tried a task often enough. What the house says of it is another matter."""
    has_failed = step.task.state is TaskState.FAILED and not lease.house
    return has_failed and Happening.FAULTED not in happening.happenings


def _may_be_at_fault(happening: AttemptHappening, lease: Lease, step: TaskStep) -> bool:
    """Whether a task ends with a failure that may be the order's, and that the house has not looked at."""
    is_over = step.task.state is TaskState.CANCELLED or _is_given_up(happening, lease, step)
    return is_over and lease.may_be_at_fault(happening.happenings)


def _failed_alike(happening: AttemptHappening) -> list[EarlierFailure]:
    """Failures of the task before this one, for the same reason, and not of the house."""
    return [
        failure for failure in happening.earlier if not failure.house and happening.reason.startswith(failure.reason)
    ]
