"""The beats of a node, for curves."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from tidemill.control.context import CallerPart, ControlPart, PageLimit
from tidemill.control.http.exact_numbers import ExactRoute
from tidemill.control.http.problems import RouteRefused, documented
from tidemill.control.http.references import NodeId
from tidemill.control.http.views import API, Timestamp, View
from tidemill.core.clock import Instant
from tidemill.core.nodes.node import NodeRefusal
from tidemill.store.nodes import nodes, telemetry
from tidemill.store.nodes.telemetry import NodeBeat

router = APIRouter(prefix=f"{API}/nodes", tags=["nodes"], route_class=ExactRoute)

_LATEST_US = 253_402_300_799_000_000  # the last second of the year 9999

After = Annotated[
    int | None, Query(ge=0, le=_LATEST_US, description="What `after` was on the page before; older beats follow.")
]


class DeviceBeatView(View):
    utilisation_pct: int
    memory_used_mib: int
    temperature_c: int | None
    power_w: int | None


class BeatView(BaseModel):
    at: Timestamp
    cpu_pct: int
    memory_used_mib: int
    disk_free_mib: int
    round_trip_ms: int | None = Field(description="How long the link takes there and back.")
    devices: list[DeviceBeatView] = Field(description="In the order of the devices.")


class BeatPage(BaseModel):
    items: list[BeatView]
    has_more: bool
    after: int | None


@router.get("/{node_id}/telemetry", responses=documented(404, 422))
async def show(
    node_id: NodeId, control: ControlPart, caller: CallerPart, most: PageLimit, after: After = None
) -> BeatPage:
    """How a node was, newest first. Beats are kept for `telemetry.keep`."""
    owner = None if caller.is_operator else caller.account_id
    async with control.route_database.connection() as connection:
        if await nodes.get(connection, node_id, owner) is None:
            raise RouteRefused(NodeRefusal.UNKNOWN_NODE)
        beats = await telemetry.recent(connection, node_id, None if after is None else Instant(after), most + 1)
    page = beats[:most]
    return BeatPage(
        items=[_view(node_beat) for node_beat in page], has_more=len(beats) > most, after=page[-1].at if page else None
    )


def _view(node_beat: NodeBeat) -> BeatView:
    beat = node_beat.beat
    return BeatView(
        at=node_beat.at,  # type: ignore[arg-type]  # an instant is shown as a time
        cpu_pct=beat.cpu_pct,
        memory_used_mib=beat.memory_used_mib,
        disk_free_mib=beat.disk_free_mib,
        round_trip_ms=beat.round_trip_ms,
        devices=[DeviceBeatView.model_validate(device) for device in beat.devices],
    )
