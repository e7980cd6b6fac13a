"""Jobs, tasks and attempts of a run, by production's life cycles, and the effects of each step.

Every state comes from `core.jobs`; this module applies the effects to nodes, queue and books. Each step is watched.
Jobs, tasks and attempts that are over are forgotten, except for what the tally counts.
"""

from collections.abc import Callable
from uuid import UUID

from tidemill.core.clock import SECOND
from tidemill.core.jobs import job as jobs
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import AT_WORK, AttemptState, Happening, after
from tidemill.core.jobs.job import EndCounts, JobEffect, JobHappening, JobLife
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.task import ENDED, TaskEffect, TaskLife, TaskState, TaskStep
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.settlement.rewards import attempt_pay
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

_ENDS = {
    TaskState.COMPLETED: EndCounts(completed=1),
    TaskState.FAILED: EndCounts(failed=1),
    TaskState.CANCELLED: EndCounts(cancelled=1),
}


class SimulatedJob:
    """A job that is not over. `tasks` are the numbers of its tasks, and each may cost so much."""

    __slots__ = ("cost_max_uc", "demand", "id", "life", "needs", "number", "task_type", "tasks")

    def __init__(self, number: int, task_type: int, tasks: range, demand: Demand, needs: Needs, cost_uc: int) -> None:
        self.number, self.task_type, self.tasks, self.demand = number, task_type, tasks, demand
        self.needs, self.cost_max_uc = needs, cost_uc
        self.id = UUID(int=number)
        self.life = JobLife(tasks=len(tasks))


class Lives:
    """`freed` is called with nodes that gave something back, `again` with attempts that failed and must be made
    elsewhere, and whether that node is barred for good; `fewer` for each task that waits no more."""

    def __init__(
        self, scenario: DayScenario, agenda: Agenda, nodes: SimulatedNodes, watch: RuleWatch, tally: DayTally
    ) -> None:
        self._rules, self._times, self._begins = scenario.rules, scenario.times, scenario.begins
        self._agenda, self._nodes, self._watch, self._tally = agenda, nodes, watch, tally
        self.books = DayBooks(self._rules.plan)
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
        self.tasks.update(dict.fromkeys(job.tasks, WAITING))

    def is_waiting(self, task: int) -> bool:
        life = self.tasks.get(task)
        return life is not None and life.state is TaskState.PENDING

    def assign(self, attempt: SimulatedAttempt) -> None:
        """A task is assigned to a node."""
        life = self.tasks[attempt.task]
        assigned = tasks.place(life, attempt.id)
        assert assigned is not None, "only who waits is placed"
        self._watch.task(attempt.task, life, assigned)
        self.tasks[attempt.task] = assigned
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
        for task in job.tasks:
            life = self.tasks.get(task)
            cancelled = tasks.cancel(life) if life is not None else None
            if life is not None and cancelled is not None:
                self._cancel(job, task, life, *cancelled)

    def verify(self, attempt: SimulatedAttempt) -> None:
        """Verification of a result begins."""
        life = self.tasks[attempt.task]
        verifying = tasks.verify(life)
        assert verifying is not None, "a result is judged once"
        self._watch.task(attempt.task, life, verifying)
        self.tasks[attempt.task] = verifying

    def happen(self, attempt: SimulatedAttempt, happening: Happening) -> bool:
        """Production decides what follows. Returns whether anything does."""
        life = self.tasks.get(attempt.task)
        self._watch.held(attempt.state, life)
        if life is None:
            self.attempts.pop(attempt.number, None)
            return False
        wanted = self.jobs[attempt.job].life.wants_tasks
        step = tasks.step(life, attempt, happening, self._rules.patience, wanted=wanted)
        if step is None:
            return False
        self._tally.happened[happening] += 1
        self._watch.task(attempt.task, life, step.task)
        self._move(attempt, step.attempt)
        self._follow(attempt, life, step)
        return True

    def _step_job(self, job: SimulatedJob, happening: JobHappening) -> bool:
        stepped = jobs.step(job.life, happening)
        if stepped is None:
            return False
        self._watch.job(job.number, job.life, stepped.job)
        job.life = stepped.job
        if JobEffect.HOLD in stepped.effects:
            self.books.hold(job.number, job.cost_max_uc * job.life.tasks)
        return True

    def _cancel(
        self, job: SimulatedJob, task: int, life: TaskLife, cancelled: TaskLife, effects: tuple[TaskEffect, ...]
    ) -> None:
        if life.state is TaskState.PENDING:
            self.fewer()
        if TaskEffect.CALL_OFF in effects:
            assert life.holder is not None
            self._call_off(self.attempts[life.holder.int])
        self._watch.task(task, life, cancelled)
        self._end(job, task, cancelled, effects)

    def _end(self, job: SimulatedJob, task: int, ended: TaskLife, effects: tuple[TaskEffect, ...]) -> None:
        """A task has ended; perhaps its job has, too."""
        del self.tasks[task]
        self._tally.tasks[ended.state] += 1
        if TaskEffect.GIVE_BACK in effects:
            self.books.give_back(job.number, job.cost_max_uc)
        counted = jobs.count_ends(job.life, _ENDS[ended.state])
        self._watch.job(job.number, job.life, counted.job)
        job.life = counted.job
        if JobEffect.RELEASE in counted.effects:
            self.books.release(job.number)
            self._tally.jobs[counted.job.state] += 1
            del self.jobs[job.number]

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

    def _follow(self, attempt: SimulatedAttempt, life: TaskLife, step: TaskStep) -> None:
        following = step.task
        if life.state is TaskState.PENDING:
            self.fewer()  # a late result came before another attempt was made
        if step.called_off is not None:
            self._call_off(self.attempts[step.called_off.int])
        if TaskEffect.PAY in step.effects:
            self._pay(attempt)
        if following.state in ENDED:
            self._end(self.jobs[attempt.job], attempt.task, following, step.effects)
            return
        self.tasks[attempt.task] = following
        if following.state is TaskState.PENDING:
            self.again(attempt, step.blame is not None)

    def _call_off(self, attempt: SimulatedAttempt) -> None:
        state = after(attempt.state, Happening.CALLED_OFF)
        assert state is not None, "who has a task can be called off"
        self._tally.happened[Happening.CALLED_OFF] += 1
        self._move(attempt, state)

    def _pay(self, attempt: SimulatedAttempt) -> None:
        used_ms = (attempt.delivered_at - attempt.started_at) // _MS
        pay = attempt_pay(self._rules.plan, attempt.hourly_uc, attempt.quoted_ms, used_ms)
        self.books.pay(self.jobs[attempt.job].id, self._nodes.sellers[attempt.node].candidate.owner_id, pay)
        self._tally.worked(attempt)
