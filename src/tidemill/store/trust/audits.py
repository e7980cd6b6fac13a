"""Results that a house node executes again: begun, given up when no house node takes them, and closed with a verdict.

An audit is a task like any other, from the queue to its receipt; it belongs to the pool. It ends as tasks end, and
whoever judges the audited result then finds its outcome.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.plans.happenings import UnwantedTask, WorkTerms
from tidemill.core.jobs.plans.work_plan import follow
from tidemill.core.jobs.task import RetryLimits
from tidemill.core.trust.checks.judgement import THE_POOL
from tidemill.store.artefacts import artefacts
from tidemill.store.database import Database
from tidemill.store.jobs import work_plans
from tidemill.store.jobs.deliveries import RANKS
from tidemill.store.query import Connection, Query


class _WaitingAudit(NamedTuple):
    task_id: UUID
    id: UUID


_BEGIN = Query("trust/audit/begin", UUID)
_REPEAT = Query("trust/audit/repeat", UUID)
_GIVE_UP = Query("trust/audit/give_up", _WaitingAudit, by_key=True)

FAILURES_MAX = 2
"""A task that fails twice on house nodes is not tried a third time: then nobody can tell."""

ANY_PRICE_UC = 2**62
"""Nobody pays for an audit, so no house node is too expensive for it."""


@dataclass(frozen=True, slots=True)
class AuditedAttempt:
    """The attempt whose task is executed again, its lease, and the hash of its result."""

    attempt_id: UUID
    lease: int
    claimed: bytes


@dataclass(frozen=True, slots=True)
class HouseResult:
    """The attempt in which a house node executed an audit, and the hash of what it came to."""

    attempt_id: UUID
    sha256: bytes


async def begin(
    transaction: Connection, audited: AuditedAttempt, patience: RetryLimits, ids: Ids, now: Instant
) -> bool:
    """Begin an audit of a result. False if it has begun before, or the result is judged."""
    row = await _BEGIN.row(transaction, claimed=audited.claimed, **_copy_of(audited, patience, ids, now))
    return row is not None


async def repeat(
    transaction: Connection, audited: AuditedAttempt, first: HouseResult, patience: RetryLimits, ids: Ids, now: Instant
) -> bool:
    """Have the house execute the task once more, after it came to this result. False if it has done so before.

    Of the first result its hash is kept, and nothing that was uploaded.
    """
    row = await _REPEAT.row(transaction, found=first.sha256, **_copy_of(audited, patience, ids, now))
    if row is not None:
        await artefacts.let_go_of_result(transaction, first.attempt_id, now)
    return row is not None


async def give_up(database: Database, before: Instant, limit: int, terms: WorkTerms, ids: Ids, now: Instant) -> int:
    """End audits that have waited since before an instant, and that no node has. Returns how many."""
    async with database.transaction() as transaction:
        waiting = await _GIVE_UP.rows(transaction, ranks=list(RANKS), before=before, limit=limit)
        unwanted = [UnwantedTask(audit.task_id, audit.id, is_audit=True) for audit in waiting]
        await work_plans.write(transaction, follow((), {}, terms, ids, now, unwanted=unwanted), terms, ids, now)
    return len(unwanted)


def _copy_of(audited: AuditedAttempt, patience: RetryLimits, ids: Ids, now: Instant) -> dict[str, Any]:
    """A copy of an audited attempt's task, which the pool orders from its house nodes at any price."""
    return {
        "attempt_id": audited.attempt_id,
        "lease": audited.lease,
        "task_id": ids.new(now),
        "cost_max_uc": ANY_PRICE_UC,
        "the_pool": THE_POOL,
        "failures": max(0, patience.failures_max - FAILURES_MAX),
        "now": now,
    }
