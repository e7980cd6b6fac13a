"""A node as it sells its time: what it has, its measured speed, and what an hour costs.

Cores and memory count as far as they were measured: by them it gets tasks at the same time, and by them a task's share
of the machine has its price.

`core.nodes.no_work` says whether it may work at all, by the same rules that its owner sees. A node without a GPU is one
device, its processors; many tasks may share them, and each pays for the work that it does.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.nodes.machine.gpu_names import recognised
from tidemill.core.nodes.no_work import NodeSituation, why_no_work
from tidemill.core.nodes.node import KnownDevice, Node
from tidemill.core.nodes.rules import windows
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.placement.candidate import NVLINK_NONE_PCT, Candidate, CandidateDevice
from tidemill.core.placement.demand import HOUSE, Demand
from tidemill.core.placement.supply import (
    USUAL_GPU_OPERATIONS_PER_S,
    MachineSize,
    Seller,
    price_uc,
    reference_ops_per_s,
    unit_prices_uc,
)
from tidemill.core.placement.task_demand import ABILITY

CPU = "cpu"


@dataclass(frozen=True)
class SellerDefaults:
    """What holds for nodes whose owners have set nothing and have no record yet."""

    hourly_uc: int
    reputation: int
    heat: HeatLimits
    new_for_us: int
    """For how long after their first node joined owners are newcomers."""

    new_for_results: int
    """They stay newcomers until so many of their results were verified."""


@dataclass(frozen=True, slots=True)
class OwnerRecord:
    """When an owner's first node joined, and how many of their results were verified."""

    owner_id: UUID
    since: Instant
    verified: int = 0


def seller_of(
    node: Node,
    devices: Sequence[KnownDevice],
    view: NodeSituation,
    terms: SellerDefaults,
    now: Instant,
    record: OwnerRecord | None = None,
) -> Seller | None:
    """The node as a seller; None if it may get no work now. An owner without a record joined with this node."""
    if node.machine is None or any(reason.device is None for reason in why_no_work(view, terms.heat, now)):
        return None
    return _whole(node, devices, view, terms, now, record)


def house_of(
    node: Node, devices: Sequence[KnownDevice], view: NodeSituation, terms: SellerDefaults, now: Instant
) -> Candidate | None:
    """A house node as it may be once it works again: until it is measured, its word is good. None if it never told what
    it has."""
    if node.machine is None:
        return None
    if node.measured_cores is None:
        node = replace(node, measured_cores=int(node.machine["cores"]), measured_mib=int(node.machine["memory_mib"]))
    return replace(_whole(node, devices, view, terms, now, None).candidate, available_until=None)


def _whole(
    node: Node,
    devices: Sequence[KnownDevice],
    view: NodeSituation,
    terms: SellerDefaults,
    now: Instant,
    record: OwnerRecord | None,
) -> Seller:
    """The node with all that it has."""
    assert node.machine is not None, "it has told what that is"
    working = [device for device in devices if device.failing is None]
    gpus = [device for device in working if device.kind != CPU]
    carries: Mapping[str, Any] = node.carries or {}
    asked_uc = price_uc(view.rules, terms.hourly_uc)
    reference = max((_reference(device) for device in gpus), default=USUAL_GPU_OPERATIONS_PER_S)
    size = MachineSize(len(gpus), node.cores, node.memory_mib)
    work_price_uc, core_price_uc = unit_prices_uc(asked_uc, size, reference)
    candidate = Candidate(
        node_id=node.id,
        owner_id=node.account_id,
        devices=_devices(gpus, node.machine.get("links", ())),
        cpu_milli=size.cores * 1_000,
        memory_mib=size.memory_mib,
        disk_mib=int(node.machine["disk_mib"]),
        price_uc=asked_uc,
        work_price_uc=work_price_uc,
        core_price_uc=core_price_uc,
        reputation=terms.reputation,
        nvlink_pct=max((device.nvlink_ppm or 0 for device in gpus), default=0) // 10_000 or NVLINK_NONE_PCT,
        region=view.rules.region or "",
        labels=frozenset({*(label for label in view.rules.labels if label != HOUSE), *_own_labels(node, carries)}),
        kinds=frozenset(carries.get("kinds", ())),
        newcomer=not node.house and _is_new(record or OwnerRecord(node.account_id, node.joined_at), terms, now),
        available_until=windows.closes_at(view.rules.windows, now, node.utc_offset_s) if view.rules.windows else None,
    )
    slowest = min((float(device.measured_ops_per_s or 0) for device in gpus), default=0.0)
    return Seller(candidate, node.house, slowest, _core_ops_per_s(working, size.cores), reference)


def left_of(seller: Seller, reserved: Iterable[tuple[Demand, tuple[int, ...]]]) -> Candidate:
    """The candidate with what is free of it. For devices that nobody named, the first free ones are taken."""
    candidate = seller.candidate
    free = [device.free_milli for device in candidate.devices]
    cpu_milli, memory_mib, disk_mib = candidate.cpu_milli, candidate.memory_mib, candidate.disk_mib
    for demand, devices in reserved:
        cpu_milli, memory_mib = cpu_milli - demand.cpu_milli, memory_mib - demand.memory_mib
        disk_mib -= demand.disk_mib
        for index in devices or _first_free(free, demand):
            if index < len(free):
                free[index] = max(0, free[index] - demand.milli)
    return replace(
        candidate,
        devices=tuple(replace(device, free_milli=milli) for device, milli in zip(candidate.devices, free, strict=True)),
        cpu_milli=max(0, cpu_milli),
        memory_mib=max(0, memory_mib),
        disk_mib=max(0, disk_mib),
    )


def _core_ops_per_s(working: Iterable[KnownDevice], cores: int) -> float:
    """What one core did while all worked, or what one usually does. A task of known work has one core."""
    measured = sum(device.measured_ops_per_s or 0 for device in working if device.kind == CPU)
    return measured / max(1, cores) or OPERATIONS_PER_CORE_S


def _reference(device: KnownDevice) -> float:
    return reference_ops_per_s(recognised(device.model or device.name, device.memory_mib))


def _is_new(record: OwnerRecord, terms: SellerDefaults, now: Instant) -> bool:
    return now - record.since < terms.new_for_us or record.verified < terms.new_for_results


def _own_labels(node: Node, carries: Mapping[str, Any]) -> Iterator[str]:
    """The labels that the pool itself gives a node."""
    yield from (ABILITY + name for name in carries.get("abilities", ()))
    if node.house:
        yield HOUSE


def _first_free(free: Sequence[int], demand: Demand) -> list[int]:
    return [index for index, milli in enumerate(free) if milli >= demand.milli][: demand.devices]


def _devices(gpus: Sequence[KnownDevice], links: Iterable[Mapping[str, Any]]) -> tuple[CandidateDevice, ...]:
    groups = _groups(link for link in links if link.get("kind") == "nvlink")
    return tuple(
        CandidateDevice(device.model or device.name, device.memory_mib, nvlink_group=groups.get(device.index, 0))
        for device in gpus
    )


def _groups(links: Iterable[Mapping[str, Any]]) -> dict[int, int]:
    """Devices that are joined, directly or through others, form one group; groups are numbered from 1."""
    group: dict[int, int] = {}
    for number, link in enumerate(links, start=1):
        first, second = int(link["one"]), int(link["other"])
        merged = {group.get(first), group.get(second)} - {None}
        group = {device: number if of in merged else of for device, of in group.items()}
        group[first] = group[second] = number
    return group
