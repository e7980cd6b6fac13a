"""Leases as the rest of the pool sees them: what nodes have to be told, and which attempts are lost or late."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.jobs.attempt import Happening
from tidemill.store.arrays import bigint_array, uuid_array
from tidemill.store.jobs.outcomes import AttemptHappening
from tidemill.store.query import Connection, Query

_OVERDUE = Query("jobs/lease/overdue")
_LOST = Query("jobs/lease/lost")
_BEHIND = Query("jobs/lease/behind")
_OF_NODES = Query("jobs/lease/of_nodes", by_key=True)
_ASSIGNMENTS = Query("jobs/lease/assignments", by_key=True)
_AT_WORK = Query("jobs/lease/at_work")
_RESERVED = Query("jobs/lease/reserved", by_key=True)
_CALL_OFF = Query("jobs/lease/call_off")
_CALLED_OFF = Query("jobs/lease/called_off")
_FORGET = Query("jobs/lease/forget")

LATE = "The deadline passed before the node delivered."
LOST = "The node is offline."


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


@dataclass(frozen=True, slots=True)
class CallOff:
    """An attempt that its node has to stop."""

    attempt_id: UUID
    node_id: UUID
    lease: int
    reason: str


async def lost_attempts(connection: Connection, limit: int) -> list[AttemptHappening]:
    """Attempts whose nodes are lost or late, as happenings to be applied."""
    lost = [_happening(row, Happening.NODE_LOST, LOST) for row in await _LOST.rows(connection, limit=limit)]
    known = {happening.attempt_id for happening in lost}
    late = [_happening(row, Happening.TIME_UP, LATE) for row in await _OVERDUE.rows(connection, limit=limit)]
    return [*lost, *(happening for happening in late if happening.attempt_id not in known)]


async def placed_behind(connection: Connection, after: int, limit: int) -> list[AttemptNumber]:
    """Attempts that were placed after a number, in order."""
    return [AttemptNumber(*row) for row in await _BEHIND.rows(connection, after=after, limit=limit)]


async def of_nodes(transaction: Connection, node_ids: Sequence[UUID]) -> list[AttemptNumber]:
    """All attempts that these nodes have and have not delivered."""
    return [AttemptNumber(*row) for row in await _OF_NODES.rows(transaction, node_ids=uuid_array(node_ids))]


async def assignments(transaction: Connection, attempt_ids: Sequence[UUID]) -> list[AttemptAssignment]:
    """The assignments of these attempts that are still valid, in the order of placing."""
    return [
        AttemptAssignment(*row) for row in await _ASSIGNMENTS.rows(transaction, attempt_ids=uuid_array(attempt_ids))
    ]


async def at_work(connection: Connection) -> set[bytes]:
    """The attempts that reserve something of a node, by the bytes of their ids."""
    row = await _AT_WORK.row(connection)
    assert row, "an aggregate has a row"
    packed: bytes = row["attempt_ids"]
    return {packed[at : at + 16] for at in range(0, len(packed), 16)}


async def reserved(transaction: Connection, attempt_ids: Sequence[bytes]) -> list[tuple[UUID, UUID, bytes, UUID]]:
    """For each undelivered attempt: its id, its node, its work and its account."""
    rows = await _RESERVED.rows(
        transaction, attempt_ids="{" + ",".join([attempt_id.hex() for attempt_id in attempt_ids]) + "}"
    )
    return [(row["attempt_id"], row["node_id"], row["body"], row["account_id"]) for row in rows]


async def call_off(connection: Connection, attempts: Sequence[AttemptHappening], reason: str, now: Instant) -> None:
    """Tell nodes to stop these attempts."""
    if attempts:
        await _CALL_OFF.run(
            connection,
            attempt_ids=uuid_array([attempt.attempt_id for attempt in attempts]),
            node_ids=uuid_array([attempt.node_id for attempt in attempts]),
            leases=bigint_array([attempt.lease for attempt in attempts]),
            reason=reason,
            now=now,
        )


async def take_call_offs(connection: Connection, process_id: UUID) -> list[CallOff]:
    """The attempts that the nodes of a process have to stop; each is returned once."""
    return [CallOff(**row) for row in await _CALLED_OFF.rows(connection, process_id=process_id)]


async def forget(connection: Connection, until: Instant) -> None:
    """Delete call-offs for nodes that never came back."""
    await _FORGET.run(connection, until=until)


def _happening(row: asyncpg.Record, happening: Happening, reason: str) -> AttemptHappening:
    return AttemptHappening(row["attempt_id"], row["tries"], row["node_id"], (happening,), reason)
