"""The life of a task: one schedulable part of a job, tried until a result is verified, or until it is given up.

At most one attempt holds a task at a time. A task is paid once, when a result of its holder passes, and never after
it has ended. It is given up after a few failures of its own, after many tries of any kind, or when its job no longer
wants it. A node that is lost or declines is no failure of the task; neither is a result that nobody can judge. The
same failure at several owners is the task's own fault, and then it is not tried again. A late result is accepted as
long as no other attempt has delivered.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol
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
    tries_max: int = 20
    owners_failing: int = 2
    """The same failure at so many owners is the task's fault."""


@dataclass(frozen=True, slots=True)
class Crash:
    """A failure of a task: the owner of its node, and the reason given."""

    owner_id: UUID
    reason: str


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

_SAID_AGAIN = frozenset({Happening.ACCEPTED, Happening.STARTED})

_BLAMES = {
    Happening.CRASHED: Blame.CRASHED,
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
    task: TaskLife, attempt: AttemptFacts, happening: Happening, patience: RetryLimits, *, wanted: bool = True
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
    return _tried(task, attempt, happening, state, patience, wanted=wanted)


def steps(
    task: TaskLife,
    attempt: AttemptFacts,
    happenings: Sequence[Happening],
    patience: RetryLimits,
    *,
    wanted: bool = True,
) -> TaskStep | None:
    """The same for happenings known together, as a result and its verdict; None if the first changes nothing.

    A node may report its progress twice, or before it accepts; what changes nothing is passed over.
    """
    result: TaskStep | None = None
    for happening in happenings:
        life, state = (result.task, result.attempt) if result else (task, attempt.state)
        if happening in _SAID_AGAIN and after(state, happening) is None:
            continue
        more = step(life, Attempt(attempt.id, state), happening, patience, wanted=wanted)
        if more is None:
            assert result is None, "what is known together happens in order"
            return None
        result = replace(more, called_off=result.called_off) if result else more
    return result


def is_own_fault(crash: Crash, earlier: Iterable[Crash], patience: RetryLimits) -> bool:
    """Whether a task has failed in one way for so many owners that no other needs to try it."""
    alike = {earlier_crash.owner_id for earlier_crash in earlier if earlier_crash.reason == crash.reason}
    return len({crash.owner_id, *alike}) >= patience.owners_failing


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
) -> TaskStep:
    """The attempt failed: the task waits for another, unless it is given up."""
    kept_silent = attempt.state is AttemptState.OFFERED and happening in (Happening.TIME_UP, Happening.DECLINED)
    blame = None if kept_silent else _BLAMES.get(happening)
    failed = blame is not None and blame is not Blame.BROKE_ITS_WORD
    waiting = TaskLife(TaskState.PENDING, task.failures + failed, task.tries)
    if waiting.failures >= patience.failures_max or waiting.tries >= patience.tries_max:
        return TaskStep(_in_state(waiting, TaskState.FAILED), state, blame)
    if not wanted:
        return TaskStep(_in_state(waiting, TaskState.CANCELLED), state, blame)
    return TaskStep(waiting, state, blame)
