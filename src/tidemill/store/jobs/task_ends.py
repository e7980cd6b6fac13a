"""Ends tasks: their inputs are released, and their jobs count them. A job ends with its last task, in one transaction.

A task ends once: ending it again is a bug, and changes nothing. A task without a job is an audit, which ends with its
task.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.jobs.job import EndCounts, JobEffect, JobState, after_count
from tidemill.core.jobs.task import TaskState
from tidemill.store.arrays import bigint_array, text_array, uuid_array
from tidemill.store.artefacts import artefacts
from tidemill.store.jobs.jobs import life_of
from tidemill.store.query import Connection, Query

_END_TASKS = Query("jobs/task/end")
_COUNT = Query("jobs/job/count")
_END_JOBS = Query("jobs/job/end")
_END_AUDITS = Query("jobs/audit/end")


class TaskEnd(NamedTuple):
    """How a task ended, by which attempt (if any), and what its customer pays for it."""

    task_id: UUID
    job_id: UUID
    state: TaskState
    attempt_id: UUID | None = None
    cost_uc: int = 0


@dataclass(frozen=True, slots=True)
class JobEnd:
    """A job whose last task has ended: its state, account, hold, counts and cost."""

    state: JobState
    account_id: UUID
    hold_id: UUID
    ends: EndCounts
    spent_uc: int


async def write(transaction: Connection, ends: Sequence[TaskEnd], now: Instant) -> dict[UUID, JobEnd]:
    """End tasks and count them. Returns the jobs whose last task has ended, which stay locked."""
    if not ends:
        return {}
    await _end_tasks(transaction, ends, now)
    await artefacts.release(transaction, [end.task_id for end in ends])
    rows = await _counted(transaction, ends)
    if audits := {end.job_id for end in ends}.difference(row["id"] for row in rows):
        await _END_AUDITS.run(transaction, ids=sorted(audits), now=now)
    steps = [(row, after_count(life_of(row))) for row in rows]
    ended = {
        row["id"]: JobEnd(step.job.state, row["account_id"], row["hold_id"], step.job.ends, row["spent_uc"])
        for row, step in steps
        if JobEffect.RELEASE in step.effects
    }
    if ended:
        states = text_array([job.state.value for job in ended.values()])
        await _END_JOBS.run(transaction, ids=uuid_array(list(ended)), states=states, now=now)
    return ended


async def _end_tasks(transaction: Connection, ends: Sequence[TaskEnd], now: Instant) -> None:
    rows = await _END_TASKS.rows(
        transaction,
        now=now,
        ids=uuid_array([end.task_id for end in ends]),
        ends=text_array([end.state.value for end in ends]),
        attempt_ids=uuid_array([end.attempt_id for end in ends]),
    )
    wanted = Counter((end.job_id, end.state.value) for end in ends)
    assert wanted == {(row["job_id"], row["ended"]): row["tasks"] for row in rows}, "a task ends once, and is paid once"


async def _counted(transaction: Connection, ends: Sequence[TaskEnd]) -> list[asyncpg.Record]:
    """The jobs of these tasks, with their ends counted."""
    counts: dict[UUID, Counter[TaskState]] = defaultdict(Counter)
    spent_uc: Counter[UUID] = Counter()
    for end in ends:
        counts[end.job_id][end.state] += 1
        spent_uc[end.job_id] += end.cost_uc
    states = (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELLED)
    return await _COUNT.rows(
        transaction,
        ids=uuid_array(list(counts)),
        **{state.value: bigint_array([count[state] for count in counts.values()]) for state in states},
        spent_uc=bigint_array([spent_uc[job_id] for job_id in counts]),
    )
