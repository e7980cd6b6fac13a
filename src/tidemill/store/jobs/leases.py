"""Leases as the rest of the pool sees them: locked for a decision, told to nodes, lost or late."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.plans.happenings import (
    AttemptHappening,
    EarlierFailure,
    EarlierFailures,
    Lease,
    Leases,
)
from tidemill.core.jobs.plans.work_plan import CallOff
from tidemill.core.trust.checks.judgement import THE_POOL, UNEXPECTED
from tidemill.store.query import Connection, Query


class AttemptNumber(NamedTuple):
    """An attempt that is assigned to a node. Numbers follow the order of placing."""

    number: int
    attempt_id: UUID
    node_id: UUID


class AttemptAssignment(NamedTuple):
    """What a node is told to work on."""

    number: int
    attempt_id: UUID
    task_id: UUID
    node_id: UUID
    lease: int
    deadline_at: Instant
    body: bytes


class ReservedAttempt(NamedTuple):
    """An undelivered attempt: its node, what it demands, its account, and of an audit the audited customer."""

    attempt_id: UUID
    node_id: UUID
    demand_id: UUID
    account_id: UUID
    audited_id: UUID | None


class _HeldAttempt(NamedTuple):
    attempt_id: UUID
    node_id: UUID
    tries: int


_LOCK = Query("jobs/lease/lock", Lease, by_key=True)
_UNWANTED = Query("jobs/lease/unwanted", Lease)
_OVERDUE = Query("jobs/lease/overdue", _HeldAttempt)
_LOST = Query("jobs/lease/lost", _HeldAttempt)
_BEHIND = Query("jobs/lease/behind", AttemptNumber)
_OF_NODES = Query("jobs/lease/of_nodes", AttemptNumber, by_key=True)
_ASSIGNMENTS = Query("jobs/lease/assignments", AttemptAssignment, by_key=True)
_AT_WORK = Query("jobs/lease/at_work", bytes)
_RESERVED = Query("jobs/lease/reserved", ReservedAttempt, by_key=True)
_CALLED_OFF = Query("jobs/lease/called_off", CallOff)
_FORGET = Query("jobs/lease/forget")

_FAILURES = Query("jobs/task/failures", EarlierFailure)

LATE = "The deadline passed before the node delivered."
LOST = "The node is offline."


async def lock(transaction: Connection, attempts: Iterable[tuple[UUID, UUID]]) -> Leases:
    """Lock the leases of attempts until the transaction ends. A lease that the named node does not hold is left out."""
    pairs = list(attempts)
    locked = await _LOCK.rows(
        transaction,
        attempt_ids=[attempt_id for attempt_id, _ in pairs],
        node_ids=[node_id for _, node_id in pairs],
    )
    return {lease.attempt_id: lease for lease in locked}


def tried_before(locked: Iterable[Lease]) -> set[UUID]:
    """The customers' tasks among these that had an earlier attempt."""
    return {lease.task_id for lease in locked if lease.tries > 1 and lease.hold_id is not None}


async def earlier_failures(transaction: Connection, task_ids: Iterable[UUID]) -> EarlierFailures:
    """What failed before at tasks that were locked."""
    again = sorted(task_ids)
    failures: dict[UUID, list[EarlierFailure]] = defaultdict(list)
    for failure in await _FAILURES.rows(transaction, task_ids=again, unexpected=UNEXPECTED) if again else ():
        failures[failure.task_id].append(failure)
    return failures


async def lock_unwanted(transaction: Connection, limit: int) -> Leases:
    """Lock undelivered leases of closed jobs until the transaction ends."""
    return {lease.attempt_id: lease for lease in await _UNWANTED.rows(transaction, limit=limit)}


async def lost_attempts(connection: Connection, limit: int) -> list[AttemptHappening]:
    """Attempts whose nodes are lost or late, as happenings to be applied."""
    late = [_happening(held, Happening.TIME_UP, LATE) for held in await _OVERDUE.rows(connection, limit=limit)]
    lost = [_happening(held, Happening.NODE_LOST, LOST) for held in await _LOST.rows(connection, limit=limit)]
    return list({happening.attempt_id: happening for happening in (*late, *lost)}.values())


async def placed_behind(connection: Connection, after: int, limit: int) -> list[AttemptNumber]:
    """Attempts that were placed after a number, in order."""
    return await _BEHIND.rows(connection, after=after, limit=limit)


async def of_nodes(transaction: Connection, node_ids: Sequence[UUID]) -> list[AttemptNumber]:
    """All attempts that these nodes have and have not delivered."""
    return await _OF_NODES.rows(transaction, node_ids=node_ids)


async def assignments(transaction: Connection, attempt_ids: Sequence[UUID]) -> list[AttemptAssignment]:
    """The assignments of these attempts that are still valid, in the order of placing."""
    return await _ASSIGNMENTS.rows(transaction, attempt_ids=attempt_ids)


async def at_work(connection: Connection) -> set[bytes]:
    """The attempts that reserve something of a node, by the bytes of their ids."""
    packed = await _AT_WORK.only(connection)
    return {packed[at : at + 16] for at in range(0, len(packed), 16)}


async def reserved(transaction: Connection, attempt_ids: Sequence[bytes]) -> list[ReservedAttempt]:
    """The undelivered ones of these attempts, which are named by the bytes of their ids."""
    return await _RESERVED.rows(
        transaction, attempt_ids=[UUID(bytes=attempt_id) for attempt_id in attempt_ids], the_pool=THE_POOL
    )


async def take_call_offs(connection: Connection, process_id: UUID) -> list[CallOff]:
    """The attempts that the nodes of a process have to stop; each is returned once."""
    return await _CALLED_OFF.rows(connection, process_id=process_id)


async def forget(connection: Connection, until: Instant) -> None:
    """Delete call-offs for nodes that never came back."""
    await _FORGET.run(connection, until=until)


def _happening(held: _HeldAttempt, happening: Happening, reason: str) -> AttemptHappening:
    return AttemptHappening(held.attempt_id, held.tries, held.node_id, (happening,), reason)
