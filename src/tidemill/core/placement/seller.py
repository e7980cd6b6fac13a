"""A node as it sells its time: what there is of it, how fast it was measured, and what an hour costs.

Whether it may work at all is said by `core.nodes.no_work`, by the same rules that its owner is shown. A node without a
GPU is one device, its processors; many tasks may share them, and each pays for the work that it does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.nodes.no_work import NodeSituation, why_no_work
from tidemill.core.nodes.node import KnownDevice, Node
from tidemill.core.nodes.rules import windows
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.placement.candidate import NVLINK_NONE_PCT, Candidate, CandidateDevice
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.supply import SupplyNode, hourly_uc, quoted_ms
from tidemill.core.placement.task_demand import ABILITY, HOUSE, TaskDemand

CPU = "cpu"


@dataclass(frozen=True)
class SellerDefaults:
    """What holds for nodes whose owners have set nothing, and of whose owners nothing is known yet."""

    hourly_uc: int
    reputation: int
    heat: HeatLimits
    new_for_us: int
    """So long after their first node has joined, owners are newcomers."""

    new_for_results: int
    """Until so many of their results were verified, they are, too."""


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """When an owner's first node has joined, and how many of their results were verified."""

    since: Instant
    verified: int = 0


@dataclass(frozen=True)
class Seller:
    """A node that may get work, as if it had none. The speeds are those of its slowest device and of its processors."""

    candidate: Candidate
    house: bool
    device_ops_per_s: float
    cpu_ops_per_s: float

    @property
    def node_id(self) -> UUID:
        return self.candidate.node_id

    def quoted_ms(self, asked: TaskDemand) -> int:
        devices = asked.demand.devices
        return quoted_ms(asked.needs, self.device_ops_per_s * devices if devices else self.cpu_ops_per_s)

    def hourly_uc(self, asked: TaskDemand) -> int:
        return self.candidate.price_uc * max(1, asked.demand.devices)


def seller_of(
    node: Node,
    devices: Sequence[KnownDevice],
    view: NodeSituation,
    terms: SellerDefaults,
    now: Instant,
    record: OwnerRecord | None = None,
) -> Seller | None:
    """The node as it is offered work; None if it is offered none now. Whose record is not known joined with it."""
    if node.machine is None or any(reason.device is None for reason in why_no_work(view, terms.heat, now)):
        return None
    working = [one for one in devices if one.failing is None]
    gpus = [one for one in working if one.kind != CPU]
    cores = int(node.machine["cores"])
    cpu_ops = sum(one.measured_ops_per_s or 0 for one in working if one.kind == CPU) or cores * OPERATIONS_PER_CORE_S
    carries: Mapping[str, Any] = node.carries or {}
    candidate = Candidate(
        node_id=node.id,
        owner_id=node.account_id,
        devices=_devices(gpus, node.machine.get("links", ())),
        cpu_milli=cores * 1_000,
        memory_mib=int(node.machine["memory_mib"]),
        disk_mib=int(node.machine["disk_mib"]),
        price_uc=hourly_uc(view.rules, terms.hourly_uc),
        reputation=terms.reputation,
        nvlink_pct=max((one.nvlink_ppm or 0 for one in gpus), default=0) // 10_000 or NVLINK_NONE_PCT,
        region=view.rules.region or "",
        labels=frozenset({*(one for one in view.rules.labels if one != HOUSE), *_own_labels(node, carries)}),
        kinds=frozenset(carries.get("kinds", ())),
        newcomer=not node.house and _is_new(record or OwnerRecord(node.joined_at), terms, now),
        available_until=windows.closes_at(view.rules.windows, now, node.utc_offset_s) if view.rules.windows else None,
    )
    slowest = min((float(one.measured_ops_per_s or 0) for one in gpus), default=0.0)
    return Seller(candidate, node.house, slowest, float(cpu_ops))


def left_of(seller: Seller, taken: Iterable[tuple[Demand, tuple[int, ...]]]) -> Candidate:
    """The candidate with what is free of it. Of devices that nobody named, the first free ones are taken."""
    candidate = seller.candidate
    free = [device.free_milli for device in candidate.devices]
    cpu_milli, memory_mib, disk_mib = candidate.cpu_milli, candidate.memory_mib, candidate.disk_mib
    for request, devices in taken:
        cpu_milli, memory_mib = cpu_milli - request.cpu_milli, memory_mib - request.memory_mib
        disk_mib -= request.disk_mib
        for index in devices or _first_free(free, request):
            if index < len(free):
                free[index] = max(0, free[index] - request.milli)
    return replace(
        candidate,
        devices=tuple(replace(one, free_milli=left) for one, left in zip(candidate.devices, free, strict=True)),
        cpu_milli=max(0, cpu_milli),
        memory_mib=max(0, memory_mib),
        disk_mib=max(0, disk_mib),
    )


def supply_node_of(seller: Seller) -> SupplyNode:
    """A node that may get work, as quotes see it: what is quoted is what is placed."""
    candidate = seller.candidate
    return SupplyNode(
        node_id=candidate.node_id,
        owner_id=candidate.owner_id,
        price_uc=candidate.price_uc,
        cpu_operations_per_s=seller.cpu_ops_per_s,
        gpu_operations_per_s=seller.device_ops_per_s,
        devices=len(candidate.devices),
        gpu_memory_mib=min((device.memory_mib for device in candidate.devices), default=0),
        memory_mib=candidate.memory_mib,
        cores=candidate.cpu_milli // 1_000,
        kinds=candidate.kinds,
        device_model=candidate.device_model,
        region=candidate.region,
        house=seller.house,
    )


def _is_new(record: OwnerRecord, terms: SellerDefaults, now: Instant) -> bool:
    return now - record.since < terms.new_for_us or record.verified < terms.new_for_results


def _own_labels(node: Node, carries: Mapping[str, Any]) -> Iterator[str]:
    """What the pool itself says of a node."""
    yield from (ABILITY + name for name in carries.get("abilities", ()))
    if node.house:
        yield HOUSE


def _first_free(free: Sequence[int], request: Demand) -> list[int]:
    return [index for index, left in enumerate(free) if left >= request.milli][: request.devices]


def _devices(gpus: Sequence[KnownDevice], links: Iterable[Mapping[str, Any]]) -> tuple[CandidateDevice, ...]:
    groups = _groups(one for one in links if one.get("kind") == "nvlink")
    return tuple(
        CandidateDevice(one.model or one.name, one.memory_mib, nvlink_group=groups.get(one.index, 0)) for one in gpus
    )


def _groups(links: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Devices that are joined, directly or through others, are of one group; groups are numbered from 1."""
    group: dict[int, int] = {}
    for number, link in enumerate(links, start=1):
        one, other = int(link["one"]), int(link["other"])
        merged = {group.get(one), group.get(other)} - {None}
        group = {device: number if of in merged else of for device, of in group.items()}
        group[one] = group[other] = number
    return group
