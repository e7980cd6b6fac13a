"""Why a node cannot take a task: one name and one sentence for each reason, shown to whoever asks.

`suits` and `objections` agree: the first is quick, for a choice among many, the second complete, for people.
"""

from collections.abc import Iterator
from enum import Enum

from tidemill.core.clock import Instant
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.node import PoolNode


class PlacementObjection(Enum):
    """The value is the sentence; the name in lower case is the code that programs read."""

    KIND_NOT_OFFERED = "The node carries out no such tasks: what they need is not installed there, or not allowed."
    MODEL_DIFFERS = "None of its devices is of a model that the job asks for."
    DEVICE_MEMORY_TOO_SMALL = "Its devices have less memory than the job asks for."
    DEVICES_BUSY = "Too few of its devices are free."
    NVLINK_MISSING = "Too few of its free devices are joined by NVLink."
    PROCESSOR_BUSY = "Too little of its processor is free."
    MEMORY_BUSY = "Too little of its memory is free."
    DISK_FULL = "Too little of its disk is free."
    TOO_DEAR = "It costs more than the job's limit."
    REPUTATION_TOO_LOW = "Its owner's reputation is below what the job asks for."
    NOT_ATTESTED = "The job asks for attested nodes, and this one is not."
    REGION_DIFFERS = "It is in a region that the job does not allow."
    DOMAIN_DIFFERS = "It is in a domain that the job does not allow."
    LABELS_MISSING = "It lacks a label that the job asks for."
    EXCLUDED = "It is excluded from this task: it failed it already, or an operator or the customer said so."
    OWNER_EXCLUDED = "Its owner is excluded from this task: another part of it, or what it checks, is theirs."
    OWN_NODE = "It belongs to the customer, who cannot be paid for their own work."
    WINDOW_TOO_SHORT = "Its owner's hours end before the task would."

    @property
    def code(self) -> str:
        return self.name.lower()

    @property
    def sentence(self) -> str:
        sentence: str = self.value
        return sentence


def suits(node: PoolNode, demand: Demand, now: Instant) -> bool:
    """Whether there is no objection."""
    if node.is_usual and demand.is_usual:
        return node.has_whole(demand) and suits_besides(node, demand)
    until = node.until
    return (
        node.can_take(demand)
        and suits_besides(node, demand)
        and (until is None or until >= now + demand.duration_us)
        and not (demand.is_choosy and _is_barred(node, demand))
    )


def suits_besides(node: PoolNode, demand: Demand) -> bool:
    """Whether no usual objection applies to a node that has enough devices of the right models."""
    return (
        node.cpu_milli >= demand.cpu_milli
        and node.memory_mib >= demand.memory_mib
        and demand.kind in node.kinds
        and node.owner_number != demand.customer_number
        and (
            demand.is_modest
            or (
                node.price_uc <= demand.limit_uc
                and node.reputation >= demand.reputation_floor
                and node.disk_mib >= demand.disk_mib
                and node.device_memory_mib >= demand.device_memory_mib
            )
        )
    )


def objections(node: PoolNode, demand: Demand, now: Instant) -> Iterator[PlacementObjection]:
    """Every objection that applies."""
    if demand.kind not in node.kinds:
        yield PlacementObjection.KIND_NOT_OFFERED
    yield from _of_devices(node, demand)
    yield from _of_machine(node, demand)
    if demand.price_max_uc is not None and node.price_uc > demand.price_max_uc:
        yield PlacementObjection.TOO_DEAR
    if node.reputation < demand.reputation_floor:
        yield PlacementObjection.REPUTATION_TOO_LOW
    if demand.attested and not node.attested:
        yield PlacementObjection.NOT_ATTESTED
    yield from _of_places(node, demand)
    yield from _of_people(node, demand)
    if node.until is not None and node.until < now + demand.duration_us:
        yield PlacementObjection.WINDOW_TOO_SHORT


def _is_barred(node: PoolNode, demand: Demand) -> bool:
    return (
        node.node_id in demand.excluded_nodes
        or node.owner_id in demand.excluded_owners
        or (demand.attested and not node.attested)
        or (bool(demand.regions) and node.region not in demand.regions)
        or (bool(demand.domains) and node.domain not in demand.domains)
        or not demand.labels <= node.labels
    )


def _of_devices(node: PoolNode, demand: Demand) -> Iterator[PlacementObjection]:
    if not demand.devices:
        return
    right = [
        device
        for device in node.candidate.devices
        if not demand.device_models or device.device_model in demand.device_models
    ]
    if not right:
        yield PlacementObjection.MODEL_DIFFERS
        return
    if not any(device.memory_mib >= demand.gpu_memory_mib for device in right):
        yield PlacementObjection.DEVICE_MEMORY_TOO_SMALL
        return
    if node.free_for(demand) < demand.devices:
        yield PlacementObjection.DEVICES_BUSY
    elif not node.joined_for(demand):
        yield PlacementObjection.NVLINK_MISSING


def _of_machine(node: PoolNode, demand: Demand) -> Iterator[PlacementObjection]:
    if node.cpu_milli < demand.cpu_milli:
        yield PlacementObjection.PROCESSOR_BUSY
    if node.memory_mib < demand.memory_mib:
        yield PlacementObjection.MEMORY_BUSY
    if node.disk_mib < demand.disk_mib:
        yield PlacementObjection.DISK_FULL


def _of_places(node: PoolNode, demand: Demand) -> Iterator[PlacementObjection]:
    if demand.regions and node.region not in demand.regions:
        yield PlacementObjection.REGION_DIFFERS
    if demand.domains and node.domain not in demand.domains:
        yield PlacementObjection.DOMAIN_DIFFERS
    if not demand.labels <= node.labels:
        yield PlacementObjection.LABELS_MISSING


def _of_people(node: PoolNode, demand: Demand) -> Iterator[PlacementObjection]:
    if node.node_id in demand.excluded_nodes:
        yield PlacementObjection.EXCLUDED
    if node.owner_id in demand.excluded_owners:
        yield PlacementObjection.OWNER_EXCLUDED
    if node.owner_id == demand.customer_id:
        yield PlacementObjection.OWN_NODE
