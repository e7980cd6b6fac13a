"""Beats of nodes: appended in batches, read as a curve, dropped by the day."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.health.telemetry import Beat, DeviceBeat
from tidemill.store.query import Connection, Query


@dataclass(frozen=True, slots=True)
class NodeBeat:
    """One beat of one node, and its time."""

    node_id: UUID
    at: Instant
    beat: Beat


@dataclass(frozen=True, slots=True)
class BeatColumns:
    """The columns of a beat, with one value per device in each of the last four."""

    cpu_pct: int
    memory_used_mib: int
    disk_free_mib: int
    round_trip_ms: int | None
    utilisation_pct: list[int]
    device_used_mib: list[int]
    temperature_c: list[int | None]
    power_w: list[int | None]

    @property
    def beat(self) -> Beat:
        devices = zip(self.utilisation_pct, self.device_used_mib, self.temperature_c, self.power_w, strict=True)
        machine = (self.cpu_pct, self.memory_used_mib, self.disk_free_mib, self.round_trip_ms)
        return Beat(*machine, tuple(DeviceBeat(*device) for device in devices))


@dataclass(frozen=True, slots=True)
class _RecentRow(BeatColumns):
    at: Instant


_KEEP = Query("nodes/telemetry/keep")
_RECENT = Query("nodes/telemetry/recent", _RecentRow)
_FORGET = Query("nodes/telemetry/forget", str)


async def keep(transaction: Connection, beats: Sequence[NodeBeat], ids: Ids, now: Instant) -> None:
    """Append beats. A row's id is made now, even for a beat that arrives late."""
    if beats:
        await _KEEP.run(transaction, **columns(beats, ids, now))


async def recent(connection: Connection, node_id: UUID, before: Instant | None, limit: int) -> Sequence[NodeBeat]:
    """A node's last beats, or the last before an instant, newest first."""
    rows = await _RECENT.rows(connection, node_id=node_id, before=before, limit=limit)
    return [NodeBeat(node_id, row.at, row.beat) for row in rows]


async def forget(connection: Connection, before: Instant) -> Sequence[str]:
    """Drop the days that ended before an instant. Returns their names."""
    return await _FORGET.rows(connection, before=before)


def columns(beats: Sequence[NodeBeat], ids: Ids, now: Instant) -> dict[str, Any]:
    """Beats as the columns that queries take, under new ids. A column with gaps, or of lists, holds literals."""
    return {
        "ids": [ids.new(now) for _ in beats],
        "beat_node_ids": [node_beat.node_id for node_beat in beats],
        "ats": [node_beat.at for node_beat in beats],
        "cpus": [node_beat.beat.cpu_pct for node_beat in beats],
        "memories": [node_beat.beat.memory_used_mib for node_beat in beats],
        "disks": [node_beat.beat.disk_free_mib for node_beat in beats],
        "round_trips": _array([node_beat.beat.round_trip_ms for node_beat in beats]),
        "utilisations": [_array([d.utilisation_pct for d in node_beat.beat.devices]) for node_beat in beats],
        "uses": [_array([d.memory_used_mib for d in node_beat.beat.devices]) for node_beat in beats],
        "temperatures": [_array([d.temperature_c for d in node_beat.beat.devices]) for node_beat in beats],
        "powers": [_array([d.power_w for d in node_beat.beat.devices]) for node_beat in beats],
    }


def _array(values: Sequence[int | None]) -> str:
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"
