"""Ends what nobody else ends: attempts whose node is lost or late, jobs whose time or budget is up, and what they
leave.

Any number of processes may do this at once: what one has ended, the next finds over.
"""

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import AttemptState
from tidemill.core.jobs.job import JobHappening
from tidemill.store.artefacts import artefact_grants
from tidemill.store.database import Database
from tidemill.store.jobs import job_closures, leases, outcomes
from tidemill.store.jobs.outcomes import BatchOutcome, WorkTerms
from tidemill.store.query import Query

_OVERDUE = Query("jobs/job/overdue")


async def give_up(database: Database, limit: int, terms: WorkTerms, ids: Ids, now: Instant) -> BatchOutcome | None:
    """Give up attempts whose node is lost or late; their tasks wait for another node. A late node may still deliver
    first."""
    async with database.connection() as connection:
        happenings = await leases.lost_attempts(connection, limit)
    if not happenings:
        return None
    async with database.transaction() as transaction:
        return await outcomes.apply(transaction, happenings, terms, ids, now)


async def close_jobs(database: Database, limit: int, now: Instant) -> int:
    """Close jobs that are out of time or of budget. Returns how many."""
    async with database.connection() as connection:
        rows = await _OVERDUE.rows(connection, now=now, limit=limit)
    closed = 0
    for row in rows:
        why = JobHappening.TIME_UP if row["now_late"] else JobHappening.BUDGET_REACHED
        async with database.transaction() as transaction:
            closed += await job_closures.close(transaction, row["id"], why) is None
    return closed


async def sweep(database: Database, limit: int, terms: WorkTerms, ids: Ids, now: Instant) -> BatchOutcome:
    """End what closing jobs have left open, and take back their nodes' grants."""
    async with database.transaction() as transaction:
        applied = await job_closures.sweep(transaction, limit, terms.plan, ids, now)
        over = [attempt_id for attempt_id, state in applied.attempts.items() if state is AttemptState.CANCELLED]
        if over:
            await artefact_grants.take_back(transaction, over, now)
    return applied
