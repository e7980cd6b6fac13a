"""Applies placement decisions: leases, the job's start, grants for artefacts, one event a job.

Only the placer in charge applies anything: it proves in the same transaction that it still is, and whoever takes over
waits for that transaction to end. Lock order: the duty, then tasks in the queue, then jobs.
"""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from tidemill.core.artefacts.grants import Access, Grant
from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.events import TasksPlaced
from tidemill.core.placement.plan import PlannedAttempt
from tidemill.store.artefacts import artefact_grants
from tidemill.store.events import events
from tidemill.store.jobs import tasks
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.jobs.tasks import NewLease
from tidemill.store.operations import duties
from tidemill.store.operations.duties import DutyLease
from tidemill.store.query import Connection, Query

_START = Query("placement/job/start")

GRANTED_US = 3_600 * SECOND
"""A late result may still be wanted, so it may be uploaded for this long after the deadline."""


async def apply(
    transaction: Connection,
    duty: DutyLease,
    decisions: Sequence[PlannedAttempt],
    *,
    lease_us: int,
    ids: Ids,
    now: Instant,
) -> list[AttemptAssignment] | None:
    """Give tasks to nodes. Returns the assignments ordered by number; None if somebody else is in charge."""
    if not await duties.keep(transaction, duty, lease_us=lease_us, now=now):
        return None
    numbers = await tasks.place(transaction, [_new_lease(attempt) for attempt in decisions], now)
    placed = [attempt for attempt in decisions if attempt.attempt_id in numbers]
    if placed:
        await _START.run(transaction, ids=sorted({attempt.placement.task.job_id for attempt in placed}))
        if grants := [grant for attempt in placed for grant in _grants(attempt)]:
            await artefact_grants.give(transaction, grants)
        await events.append(transaction, _events(placed), ids, now)
    return sorted(_assignment(attempt, numbers[attempt.attempt_id]) for attempt in placed)


def _new_lease(attempt: PlannedAttempt) -> NewLease:
    candidate = attempt.placement.seller.candidate
    return NewLease(
        attempt.placement.task.rank,
        attempt.placement.task.task_id,
        attempt.attempt_id,
        candidate.node_id,
        candidate.owner_id,
        attempt.placement.seller.house,
        attempt.placement.terms,
        attempt.deadline_at,
    )


def _assignment(attempt: PlannedAttempt, number: int) -> AttemptAssignment:
    waiting, node_id = attempt.placement.task, attempt.placement.seller.node_id
    return AttemptAssignment(
        number, attempt.attempt_id, waiting.task_id, node_id, waiting.tries + 1, attempt.deadline_at, waiting.body
    )


def _grants(attempt: PlannedAttempt) -> list[Grant]:
    """A node reads the inputs of its attempt, and uploads a result that is too large for a receipt.

    What a house node uploads for an audit takes none of the customer's room: it belongs to the house until the verdict.
    """
    demand, until = attempt.placement.demand, Instant(attempt.deadline_at + GRANTED_US)
    candidate = attempt.placement.seller.candidate
    account_id = candidate.owner_id if attempt.placement.task.is_audit else attempt.placement.task.account_id
    whose = (attempt.attempt_id, candidate.node_id, account_id)
    inputs = {input_.digest: input_.size_bytes for input_ in demand.inputs}
    reads = [Grant(*whose, Access.READ, size_bytes, until, digest) for digest, size_bytes in inputs.items()]
    if not demand.result_max_bytes:
        return reads
    return [*reads, Grant(*whose, Access.WRITE, demand.result_max_bytes, until)]


def _events(placed: Sequence[PlannedAttempt]) -> list[TasksPlaced]:
    counts = Counter((attempt.placement.task.account_id, attempt.placement.task.job_id) for attempt in placed)
    nodes: dict[UUID, set[UUID]] = {}
    for attempt in placed:
        nodes.setdefault(attempt.placement.task.job_id, set()).add(attempt.placement.seller.node_id)
    return [TasksPlaced(*whose, count, len(nodes[whose[1]])) for whose, count in counts.items()]
