"""Whatever happens to work, in any order, twice and late: plans make neither money nor states from nothing."""

import secrets
from collections import Counter
from dataclasses import dataclass, field
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import ATTEMPTS, AttemptState, Happening
from tidemill.core.jobs.job import ENDED as JOB_ENDED
from tidemill.core.jobs.job import ClosingReason, JobState
from tidemill.core.jobs.plans.happenings import (
    AttemptHappening,
    LateDelivery,
    Lease,
    UnwantedTask,
    WorkTerms,
    call_offs,
)
from tidemill.core.jobs.plans.job_ends import CountedJob, conclude, counts_of
from tidemill.core.jobs.plans.work_plan import WorkPlan, follow
from tidemill.core.jobs.task import RetryLimits, TaskState
from tidemill.core.ledger.accounts import AccountKind
from tidemill.core.settlement.pay import PayTerms, RewardPlan, UsedTime, cost_max_uc, stopped_pay

IDS = Ids(secrets.randbits)
NOW = Instant(1_800_000_000_000_000)
TERMS = WorkTerms(RetryLimits(failures_max=3, tries_max=6), RewardPlan())
HOURLY_UC, QUOTED_MS = 3_600_000, 2_000
COST_UC = cost_max_uc(TERMS.plan, PayTerms(HOURLY_UC, QUOTED_MS))
JOB, CUSTOMER, HOLD = UUID(int=1), UUID(int=2), UUID(int=3)
NODES = [UUID(int=10), UUID(int=11)]
TASKS = [UUID(int=100), UUID(int=101)]
GIVEN_UP = (AttemptState.LOST, AttemptState.EXPIRED)


@dataclass
class Tables:
    """A job of two tasks, as the tables of the store hold it: what a plan says is done, and nothing else."""

    waiting: dict[UUID, tuple[int, int]] = field(default_factory=lambda: dict.fromkeys(TASKS, (0, 0)))
    leases: dict[UUID, Lease] = field(default_factory=dict)
    given_up: dict[UUID, Lease] = field(default_factory=dict)
    ended: dict[UUID, TaskState] = field(default_factory=dict)
    attempts: dict[UUID, AttemptState] = field(default_factory=dict)
    state: JobState = JobState.RUNNING
    closing: ClosingReason | None = None
    spent_uc: int = 0
    held_uc: int = COST_UC * len(TASKS)
    fund_uc: int = 0
    paid_uc: Counter[AccountKind] = field(default_factory=Counter)
    paid_tasks: Counter[UUID] = field(default_factory=Counter)
    tried: Counter[UUID] = field(default_factory=Counter)

    def place(self, task_id: UUID, node: int, hourly_uc: int = HOURLY_UC) -> None:
        if task_id not in self.waiting or self.closing:
            return
        failures, tries = self.waiting.pop(task_id)
        self.tried[task_id] += 1
        attempt_id = UUID(int=1_000 + len(self.attempts))
        self.attempts[attempt_id] = AttemptState.OFFERED
        self.leases[attempt_id] = Lease(
            *(attempt_id, task_id, JOB, CUSTOMER, NODES[node], UUID(int=20 + node), 1, failures, tries + 1),
            *(AttemptState.OFFERED, None, None, hourly_uc, QUOTED_MS, 0, NOW, None, None, False),
            *(None, COST_UC, HOLD, True, False, "script"),
        )

    def happen(self, happening: AttemptHappening) -> WorkPlan:
        leases = {id_: lease._replace(wanted=self.closing is None) for id_, lease in self.leases.items()}
        return self.write(follow([happening], leases, TERMS, IDS, NOW))

    def deliver_late(self, attempt_id: UUID) -> WorkPlan:
        """As the store finds it: the task waits, or another attempt has it and has not delivered."""
        lease = self.given_up.get(attempt_id)
        if lease is None or lease.state not in GIVEN_UP or lease.task_id in self.ended:
            return WorkPlan()
        holder = next((held for held in self.leases.values() if held.task_id == lease.task_id), None)
        if holder is not None and holder.state is AttemptState.SUBMITTED:
            return WorkPlan()
        held = (holder.failures, holder.tries) if holder else (0, 0)
        failures, tries = self.waiting.pop(lease.task_id, held)
        late = LateDelivery(lease._replace(failures=failures, tries=tries), holder)
        return self.write(follow((), self.leases, TERMS, IDS, NOW, late=[late]))

    def close(self) -> WorkPlan:
        self.closing = ClosingReason.CALLED_OFF
        open_ = {id_: lease for id_, lease in self.leases.items() if lease.state is not AttemptState.SUBMITTED}
        unwanted = [UnwantedTask(task_id, JOB, is_audit=False) for task_id in self.waiting]
        self.waiting.clear()
        leases = {id_: lease._replace(wanted=False) for id_, lease in open_.items()}
        return self.write(follow(call_offs(leases.values(), {}), leases, TERMS, IDS, NOW, unwanted=unwanted))

    def write(self, plan: WorkPlan) -> WorkPlan:
        for change in plan.changes:
            self.move(change.attempt_id, change.state)
            self.leases[change.attempt_id] = self.leases[change.attempt_id]._replace(state=change.state)
        for end in plan.ends:
            self.move(end.attempt_id, end.state)
            self.given_up[end.attempt_id] = self.leases.pop(end.attempt_id)._replace(state=end.state)
            if end.paid_uc:
                self.paid_tasks[self.given_up[end.attempt_id].task_id] += 1
        for lease in plan.resumed:
            self.move(lease.attempt_id, lease.state)
            self.leases[lease.attempt_id] = lease
            del self.given_up[lease.attempt_id]
        for again in plan.waiting:
            assert again.tries == self.tried[again.task_id], "no try is forgotten"
            self.waiting[again.task_id] = (again.failures, again.tries)
        for task_end in plan.task_ends:
            assert task_end.task_id not in self.ended, "a task ends once"
            self.ended[task_end.task_id] = task_end.state
        if plan.task_ends:
            self.conclude(plan)
        return plan

    def conclude(self, plan: WorkPlan) -> None:
        [count] = counts_of(plan.task_ends)
        self.spent_uc += count.spent_uc
        counts = Counter(self.ended.values())
        ends = (counts[TaskState.COMPLETED], counts[TaskState.FAILED], counts[TaskState.CANCELLED])
        job = CountedJob(JOB, CUSTOMER, self.state, self.closing, HOLD, len(TASKS), *ends, self.spent_uc)
        concluded = conclude(plan, [job], self.fund_uc, TERMS, IDS, NOW)
        for owed in concluded.obligations:
            assert owed.amount_uc > 0
            if owed.hold_id is None:
                assert owed.payer.kind is AccountKind.BONUS_FUND
                self.fund_uc -= owed.amount_uc
            else:
                self.held_uc -= owed.amount_uc
            self.paid_uc[owed.payee.kind] += owed.amount_uc
            self.fund_uc += owed.amount_uc if owed.payee.kind is AccountKind.BONUS_FUND else 0
        self.state = concluded.ended.get(JOB, self.state)
        assert list(concluded.ended_hold_ids) == ([HOLD] if self.state in JOB_ENDED else [])

    def move(self, attempt_id: UUID, state: AttemptState) -> None:
        before = self.attempts[attempt_id]
        one_step = {after for (start, _), after in ATTEMPTS.items() if start is before}
        two_steps = {after for (start, _), after in ATTEMPTS.items() if start in one_step}
        assert state in one_step | two_steps, f"{before} became {state}"
        self.attempts[attempt_id] = state

    def check(self) -> None:
        held = Counter(lease.task_id for lease in self.leases.values())
        for task_id in TASKS:
            assert (task_id in self.waiting) + held[task_id] + (task_id in self.ended) == 1, "each task is in one place"
            assert self.paid_tasks[task_id] == (self.ended.get(task_id) is TaskState.COMPLETED), "paid once, if right"
        captured_uc = COST_UC * len(TASKS) - self.held_uc
        assert self.held_uc >= 0, "nobody is paid more than was held"
        assert captured_uc == self.spent_uc, "what left the hold is what the job is said to have cost"
        assert self.fund_uc >= 0
        paid_uc = sum(self.paid_uc.values()) - self.paid_uc[AccountKind.BONUS_FUND]
        assert paid_uc + self.fund_uc == captured_uc, "whatever left the hold is with somebody, and nothing more"
        assert (self.state in JOB_ENDED) == (len(self.ended) == len(TASKS)), "a job ends with its last task"


REPORTED = st.sampled_from(
    [
        *((happening,) for happening in Happening if happening is not Happening.CALLED_OFF),
        (Happening.DELIVERED, Happening.PASSED),
        (Happening.DELIVERED, Happening.FAILED),
        (Happening.ACCEPTED, Happening.DECLINED),
    ]
)
ATTEMPT = st.integers(0, 5).map(lambda number: UUID(int=1_000 + number))
MOVES = st.one_of(
    st.tuples(st.just("place"), st.sampled_from(TASKS), st.integers(0, 1)),
    st.tuples(st.just("report"), ATTEMPT, REPORTED, st.integers(-1, 9_000)),
    st.tuples(st.just("late"), ATTEMPT),
    st.just("close"),
)


def play(tables: Tables, move: object) -> WorkPlan:
    match move:
        case ("place", UUID() as task_id, int(node)):
            tables.place(task_id, node)
            return WorkPlan()
        case ("late", UUID() as attempt_id):
            return tables.deliver_late(attempt_id)
        case ("report", UUID() as attempt_id, tuple() as happenings, int(used_ms)):
            lease = tables.leases.get(attempt_id) or tables.given_up.get(attempt_id)
            node_id, token = (lease.node_id, lease.tries) if lease else (NODES[0], 1)
            return tables.happen(
                AttemptHappening(attempt_id, token, node_id, happenings, used=UsedTime(used_ms, used_ms))
            )
        case _:
            return tables.close()


@given(st.lists(MOVES, max_size=60))
def test_no_order_of_happenings_makes_money_or_states_from_nothing(moves: list[object]) -> None:
    tables = Tables()
    for move in moves:
        play(tables, move)
        tables.check()


@given(st.lists(MOVES, max_size=40))
def test_what_comes_twice_changes_nothing_the_second_time(moves: list[object]) -> None:
    tables = Tables()
    for move in moves:
        if not play(tables, move).is_empty:
            assert play(tables, move).is_empty, "it finds its lease over, or in the state that it led to"
            tables.check()


@given(st.integers(2, 9), st.sampled_from(NODES), REPORTED)
def test_a_stale_lease_or_another_node_changes_nothing(
    token: int, node_id: UUID, happenings: tuple[Happening, ...]
) -> None:
    tables = Tables()
    tables.place(TASKS[0], 0)
    [attempt_id] = tables.leases
    given_token = token if node_id == NODES[0] else 1
    assert tables.happen(AttemptHappening(attempt_id, given_token, node_id, happenings)).is_empty


def test_a_late_result_calls_the_present_holder_off_without_blame() -> None:
    tables = Tables()
    tables.place(TASKS[0], 0)
    [first] = tables.leases
    tables.happen(AttemptHappening(first, 1, NODES[0], (Happening.NODE_LOST,)))
    tables.place(TASKS[0], 1)
    [second] = tables.leases
    plan = tables.deliver_late(first)
    assert [call_off.attempt_id for call_off in plan.called_off] == [second]
    assert (plan.blames, tables.attempts[second]) == ([], AttemptState.CANCELLED)
    tables.happen(AttemptHappening(first, 2, NODES[0], (Happening.PASSED,), used=UsedTime(10, 10)))
    tables.check()
    assert tables.ended == {TASKS[0]: TaskState.COMPLETED}


def test_whoever_works_for_nothing_is_owed_nothing() -> None:
    tables = Tables()
    tables.place(TASKS[0], 0, hourly_uc=0)
    [attempt_id] = tables.leases
    plan = tables.happen(
        AttemptHappening(attempt_id, 1, NODES[0], (Happening.DELIVERED, Happening.PASSED), used=UsedTime(9, 9))
    )
    assert [(end.paid_uc, end.transfer_id) for end in plan.ends] == [(0, None)]
    assert (tables.held_uc, tables.paid_uc) == (COST_UC * len(TASKS), Counter())
    assert tables.ended == {TASKS[0]: TaskState.COMPLETED}


def test_the_owner_of_a_late_attempt_is_blamed_once() -> None:
    tables = Tables()
    tables.place(TASKS[0], 0)
    [attempt_id] = tables.leases
    late = AttemptHappening(attempt_id, 1, NODES[0], (Happening.STARTED, Happening.TIME_UP))
    assert [owner_id for owner_id, _ in tables.happen(late).blames] == [UUID(int=20)]
    assert tables.happen(late).is_empty


def test_who_calls_a_job_off_pays_for_the_time_and_its_provider_gets_what_was_heard_of() -> None:
    """A customer printed the result into the log and called the job off, for nothing."""
    tables = Tables()
    tables.place(TASKS[0], 0)
    [lease] = tables.leases.values()
    begun_at, heard_at = Instant(NOW - QUOTED_MS * 500), Instant(NOW - QUOTED_MS * 250)
    running = lease._replace(state=AttemptState.RUNNING, begun_at=begun_at, heard_at=heard_at, wanted=False)
    plan = follow(call_offs([running], {}), {lease.attempt_id: running}, TERMS, IDS, NOW)
    [end], [paid] = plan.task_ends, plan.paid
    half = stopped_pay(TERMS.plan, PayTerms(HOURLY_UC, QUOTED_MS), QUOTED_MS // 2, QUOTED_MS // 4)
    assert (paid.due, end.cost_uc, paid.is_verified) == (half, half.cost_uc, False)
    assert half.reward_uc == half.unshown_uc > 0
    unheard = running._replace(begun_at=None, state=AttemptState.ACCEPTED)
    assert not follow(call_offs([unheard], {}), {lease.attempt_id: unheard}, TERMS, IDS, NOW).paid
