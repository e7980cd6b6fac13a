"""Tasks in the database: made with their job, waiting in the queue, placed on nodes.

A task that has not ended is in the queue or has a lease, never both. Whoever deletes its row from the queue places it.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.plans.job_changes import NewTask
from tidemill.core.trust.checks.choice import THE_POOL
from tidemill.store.query import Connection, Query

_KEY_BYTES = 20


class QueueRow(NamedTuple):
    """A task in the queue. Of two, the one with the lower rank and the older id comes first."""

    rank: int
    task_id: UUID
    job_id: UUID
    account_id: UUID
    failures: int
    tries: int
    since: Instant
    body: bytes
    cost_max_uc: int

    @property
    def is_audit(self) -> bool:
        return self.account_id == THE_POOL

    @property
    def key(self) -> bytes:
        """Identifies the row in the front of the queue. The key changes with each try."""
        return self.rank.to_bytes(2, "big") + self.tries.to_bytes(2, "big") + self.task_id.bytes


class NewLease(NamedTuple):
    """A task for a node: the provider's price, the time quoted at the node's speed, and the deadline."""

    rank: int
    task_id: UUID
    attempt_id: UUID
    node_id: UUID
    owner_id: UUID
    hourly_uc: int
    quoted_ms: int
    deadline_at: Instant


class _PlacedAttempt(NamedTuple):
    attempt_id: UUID
    number: int


_FRONT = Query("jobs/task/front", bytes)
_MAKE = Query("jobs/task/make")
_WAITING = Query("jobs/task/waiting", QueueRow, by_key=True)
_PLACE = Query("jobs/task/place", _PlacedAttempt, by_key=True)


async def make(
    transaction: Connection, job_id: UUID, account_id: UUID, tasks: Sequence[NewTask], *, rank: int, now: Instant
) -> None:
    """Make the tasks of a job and put them into the queue, in the transaction that confirms it."""
    await _MAKE.run(
        transaction,
        job_id=job_id,
        account_id=account_id,
        rank=rank,
        now=now,
        ids=[task.id for task in tasks],
        bodies=[task.body for task in tasks],
        expected=[task.expected for task in tasks],
        costs_max_uc=[task.cost_max_uc for task in tasks],
    )


async def front(connection: Connection, limit: int) -> list[bytes]:
    """The keys of tasks that wait for a node, the most urgent first."""
    packed = await _FRONT.only(connection, limit=limit)
    return [packed[at : at + _KEY_BYTES] for at in range(0, len(packed), _KEY_BYTES)]


async def waiting(transaction: Connection, keys: Sequence[bytes]) -> list[QueueRow]:
    """The tasks of these keys that still wait, in no order."""
    return await _WAITING.rows(
        transaction,
        ranks=[int.from_bytes(key[:2], "big") for key in keys],
        task_ids=[UUID(bytes=key[4:]) for key in keys],
    )


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
        hourly_uc=[lease.hourly_uc for lease in leases],
        quoted_ms=[lease.quoted_ms for lease in leases],
        deadlines_us=[lease.deadline_at for lease in leases],
    )
    return {attempt.attempt_id: attempt.number for attempt in placed}
