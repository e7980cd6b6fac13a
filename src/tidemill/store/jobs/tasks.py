"""Tasks in the database: made with their job, and placed on nodes.

A task that has not ended is in the queue or has a lease, never both. Whoever deletes its row from the queue places it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.plans.job_changes import NewTask
from tidemill.core.placement.task_demand import stored_form
from tidemill.core.settlement.pay import PayTerms
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query


class NewLease(NamedTuple):
    """A task for a node, on which terms, and until when."""

    rank: int
    task_id: UUID
    attempt_id: UUID
    node_id: UUID
    owner_id: UUID
    house: bool
    terms: PayTerms
    deadline_at: Instant


class _PlacedAttempt(NamedTuple):
    attempt_id: UUID
    number: int


_MAKE = Query("jobs/task/make")
_KEEP_DEMANDS = Query("jobs/demand/keep")
_FORGET_DEMANDS = Query("jobs/demand/forget", UUID)
_PLACE = Query("jobs/task/place", _PlacedAttempt, by_key=True)


async def make(
    transaction: Connection, job_id: UUID, account_id: UUID, tasks: Sequence[NewTask], *, rank: int, now: Instant
) -> None:
    """Make the tasks of a job and put them into the queue, in the transaction that confirms it."""
    demands = {task.demand.id: task.demand for task in tasks}
    bodies = [stored_form(demand) for demand in demands.values()]
    await _KEEP_DEMANDS.run(transaction, ids=list(demands), bodies=bodies, now=now)
    await _MAKE.run(
        transaction,
        job_id=job_id,
        account_id=account_id,
        rank=rank,
        now=now,
        ids=[task.id for task in tasks],
        bodies=[task.body for task in tasks],
        demand_ids=[task.demand.id for task in tasks],
        expected=[task.expected for task in tasks],
        costs_max_uc=[task.cost_max_uc for task in tasks],
    )


async def forget_demands(database: Database, before: Instant, limit: int) -> int:
    """Delete what no open task demands, and no job that was confirmed since then. Returns how many."""
    async with database.connection() as connection:
        return len(await _FORGET_DEMANDS.rows(connection, before=before, limit=limit))


async def place(transaction: Connection, leases: Sequence[NewLease], now: Instant) -> Mapping[UUID, int]:
    """Give tasks to nodes. Returns the new attempts and their numbers; for the others, somebody else was quicker, or
    the node is gone."""
    placed = await _PLACE.rows(
        transaction,
        now=now,
        ranks=[lease.rank for lease in leases],
        task_ids=[lease.task_id for lease in leases],
        attempt_ids=[lease.attempt_id for lease in leases],
        node_ids=[lease.node_id for lease in leases],
        owner_ids=[lease.owner_id for lease in leases],
        houses=[lease.house for lease in leases],
        hourly_uc=[lease.terms.hourly_uc for lease in leases],
        quoted_ms=[lease.terms.quoted_ms for lease in leases],
        work_ms=[lease.terms.work_ms for lease in leases],
        deadlines_us=[lease.deadline_at for lease in leases],
    )
    return {attempt.attempt_id: attempt.number for attempt in placed}
