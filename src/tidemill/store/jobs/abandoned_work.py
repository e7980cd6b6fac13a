"""Ends what nobody else ends: attempts whose node is lost or late, jobs whose time or budget is up, and what they
leave.

Closing a job is one change of its row. A sweep then ends what is left open, at once and repeatedly: a task that was
being placed or put back meanwhile is found by the next sweep. Delivered results are judged, and paid if right. Any
number of processes may do this at once: what one has ended, the next finds over.
"""

from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.job import JobHappening
from tidemill.core.jobs.plans.happenings import UnwantedTask, WorkTerms, call_offs
from tidemill.core.jobs.plans.work_plan import WorkPlan, follow
from tidemill.store.database import Database
from tidemill.store.jobs import jobs, leases, work_plans
from tidemill.store.query import Query


class _OverdueJob(NamedTuple):
    id: UUID
    now_late: bool


class _WaitingTask(NamedTuple):
    task_id: UUID
    job_id: UUID
    cost_max_uc: int
    kind: str
    tries: int


_OVERDUE = Query("jobs/job/overdue", _OverdueJob)
_UNWANTED = Query("jobs/task/unwanted", _WaitingTask)


async def give_up(database: Database, limit: int, terms: WorkTerms, ids: Ids, now: Instant) -> WorkPlan:
    """Give up attempts whose node is lost or late; their tasks wait for another node. A late node may still deliver
    first."""
    async with database.connection() as connection:
        happenings = await leases.lost_attempts(connection, limit)
    if not happenings:
        return WorkPlan()
    async with database.transaction() as transaction:
        return await work_plans.apply(transaction, happenings, terms, ids, now)


async def close_jobs(database: Database, limit: int, now: Instant) -> int:
    """Close jobs that are out of time or of budget. Returns how many."""
    async with database.connection() as connection:
        overdue = await _OVERDUE.rows(connection, now=now, limit=limit)
    closed = 0
    for job in overdue:
        why = JobHappening.TIME_UP if job.now_late else JobHappening.BUDGET_REACHED
        async with database.transaction() as transaction:
            closed += await jobs.close(transaction, job.id, why) is None
    return closed


async def sweep(database: Database, limit: int, terms: WorkTerms, ids: Ids, now: Instant) -> WorkPlan:
    """End what closing jobs have left open, and have their nodes told to stop."""
    async with database.transaction() as transaction:
        locked = await leases.lock_unwanted(transaction, limit)
        waiting = await _UNWANTED.rows(transaction, limit=limit)
        tried = leases.tried_before(locked.values()).union(task.task_id for task in waiting if task.tries)
        earlier = await leases.earlier_failures(transaction, tried)
        unwanted = [
            UnwantedTask(task.task_id, task.job_id, False, task.cost_max_uc, task.kind, earlier.get(task.task_id, ()))
            for task in waiting
        ]
        plan = follow(call_offs(locked.values(), earlier), locked, terms, ids, now, unwanted=unwanted)
        await work_plans.write(transaction, plan, terms, ids, now)
    return plan
