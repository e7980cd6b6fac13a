"""The views of nodes: what they are, their state, and why they get no work."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field

from tidemill.control.context import Control
from tidemill.control.http.problems import unless_refused
from tidemill.control.http.views import Timestamp, View
from tidemill.control.jobs import job_waits
from tidemill.core.nodes.life import Condition, NodeLife
from tidemill.core.nodes.no_work import NodeSituation, why_no_work
from tidemill.core.nodes.no_work_reasons import NoWorkReason
from tidemill.core.nodes.node import KnownDevice, Node
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.refusals import Refusal
from tidemill.store.nodes import node_alerts, node_views, nodes
from tidemill.store.nodes.node_alerts import OpenAlert
from tidemill.store.query import Connection
from tidemill.store.trust import owner_records


class DeviceView(View):
    index: int
    kind: str
    name: str
    uuid: str
    model: str | None = Field(description="The catalogue's name, where it knows the device.")
    memory_mib: int
    driver: str
    cuda: str | None
    power_limit_w: int | None
    ecc: bool | None
    failing: str | None = Field(description="The driver's words, if it gave the device up.")
    measured_mib: int | None = Field(
        description="Of its memory, what the last passed challenge asked for and was shown."
    )
    measured_ops_per_s: int | None = Field(description="Operations a second in that challenge, the way to it included.")
    nvlink_ppm: int | None = Field(description="What its links to other devices are worth; 1000000 is without any.")
    measured_at: Timestamp | None


class NodeSummaryView(View):
    id: UUID
    account_id: UUID
    owner: str | None = Field(description="The address of its owner's account; only owners and operators see a node.")
    name: str
    house: bool = Field(description="The pool's own machine.")
    life: NodeLife
    conditions: list[Condition]
    agent: str
    version_accepted: bool = Field(description="Whether the pool gives work to this version of the agent.")
    measured_cores: int | None = Field(
        description="Of its cores, all at work, how many the last passed challenge showed; no more count."
    )
    measured_mib: int | None = Field(
        description="Of the machine's memory, how much counts by the last passed challenge, which filled a share of it."
    )
    devices: list[DeviceView]
    joined_at: Timestamp
    heard_at: Timestamp | None
    linked_at: Timestamp | None = Field(description="Since when its link is open; null while it has none.")
    suspended_reason: str | None
    removed_at: Timestamp | None
    removed_reason: str | None


class NodePage(BaseModel):
    items: list[NodeSummaryView]
    has_more: bool
    after: UUID | None


class NoWorkView(BaseModel):
    code: str = Field(description="Stable: programs may match it.")
    sentence: str
    device: str | None = Field(description="The only device it speaks of; null where it is the whole node.")
    until: Timestamp | None = Field(description="When it ends, where that is known.")


class AlertView(BaseModel):
    kind: str
    device: int | None = Field(description="The index of the device it speaks of; null where it is the whole node.")
    sentence: str
    since: Timestamp


class OwnerRecordView(BaseModel):
    """What the attempts of all nodes of an owner came to."""

    verified: int = Field(description="Results that passed.")
    late: int = Field(description="Attempts that were not delivered in time.")
    crashed: int = Field(description="Attempts that failed on the node.")
    broke_its_word: int = Field(description="Attempts that were declined after they had been accepted.")
    wrong: int = Field(description="Results that did not pass.")


class NodeDetailView(NodeSummaryView):
    machine: dict[str, Any] | None = Field(description="What the machine last said of itself.")
    carries: dict[str, Any] | None = Field(
        description="The kinds of tasks that it carries out, what its sandboxes enforce, and why not more."
    )
    rules: dict[str, Any] = Field(description="Each rule that was set: its value, who set it, where and when.")
    no_work: list[NoWorkView] = Field(description="Why it gets no work, the reason to see to first in front.")
    alerts: list[AlertView] = Field(description="What its owner should see to, oldest first.")
    record: OwnerRecordView = Field(description="What its owner's attempts came to, on all their nodes.")


async def summaries(control: Control, connection: Connection, listed: Sequence[Node]) -> list[NodeSummaryView]:
    devices = await nodes.devices(connection, [node.id for node in listed])
    seen = await _views(control, connection, listed, devices)
    owners = await nodes.owners(connection, listed)
    return [
        NodeSummaryView(**_fields(node, seen[node.id], devices[node.id]), owner=owners[node.account_id])
        for node in listed
    ]


async def detail(control: Control, connection: Connection, answer: Node | Refusal) -> NodeDetailView:
    node = unless_refused(answer)
    devices = await nodes.devices(connection, [node.id])
    seen = (await _views(control, connection, [node], devices))[node.id]
    seen = replace(seen, placement_stopped=await job_waits.stopped_placement(connection) or "")
    reasons = why_no_work(seen, _heat(control), control.clock.now())
    return NodeDetailView(
        **_fields(node, seen, devices[node.id]),
        owner=(await nodes.owners(connection, [node]))[node.account_id],
        machine=None if node.machine is None else dict(node.machine),
        carries=None if node.carries is None else dict(node.carries),
        rules=rule_book.book_json(node.book),
        no_work=[_reason(reason) for reason in reasons],
        alerts=[_alert(alert) for alert in (await node_alerts.of_nodes(connection, [node.id])).get(node.id, ())],
        record=OwnerRecordView(**(await owner_records.find(connection, node.account_id))._asdict()),
    )


async def _views(
    control: Control, connection: Connection, listed: Sequence[Node], devices: Mapping[UUID, Sequence[KnownDevice]]
) -> Mapping[UUID, NodeSituation]:
    oldest = control.settings.nodes.agent_oldest
    return await node_views.views(connection, listed, devices, _heat(control), oldest)


def _heat(control: Control) -> HeatLimits:
    return HeatLimits(control.settings.nodes.pause_above_c, control.settings.nodes.resume_at_c)


def _fields(node: Node, seen: NodeSituation, devices: Sequence[KnownDevice]) -> dict[str, Any]:
    """What every view of a node shows."""
    names = ("id", "account_id", "name", "house", "life", "agent", "joined_at", "heard_at", "linked_at")
    more = ("measured_cores", "measured_mib", "suspended_reason", "removed_at", "removed_reason")
    return {
        **{name: getattr(node, name) for name in (*names, *more)},
        "conditions": list(seen.conditions),
        "version_accepted": seen.version_accepted,
        "devices": [DeviceView.model_validate(device) for device in devices],
    }


def _reason(reason: NoWorkReason) -> NoWorkView:
    fields = {"code": reason.why.value, "sentence": reason.sentence, "device": reason.device, "until": reason.until}
    return NoWorkView.model_validate(fields)


def _alert(open_alert: OpenAlert) -> AlertView:
    fields = {"kind": open_alert.kind.value, "sentence": open_alert.sentence, "since": open_alert.since}
    return AlertView.model_validate({**fields, "device": None if open_alert.device < 0 else open_alert.device})
