"""Jobs, tasks and attempts of a run: production's plans say what follows, and this module carries them out.

It applies plans to nodes, queue and books, as the store writes them to the database. Each step is watched. Jobs, tasks
and attempts that are over are forgotten, except for what the tally counts.
"""

from collections.abc import Callable
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids, uuid_of
from tidemill.core.jobs import job as jobs
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import AT_WORK, AttemptState, Happening
from tidemill.core.jobs.job import EndCounts, JobHappening, JobLife, JobState
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.plans.happenings import (
    AttemptHappening,
    LateDelivery,
    Lease,
    UnwantedTask,
    WorkTerms,
    call_offs,
)
from tidemill.core.jobs.plans.job_ends import CountedJob, JobCount, conclude, counts_of
from tidemill.core.jobs.plans.work_plan import WorkPlan, follow
from tidemill.core.jobs.task import TaskLife, TaskState
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.settlement.pay import UsedTime
from tidemill.sim.days.agenda import Agenda
from tidemill.sim.days.books import DayBooks
from tidemill.sim.days.nodes import SimulatedAttempt, SimulatedNodes
from tidemill.sim.days.scenario import DayScenario
from tidemill.sim.days.tally import DayTally
from tidemill.sim.days.watch import RuleWatch

WAITING = TaskLife()
_MS = SECOND // 1000
_KEPT = AT_WORK | {AttemptState.SUBMITTED, AttemptState.EXPIRED}
"""Attempts that may still deliver something."""

_TASKS_OF_HOLDERS = {
    AttemptState.ACCEPTED: TaskState.ASSIGNED,
    AttemptState.RUNNING: TaskState.COMPUTING,
    AttemptState.SUBMITTED: TaskState.PROOF_SUBMITTED,
}

_LASTING = frozenset({AttemptState.JUDGED, AttemptState.EXPIRED})
"""A node whose attempt ended so does not get the task again."""


class SimulatedJob:
    """A job that is not over. `tasks` are the numbers of its tasks, and each may cost so much."""

    __slots__ = ("cost_max_uc", "demand", "id", "life", "needs", "number", "task_type", "tasks")

    def __init__(self, number: int, task_type: int, tasks: range, demand: Demand, needs: Needs, cost_uc: int) -> None:
        self.number, self.task_type, self.tasks, self.demand = number, task_type, tasks, demand
        self.needs, self.cost_max_uc = needs, cost_uc
        self.id = UUID(int=number)
        self.life = JobLife(tasks=len(tasks))

    @property
    def customer_id(self) -> UUID:
        assert self.demand.customer_id is not None, "somebody orders a job"
        return self.demand.customer_id


class Lives:
    """`freed` is called with nodes that gave something back, `again` with attempts that failed and must be made
    elsewhere, and whether that node is barred for good; `fewer` for each task that waits no more."""

    def __init__(
        self, scenario: DayScenario, agenda: Agenda, nodes: SimulatedNodes, watch: RuleWatch, tally: DayTally
    ) -> None:
        self._terms = WorkTerms(scenario.rules.patience, scenario.rules.plan)
        self._begins, self._ids = scenario.begins, Ids(lambda _: 0)
        self._agenda, self._nodes, self._watch, self._tally = agenda, nodes, watch, tally
        self.books = DayBooks()
        self.jobs: dict[int, SimulatedJob] = {}
        self.tasks: dict[int, TaskLife] = {}
        self.attempts: dict[int, SimulatedAttempt] = {}
        self.freed: Callable[[PoolNode], None] = lambda _: None
        self.again: Callable[[SimulatedAttempt, bool], None] = lambda *_: None
        self.fewer: Callable[[], None] = lambda: None

    def confirm(self, job: SimulatedJob) -> None:
        """A customer has ordered: the job is quoted, confirmed and held for, and its tasks wait."""
        self.jobs[job.number] = job
        for happening in (JobHappening.QUOTED, JobHappening.CONFIRMED):
            self._step_job(job, happening)
        self.books.hold(job.number, job.cost_max_uc * job.life.tasks)
        self.tasks.update(dict.fromkeys(job.tasks, WAITING))

    def is_waiting(self, task: int) -> bool:
        life = self.tasks.get(task)
        return life is not None and life.state is TaskState.PENDING

    def assign(self, attempt: SimulatedAttempt) -> None:
        """A task is assigned to a node."""
        assigned = tasks.place(self.tasks[attempt.task], attempt.id)
        assert assigned is not None, "only who waits is placed"
        self._set_life(attempt.task, assigned)
        attempt.tries = assigned.tries
        self._step_job(self.jobs[attempt.job], JobHappening.STARTED)
        self.attempts[attempt.number] = attempt
        self._nodes.take(attempt)
        self.fewer()

    def close(self, closing: tuple[int, JobHappening]) -> None:
        """A job is out of time or called off: tasks without a delivered result are cancelled."""
        job = self.jobs.get(closing[0])
        if job is None or not self._step_job(job, closing[1]):
            return
        lives = [(task, life) for task in job.tasks if (life := self.tasks.get(task)) is not None]
        holders = [self.attempts[life.holder.int] for _, life in lives if life.holder is not None]
        leases = [self._lease(holder) for holder in holders if holder.state in AT_WORK]
        unwanted = [UnwantedTask(uuid_of(task), job.id, is_audit=False) for task, life in lives if life.holder is None]
        locked = {lease.attempt_id: lease for lease in leases}
        self._carry_out(follow(call_offs(leases, {}), locked, self._terms, self._ids, self._now, unwanted=unwanted))

    def happen(self, attempt: SimulatedAttempt, happening: Happening) -> bool:
        """Production decides what follows. Returns whether anything does."""
        life = self.tasks.get(attempt.task)
        self._watch.held(attempt.state, life)
        if life is None:
            self.attempts.pop(attempt.number, None)
            return False
        plan = self._follow(attempt, life, happening)
        if plan.is_empty:
            return False
        self._tally.happened[happening] += 1
        self._carry_out(plan)
        return True

    @property
    def _now(self) -> Instant:
        return Instant(self._agenda.now)

    def _follow(self, attempt: SimulatedAttempt, life: TaskLife, happening: Happening) -> WorkPlan:
        lease = self._lease(attempt, life.failures)
        if life.holder == attempt.id:
            told_ms, passed_ms = (
                (attempt.delivered_at - since) // _MS for since in (attempt.started_at, attempt.offered_at)
            )
            used = UsedTime(told_ms, passed_ms)
            happened = AttemptHappening(attempt.id, attempt.tries, lease.node_id, (happening,), used=used)
            return follow([happened], {attempt.id: lease}, self._terms, self._ids, self._now)
        holder = None if life.holder is None else self.attempts[life.holder.int]
        if happening is not Happening.DELIVERED or (holder is not None and holder.state not in AT_WORK):
            return WorkPlan()  # nothing but a first result is taken from an attempt that was given up
        late = LateDelivery(lease._replace(tries=life.tries), None if holder is None else self._lease(holder))
        return follow((), {}, self._terms, self._ids, self._now, late=[late])

    def _lease(self, attempt: SimulatedAttempt, failures: int = 0) -> Lease:
        job, candidate = self.jobs[attempt.job], self._nodes.sellers[attempt.node].candidate
        return Lease(
            attempt_id=attempt.id,
            task_id=uuid_of(attempt.task),
            job_id=job.id,
            account_id=job.customer_id,
            node_id=candidate.node_id,
            owner_id=candidate.owner_id,
            rank=0,
            failures=failures,
            tries=attempt.tries,
            state=attempt.state,
            batch_id=None,
            place=None,
            hourly_uc=attempt.terms.hourly_uc,
            quoted_ms=attempt.terms.quoted_ms,
            work_ms=attempt.terms.work_ms,
            offered_at=Instant(attempt.offered_at),
            begun_at=Instant(attempt.started_at) if attempt.state is AttemptState.RUNNING else None,
            heard_at=self._now,
            house=self._nodes.sellers[attempt.node].house,
            expected=None,
            cost_max_uc=job.cost_max_uc,
            hold_id=job.id,
            wanted=job.life.wants_tasks,
            private=False,
            kind=job.demand.kind,
        )

    def _carry_out(self, plan: WorkPlan) -> None:
        """Do what a plan says: attempts first, then tasks, then jobs and money."""
        for change in plan.changes:
            self._continue(self.attempts[change.attempt_id.int], change.state)
        for lease in plan.resumed:
            if self.is_waiting(lease.task_id.int):
                self.fewer()  # the late result came before another attempt was made
            self.attempts[lease.attempt_id.int].tries = lease.tries
            self._continue(self.attempts[lease.attempt_id.int], lease.state)
        ended = {}
        for end in plan.ends:
            attempt = ended[self.attempts[end.attempt_id.int].task] = self.attempts[end.attempt_id.int]
            self._move(attempt, end.state)
            if end.paid_uc:
                self._tally.worked(attempt)
        self._tally.happened[Happening.CALLED_OFF] += len(plan.called_off)
        for waiting in plan.waiting:
            task = waiting.task_id.int
            self._set_life(task, TaskLife(TaskState.PENDING, waiting.failures, waiting.tries))
            self.again(ended[task], ended[task].state in _LASTING)
        if plan.task_ends:
            self._end(plan)

    def _end(self, plan: WorkPlan) -> None:
        """Tasks have ended; perhaps their jobs have, too."""
        for end in plan.task_ends:
            task = end.task_id.int
            life = self.tasks[task]
            if life.state is TaskState.PENDING:
                self.fewer()
            self._watch.task(task, life, TaskLife(end.state, life.failures, life.tries))
            del self.tasks[task]
            self._tally.tasks[end.state] += 1
        counted = [self._count(count) for count in counts_of(plan.task_ends)]
        concluded = conclude(plan, counted, self.books.fund_uc, self._terms, self._ids, self._now)
        for obligation in concluded.obligations:
            self.books.pay(obligation)
        for job in counted:
            self._conclude(self.jobs[job.id.int], job.life, concluded.ended.get(job.id))

    def _count(self, count: JobCount) -> CountedJob:
        job = self.jobs[count.job_id.int]
        ends = job.life.ends + EndCounts(count.completed, count.failed, count.cancelled)
        life = (job.life.tasks, ends.completed, ends.failed, ends.cancelled)
        return CountedJob(job.id, job.customer_id, job.life.state, job.life.closing, job.id, *life, 0)

    def _conclude(self, job: SimulatedJob, life: JobLife, ended: JobState | None) -> None:
        after = JobLife(ended or life.state, life.tasks, life.ends, life.closing)
        self._watch.job(job.number, job.life, after)
        job.life = after
        if ended is not None:
            self.books.release(job.number)
            self._tally.jobs[ended] += 1
            del self.jobs[job.number]

    def _step_job(self, job: SimulatedJob, happening: JobHappening) -> bool:
        stepped = jobs.step(job.life, happening)
        if stepped is None:
            return False
        self._watch.job(job.number, job.life, stepped)
        job.life = stepped
        return True

    def _continue(self, attempt: SimulatedAttempt, state: AttemptState) -> None:
        """An attempt goes on, and has its task."""
        self._move(attempt, state)
        life = self.tasks[attempt.task]
        self._set_life(attempt.task, TaskLife(_TASKS_OF_HOLDERS[state], life.failures, life.tries, attempt.id))

    def _set_life(self, task: int, life: TaskLife) -> None:
        self._watch.task(task, self.tasks[task], life)
        self.tasks[task] = life

    def _move(self, attempt: SimulatedAttempt, state: AttemptState) -> None:
        """Move the attempt into its new state; it keeps nothing of its node unless it is at work."""
        before = attempt.state
        self._watch.attempt(before, state)
        attempt.state = state
        if state not in _KEPT:
            self.attempts.pop(attempt.number, None)
        if before in AT_WORK and state not in AT_WORK:
            node = self._nodes.release(attempt, self._agenda.now, self._begins)
            if node is not None:
                self.freed(node)
