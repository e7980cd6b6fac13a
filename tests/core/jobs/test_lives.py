"""The lives of attempts, tasks and jobs, as tables and under any order of happenings."""

from dataclasses import replace
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.jobs import attempt as attempts
from tidemill.core.jobs import job as jobs
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import AT_WORK, OVER, AttemptState, Happening
from tidemill.core.jobs.job import ClosingReason, EndCounts, JobHappening, JobLife, JobState
from tidemill.core.jobs.task import Attempt, Blame, RetryLimits, TaskLife, TaskState, Told

FIRST, SECOND = UUID(int=1), UUID(int=2)
PATIENCE = RetryLimits(failures_max=3, tries_max=6)


def held(state: TaskState = TaskState.COMPUTING, failures: int = 0, tries: int = 1) -> TaskLife:
    return TaskLife(state, failures, tries, FIRST)


def test_every_attempt_at_work_can_be_ended_by_anybody() -> None:
    for state in AT_WORK:
        assert attempts.after(state, Happening.NODE_LOST) is AttemptState.LOST
        assert attempts.after(state, Happening.TIME_UP) is AttemptState.EXPIRED
        assert attempts.after(state, Happening.CALLED_OFF) is AttemptState.CANCELLED


def test_what_is_over_stays_over_except_for_a_late_result() -> None:
    moves = {(state, what) for state, what in attempts.ATTEMPTS if state in OVER}
    assert moves == {
        (AttemptState.LOST, Happening.DELIVERED),
        (AttemptState.EXPIRED, Happening.DELIVERED),
    }


def test_only_the_house_calls_a_task_faulty() -> None:
    """Two free accounts failed anybody's jobs, by making up the same failure."""
    attempt = Attempt(FIRST, AttemptState.RUNNING)
    for failures, ours in product(range(PATIENCE.tries_max), (False, True)):
        life = TaskLife(TaskState.COMPUTING, failures=failures, tries=failures + 1, holder=FIRST)
        told = Told(of_our_kind=ours)
        by_stranger = tasks.step(life, attempt, Happening.CRASHED, PATIENCE, told=told)
        by_house = tasks.step(life, attempt, Happening.CRASHED, PATIENCE, told=told._replace(by_house=True))
        assert by_house
        assert by_house.task.state is TaskState.FAILED
        given_up = (not ours and failures + 1 >= PATIENCE.failures_max) or life.tries >= PATIENCE.tries_max
        assert by_stranger
        assert (by_stranger.task.state is TaskState.FAILED) == given_up
        assert by_stranger.blame is None, "nobody is blamed before another node has succeeded"


@pytest.mark.parametrize(
    ("state", "happening", "failures", "blame"),
    [
        (AttemptState.RUNNING, Happening.CRASHED, 1, None),
        (AttemptState.RUNNING, Happening.TIME_UP, 0, Blame.LATE),
        (AttemptState.SUBMITTED, Happening.FAILED, 0, Blame.WRONG),
        (AttemptState.SUBMITTED, Happening.UNSURE, 1, None),
        (AttemptState.ACCEPTED, Happening.DECLINED, 0, Blame.BROKE_ITS_WORD),
        (AttemptState.OFFERED, Happening.DECLINED, 0, None),
        (AttemptState.OFFERED, Happening.TIME_UP, 0, None),
        (AttemptState.RUNNING, Happening.NODE_LOST, 0, None),
    ],
)
def test_only_its_own_failures_are_counted_against_a_task(
    state: AttemptState, happening: Happening, failures: int, blame: Blame | None
) -> None:
    step = tasks.step(held(), Attempt(FIRST, state), happening, PATIENCE)
    assert step is not None
    assert step.task == TaskLife(TaskState.PENDING, failures, 1)
    assert step.blame is blame


@pytest.mark.parametrize("state", [AttemptState.ACCEPTED, AttemptState.RUNNING])
def test_whoever_says_twice_that_it_accepts_may_still_decline(state: AttemptState) -> None:
    said = (Happening.ACCEPTED, Happening.DECLINED)
    step = tasks.steps(held(), Attempt(FIRST, state), said, PATIENCE)
    assert step is not None
    assert (step.attempt, step.blame) == (AttemptState.DECLINED, Blame.BROKE_ITS_WORD)


def test_what_was_delivered_twice_is_not_judged_for_that() -> None:
    said = (Happening.DELIVERED, Happening.PASSED)
    assert tasks.steps(held(TaskState.VERIFYING), Attempt(FIRST, AttemptState.SUBMITTED), said, PATIENCE) is None


def test_a_task_is_given_up_after_three_failures() -> None:
    step = tasks.step(held(failures=2), Attempt(FIRST, AttemptState.RUNNING), Happening.CRASHED, PATIENCE)
    assert step is not None
    assert step.task.state is TaskState.FAILED


def test_a_task_of_ours_is_given_up_when_three_owners_have_missed_what_its_customer_expects() -> None:
    for missed_by in range(1, 5):
        told = Told(of_our_kind=True, missed_by=missed_by)
        attempt = Attempt(FIRST, AttemptState.SUBMITTED)
        step = tasks.step(held(TaskState.VERIFYING, failures=2), attempt, Happening.UNSURE, PATIENCE, told=told)
        assert step is not None
        assert (step.task.state is TaskState.FAILED, step.blame) == (missed_by >= 3, None)


def test_a_task_that_every_node_loses_is_given_up_in_the_end() -> None:
    step = tasks.step(held(tries=6), Attempt(FIRST, AttemptState.RUNNING), Happening.NODE_LOST, PATIENCE)
    assert step is not None
    assert step.task.state is TaskState.FAILED


def test_a_late_result_takes_the_task_back_from_the_attempt_that_has_it_now() -> None:
    task = replace(held(), holder=SECOND)
    step = tasks.step(task, Attempt(FIRST, AttemptState.LOST), Happening.DELIVERED, PATIENCE)
    assert step is not None
    assert (step.task.state, step.task.holder) == (TaskState.PROOF_SUBMITTED, FIRST)
    assert step.called_off == SECOND


@pytest.mark.parametrize("state", [TaskState.PROOF_SUBMITTED, TaskState.VERIFYING, *sorted(tasks.ENDED)])
def test_a_late_result_is_not_taken_when_another_was_delivered(state: TaskState) -> None:
    task = TaskLife(state, 0, 2, SECOND)
    assert tasks.step(task, Attempt(FIRST, AttemptState.LOST), Happening.DELIVERED, PATIENCE) is None


def test_a_cancelled_job_still_judges_and_pays_what_was_delivered() -> None:
    assert tasks.cancel(held(TaskState.VERIFYING)) is None
    delivered = Attempt(FIRST, AttemptState.SUBMITTED)
    step = tasks.step(held(TaskState.VERIFYING), delivered, Happening.PASSED, PATIENCE, wanted=False)
    assert step is not None
    assert step.task.state is TaskState.COMPLETED


def test_a_wrong_result_of_a_cancelled_job_is_not_tried_again() -> None:
    delivered = Attempt(FIRST, AttemptState.SUBMITTED)
    step = tasks.step(held(TaskState.VERIFYING), delivered, Happening.FAILED, PATIENCE, wanted=False)
    assert step is not None
    assert step.task.state is TaskState.CANCELLED


class Played:
    """A task, its attempts, and what it led to, driven by what a test draws."""

    def __init__(self) -> None:
        self.task = TaskLife()
        self.attempts: dict[UUID, AttemptState] = {}
        self.ends: list[TaskState] = []
        self.wanted = True

    def place(self) -> None:
        attempt_id = UUID(int=len(self.attempts) + 1)
        if placed := tasks.place(self.task, attempt_id):
            self.task = placed
            self.attempts[attempt_id] = AttemptState.OFFERED

    def happen(self, number: int, happening: Happening) -> None:
        attempt_id = UUID(int=number)
        if attempt_id not in self.attempts:
            return
        attempt = Attempt(attempt_id, self.attempts[attempt_id])
        if step := tasks.step(self.task, attempt, happening, PATIENCE, wanted=self.wanted):
            self.task, self.attempts[attempt_id] = step.task, step.attempt
            self.note_end()
            if step.called_off:
                self.call_off(step.called_off)

    def cancel(self) -> None:
        self.wanted = False
        holder = self.task.holder
        if cancelled := tasks.cancel(self.task):
            self.task = cancelled
            self.note_end()
            if holder:
                self.call_off(holder)

    def note_end(self) -> None:
        if self.task.state in tasks.ENDED:
            self.ends.append(self.task.state)

    def call_off(self, attempt_id: UUID) -> None:
        state = attempts.after(self.attempts[attempt_id], Happening.CALLED_OFF)
        assert state, "who holds an open task is at work"
        self.attempts[attempt_id] = state

    def check(self) -> None:
        at_work = [one for one, state in self.attempts.items() if state in AT_WORK]
        assert self.ends == [self.task.state] * (self.task.state in tasks.ENDED), "a task ends once"
        assert len(at_work) <= 1, "at most one node works on a task"
        assert self.task.tries == len(self.attempts) <= PATIENCE.tries_max
        if self.task.state in (TaskState.ASSIGNED, TaskState.COMPUTING):
            assert at_work == [self.task.holder]
        if self.task.state is TaskState.PENDING or self.task.state in tasks.ENDED:
            assert not at_work, "nothing is reserved for a task that nobody works on"


HAPPENINGS = st.sampled_from([one for one in Happening if one is not Happening.CALLED_OFF])
MOVES = st.one_of(st.just("place"), st.just("cancel"), st.tuples(st.integers(1, 6), HAPPENINGS))


@given(st.lists(MOVES, max_size=60))
def test_no_order_of_happenings_ends_a_task_twice_or_leaves_something_reserved(moves: list[object]) -> None:
    played = Played()
    for move in moves:
        match move:
            case "place":
                played.place()
            case "cancel":
                played.cancel()
            case (int(number), Happening() as happening):
                played.happen(number, happening)
        played.check()


def test_a_job_ends_when_its_last_task_does() -> None:
    assert jobs.after_count(JobLife(JobState.RUNNING, 3, EndCounts(completed=2))).state is JobState.RUNNING
    assert jobs.after_count(JobLife(JobState.RUNNING, 3, EndCounts(completed=3))).state is JobState.COMPLETED


@pytest.mark.parametrize(
    ("closing", "ends", "state"),
    [
        (None, EndCounts(2, 1, 0), JobState.FAILED),
        (ClosingReason.CALLED_OFF, EndCounts(1, 0, 2), JobState.CANCELLED),
        (ClosingReason.OUT_OF_TIME, EndCounts(1, 0, 2), JobState.EXPIRED),
        (ClosingReason.OUT_OF_BUDGET, EndCounts(1, 0, 2), JobState.CANCELLED),
        (ClosingReason.CALLED_OFF, EndCounts(3, 0, 0), JobState.COMPLETED),
    ],
)
def test_how_a_job_ended_says_why(closing: ClosingReason | None, ends: EndCounts, state: JobState) -> None:
    assert jobs.after_count(JobLife(JobState.RUNNING, 3, ends, closing)).state is state


def test_a_job_is_confirmed_once() -> None:
    quoted = JobLife(JobState.QUOTED, tasks=1)
    confirmed = jobs.step(quoted, JobHappening.CONFIRMED)
    assert confirmed
    assert jobs.step(confirmed, JobHappening.CONFIRMED) is None


@pytest.mark.parametrize("happening", list(JobHappening))
@pytest.mark.parametrize("state", sorted(jobs.ENDED))
def test_an_ended_job_stays_as_it_is(state: JobState, happening: JobHappening) -> None:
    assert jobs.step(JobLife(state, tasks=1), happening) is None


def test_a_job_is_called_off_once_and_cancels_its_tasks() -> None:
    called_off = jobs.step(JobLife(JobState.QUEUED, tasks=2), JobHappening.CALLED_OFF)
    assert called_off
    assert not called_off.wants_tasks
    assert jobs.step(called_off, JobHappening.TIME_UP) is None
