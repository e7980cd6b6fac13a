"""The life of a task: one schedulable part of a job, tried until a result is verified, or until it is given up.

At most one attempt holds a task at a time. A task is paid for once, when a result of its holder passes, and never after
it has ended. A failure that a node tells of is a claim, and the task is tried elsewhere. Only the house calls a task
faulty: a failure on a house node ends it. A customer's own program is given up, too, after a few failures, so that it
does not go through a whole pool that has no house; a task of one of our kinds never is. A failure is recorded against
its owner once another node has succeeded. A task is also given up after many tries of any kind, or when its job no
longer wants it. A late result is accepted as long as no other attempt has delivered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, Protocol
from uuid import UUID

from tidemill.core.jobs.attempt import AttemptState, Happening, after


class TaskState(StrEnum):
    PENDING = "pending"
    ASSIGNED = "assigned"
    COMPUTING = "computing"
    PROOF_SUBMITTED = "proof_submitted"
    VERIFYING = "verifying"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED})
_OPEN = frozenset({TaskState.PENDING, TaskState.ASSIGNED, TaskState.COMPUTING})
"""Nothing has been delivered yet."""


class Blame(StrEnum):
    """What goes into an owner's record. The rules of reputation decide how much it weighs."""

    LATE = "late"
    CRASHED = "crashed"
    BROKE_ITS_WORD = "broke_its_word"  # declined after accepting
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class TaskLife:
    """The state of a task. `failures` are its own, `tries` all attempts made, and the holder is its current attempt."""

    state: TaskState = TaskState.PENDING
    failures: int = 0
    tries: int = 0
    holder: UUID | None = None


class AttemptFacts(Protocol):
    """The facts about an attempt that count here."""

    @property
    def id(self) -> UUID: ...

    @property
    def state(self) -> AttemptState: ...


@dataclass(frozen=True, slots=True)
class Attempt:
    id: UUID
    state: AttemptState


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """When a task is given up."""

    failures_max: int = 3
    """How many failures of a customer's own program strangers may tell of, and how many owners may come to another hash
    than the customer expects."""

    tries_max: int = 20


class Told(NamedTuple):
    """Who tells what happened, and whose program it happened to. `missed_by` is how many owners have come to another
    hash than the customer expects."""

    by_house: bool = False
    of_our_kind: bool = False
    missed_by: int = 0


@dataclass(frozen=True, slots=True)
class TaskStep:
    """The result of a happening: the new states, and what the owner's record is told.

    A completed task is paid, once. `called_off` is the attempt that lost the task to another.
    """

    task: TaskLife
    attempt: AttemptState
    blame: Blame | None = None
    called_off: UUID | None = None


_ADVANCES: Mapping[Happening, TaskState | None] = {
    Happening.ACCEPTED: None,
    Happening.STARTED: TaskState.COMPUTING,
    Happening.DELIVERED: TaskState.PROOF_SUBMITTED,
    Happening.PASSED: TaskState.COMPLETED,
    Happening.FAULTED: TaskState.FAILED,
}
"""How a happening to the holder advances its task. All others mean that the attempt failed."""

STRANGER = Told()
_SAID_AGAIN = frozenset({Happening.ACCEPTED, Happening.STARTED})

_BLAMES = {
    Happening.TIME_UP: Blame.LATE,
    Happening.DECLINED: Blame.BROKE_ITS_WORD,
    Happening.FAILED: Blame.WRONG,
}


def place(task: TaskLife, attempt_id: UUID) -> TaskLife | None:
    """Assign the task to a node; None if it is not waiting for one."""
    if task.state is not TaskState.PENDING:
        return None
    return TaskLife(TaskState.ASSIGNED, task.failures, task.tries + 1, attempt_id)


def step(
    task: TaskLife,
    attempt: AttemptFacts,
    happening: Happening,
    patience: RetryLimits,
    *,
    wanted: bool = True,
    told: Told = STRANGER,
) -> TaskStep | None:
    """What a happening to one of its attempts does to a task; None if it changes nothing.

    `wanted` is whether the job still wants its unfinished tasks. An attempt is called off when it does not.
    """
    state = after(attempt.state, happening)
    if state is None or task.state in ENDED:
        return None
    if happening is Happening.CALLED_OFF:
        cancelled = None if wanted else cancel(task)
        return TaskStep(cancelled, state) if cancelled else None
    if task.holder != attempt.id:
        return _late(task, attempt, state) if happening is Happening.DELIVERED and task.state in _OPEN else None
    if happening in _ADVANCES:
        return TaskStep(_in_state(task, _ADVANCES[happening] or task.state), state)
    return _tried(task, attempt, happening, state, patience, wanted=wanted, told=told)


def steps(
    task: TaskLife,
    attempt: AttemptFacts,
    happenings: Sequence[Happening],
    patience: RetryLimits,
    *,
    wanted: bool = True,
    told: Told = STRANGER,
) -> TaskStep | None:
    """The same for happenings known together, as a result and its verdict; None if the first changes nothing.

    A node may report its progress twice, or before it accepts; what changes nothing is passed over.
    """
    result: TaskStep | None = None
    for happening in happenings:
        life, state = (result.task, result.attempt) if result else (task, attempt.state)
        if happening in _SAID_AGAIN and after(state, happening) is None:
            continue
        more = step(life, Attempt(attempt.id, state), happening, patience, wanted=wanted, told=told)
        if more is None:
            assert result is None, "what is known together happens in order"
            return None
        result = replace(more, called_off=result.called_off) if result else more
    return result


def cancel(task: TaskLife) -> TaskLife | None:
    """The job no longer wants the task, and whoever holds it stops. A delivered result is still judged, and paid if it
    is right: None."""
    return _in_state(task, TaskState.CANCELLED) if task.state in _OPEN else None


def _in_state(task: TaskLife, state: TaskState) -> TaskLife:
    """The same task in another state: called so often that a general copy would be too slow."""
    return TaskLife(state, task.failures, task.tries, task.holder)


def _late(task: TaskLife, attempt: AttemptFacts, state: AttemptState) -> TaskStep:
    """An attempt that was given up delivers after all, before any other: it holds the task again."""
    regained = TaskLife(TaskState.PROOF_SUBMITTED, task.failures, task.tries, attempt.id)
    return TaskStep(regained, state, called_off=task.holder)


def _tried(
    task: TaskLife,
    attempt: AttemptFacts,
    happening: Happening,
    state: AttemptState,
    patience: RetryLimits,
    *,
    wanted: bool,
    told: Told,
) -> TaskStep:
    """The attempt failed: the task waits for another, unless it is given up."""
    kept_silent = attempt.state is AttemptState.OFFERED and happening in (Happening.TIME_UP, Happening.DECLINED)
    blame = None if kept_silent else _BLAMES.get(happening)
    crashed, missed = happening is Happening.CRASHED, happening is Happening.UNSURE
    waiting = TaskLife(TaskState.PENDING, task.failures + (crashed or missed), task.tries)
    counted = told.missed_by if told.of_our_kind else waiting.failures
    given_up = counted >= patience.failures_max
    if (crashed and told.by_house) or given_up or waiting.tries >= patience.tries_max:
        return TaskStep(_in_state(waiting, TaskState.FAILED), state, blame)
    if not wanted:
        return TaskStep(_in_state(waiting, TaskState.CANCELLED), state, blame)
    return TaskStep(waiting, state, blame)
