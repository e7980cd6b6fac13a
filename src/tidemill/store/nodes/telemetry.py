"""Beats of nodes: appended in batches, read as a curve, dropped by the day."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.health.telemetry import Beat, DeviceBeat
from tidemill.store.arrays import bigint_array, text_array, uuid_array
from tidemill.store.query import Connection, Query

_KEEP = Query("nodes/telemetry/keep")
_RECENT = Query("nodes/telemetry/recent")
_FORGET = Query("nodes/telemetry/forget")


@dataclass(frozen=True, slots=True)
class NodeBeat:
    """One beat of one node, and its time."""

    node_id: UUID
    at: Instant
    beat: Beat


async def keep(transaction: Connection, beats: Sequence[NodeBeat], ids: Ids, now: Instant) -> None:
    """Append beats. A row's id is made now, even for a beat that arrives late."""
    if beats:
        await _KEEP.run(transaction, **columns(beats, ids, now))


async def recent(connection: Connection, node_id: UUID, before: Instant | None, limit: int) -> Sequence[NodeBeat]:
    """A node's last beats, or the last before an instant, newest first."""
    rows = await _RECENT.rows(connection, node_id=node_id, before=before, limit=limit)
    return [beat_of(row) for row in rows]


async def forget(connection: Connection, before: Instant) -> Sequence[str]:
    """Drop the days that ended before an instant. Returns their names."""
    return [row["name"] for row in await _FORGET.rows(connection, before=before)]


def columns(beats: Sequence[NodeBeat], ids: Ids, now: Instant) -> dict[str, str]:
    """Beats as the columns that queries take, one array each, under new ids."""
    return {
        "ids": uuid_array([ids.new(now) for _ in beats]),
        "beat_node_ids": uuid_array([node_beat.node_id for node_beat in beats]),
        "ats": bigint_array([node_beat.at for node_beat in beats]),
        "cpus": bigint_array([node_beat.beat.cpu_pct for node_beat in beats]),
        "memories": bigint_array([node_beat.beat.memory_used_mib for node_beat in beats]),
        "disks": bigint_array([node_beat.beat.disk_free_mib for node_beat in beats]),
        "round_trips": _array([node_beat.beat.round_trip_ms for node_beat in beats]),
        "utilisations": text_array(
            [_array([d.utilisation_pct for d in node_beat.beat.devices]) for node_beat in beats]
        ),
        "uses": text_array([_array([d.memory_used_mib for d in node_beat.beat.devices]) for node_beat in beats]),
        "temperatures": text_array([_array([d.temperature_c for d in node_beat.beat.devices]) for node_beat in beats]),
        "powers": text_array([_array([d.power_w for d in node_beat.beat.devices]) for node_beat in beats]),
    }


def beat_of(row: asyncpg.Record) -> NodeBeat:
    devices = zip(row["utilisation_pct"], row["device_used_mib"], row["temperature_c"], row["power_w"], strict=True)
    beat = Beat(
        row["cpu_pct"],
        row["memory_used_mib"],
        row["disk_free_mib"],
        row["round_trip_ms"],
        tuple(DeviceBeat(*device) for device in devices),
    )
    return NodeBeat(row["node_id"], row["at"], beat)


def _array(values: Sequence[int | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
