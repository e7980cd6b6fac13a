"""Nodes as people see them: their state, why they get no work, and their history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import Cursor, EventReader, RecordedEvent
from tidemill.core.nodes.no_work import NodeSituation
from tidemill.core.nodes.node import KnownDevice, Node
from tidemill.core.nodes.node_situation import NodeCircumstances, situation_of
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.store.nodes.telemetry import BeatColumns
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class _ReadingsRow(BeatColumns):
    """A node's last beat, all null before the first, and the rest of its circumstances."""

    node_id: UUID
    beat_at: Instant | None
    hot: bool
    challenge_passed: bool
    challenge_refused: str
    owner_blocked: bool


_READINGS = Query("nodes/node_view/readings", _ReadingsRow)
_HISTORY = Query("nodes/node_view/history", RecordedEvent)


async def readings(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, NodeCircumstances]:
    """The last known readings of these nodes."""
    return {
        row.node_id: NodeCircumstances(
            None if row.beat_at is None else row.beat,
            row.beat_at,
            row.hot,
            row.challenge_passed,
            row.challenge_refused,
            row.owner_blocked,
        )
        for row in await _READINGS.rows(connection, node_ids=list(node_ids))
    }


async def views(
    connection: Connection,
    nodes: Sequence[Node],
    devices: Mapping[UUID, Sequence[KnownDevice]],
    heat: HeatLimits,
    agent_oldest: str,
) -> Mapping[UUID, NodeSituation]:
    """What `core.nodes.no_work` needs of these nodes, whose devices the caller has read."""
    readings_by_node = await readings(connection, [node.id for node in nodes])
    return {
        node.id: situation_of(node, devices[node.id], readings_by_node[node.id], heat, agent_oldest) for node in nodes
    }


async def history(
    connection: Connection, node_id: UUID, reader: EventReader, before: Cursor | None, limit: int
) -> Sequence[RecordedEvent]:
    """The events of a node that a reader may see, newest first; page on with the cursor of the last."""
    return await _HISTORY.rows(
        connection,
        subject=f"node:{node_id}",
        generation=before.generation if before else None,
        transaction=before.transaction if before else None,
        number=before.number if before else None,
        everything=reader.operator,
        account_id=reader.account_id,
        limit=limit,
    )
