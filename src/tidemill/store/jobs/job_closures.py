"""Jobs that want no more of their tasks: called off, out of time, out of budget.

Closing a job is one change of its row. A sweep then ends what is left open, at once and repeatedly: a task that was
being placed or put back meanwhile is found by the next sweep. Delivered results are judged, and paid if right.
"""

from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs import job as lives
from tidemill.core.jobs import task as tasks
from tidemill.core.jobs.attempt import AttemptState, Happening, after
from tidemill.core.jobs.job import JobHappening
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.jobs.task import TaskEffect, TaskState, TaskStep
from tidemill.core.settlement.rewards import RewardPlan
from tidemill.store.jobs import jobs, leases, outcomes
from tidemill.store.jobs.outcomes import AttemptHappening, BatchOutcome, LeaseChange
from tidemill.store.jobs.task_ends import TaskEnd
from tidemill.store.query import Connection, Query

_CLOSE = Query("jobs/job/close")
_LEASES = Query("jobs/lease/unwanted")
_TASKS = Query("jobs/task/unwanted")

_WANTED_NO_MORE = "The job wants no more of its tasks."


async def close(transaction: Connection, job_id: UUID, why: JobHappening) -> JobRefusal | None:
    """Close a confirmed job: it starts nothing more. The caller sweeps afterwards."""
    row = await jobs.locked(transaction, job_id)
    if row is None:
        return JobRefusal.UNKNOWN_JOB
    step = lives.step(jobs.life_of(row), why)
    if step is None or step.job.closing is None:
        return JobRefusal.JOB_OVER
    await _CLOSE.run(transaction, id=job_id, closing=step.job.closing.value)
    return None


async def sweep(transaction: Connection, limit: int, plan: RewardPlan, ids: Ids, now: Instant) -> BatchOutcome:
    """End what closing jobs have left open, and have their nodes told to stop."""
    changes = [_called_off(row) for row in await _LEASES.rows(transaction, limit=limit)]
    waiting = await _TASKS.rows(transaction, limit=limit)
    await transaction.find_by_key()
    ends = [TaskEnd(row["task_id"], row["job_id"], TaskState.CANCELLED) for row in waiting]
    ends += [TaskEnd(change.lease["task_id"], change.lease["job_id"], change.step.task.state) for change in changes]
    await leases.call_off(transaction, [change.happening for change in changes], _WANTED_NO_MORE, now)
    return await outcomes.write(transaction, changes, ends, plan, ids, now)


def _called_off(row: asyncpg.Record) -> LeaseChange:
    cancelled = tasks.cancel(outcomes.life_of(row))
    state = after(AttemptState(row["state"]), Happening.CALLED_OFF)
    assert cancelled, "what has not delivered can be cancelled"
    assert state, "and is at work"
    happening = AttemptHappening(
        row["attempt_id"], row["tries"], row["node_id"], (Happening.CALLED_OFF,), _WANTED_NO_MORE
    )
    return LeaseChange(happening, row, TaskStep(cancelled[0], state, (TaskEffect.GIVE_BACK,)))
