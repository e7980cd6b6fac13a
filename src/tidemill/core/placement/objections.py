"""Why a node cannot take a task: one name and one sentence for each reason, shown to whoever asks.

`suits` and `objections` say the same, the one quickly for a choice among many, the other in full for people.
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


def suits(node: PoolNode, request: Demand, now: Instant) -> bool:
    """Whether there is no objection."""
    if node.is_usual and request.is_usual:
        return node.has_whole(request) and suits_besides(node, request)
    until = node.until
    return (
        node.can_take(request)
        and suits_besides(node, request)
        and (until is None or until >= now + request.duration_us)
        and not (request.is_choosy and _is_barred(node, request))
    )


def suits_besides(node: PoolNode, request: Demand) -> bool:
    """Whether there is no objection of the usual ones to a node that has enough devices of the right models."""
    return (
        node.cpu_milli >= request.cpu_milli
        and node.memory_mib >= request.memory_mib
        and request.kind in node.kinds
        and node.owner_number != request.customer_number
        and (
            request.is_modest
            or (
                node.price_uc <= request.limit_uc
                and node.reputation >= request.reputation_floor
                and node.disk_mib >= request.disk_mib
                and node.device_memory_mib >= request.device_memory_mib
            )
        )
    )


def objections(node: PoolNode, request: Demand, now: Instant) -> Iterator[PlacementObjection]:
    """Every reason there is."""
    if request.kind not in node.kinds:
        yield PlacementObjection.KIND_NOT_OFFERED
    yield from _of_devices(node, request)
    yield from _of_machine(node, request)
    if request.price_max_uc is not None and node.price_uc > request.price_max_uc:
        yield PlacementObjection.TOO_DEAR
    if node.reputation < request.reputation_floor:
        yield PlacementObjection.REPUTATION_TOO_LOW
    if request.attested and not node.attested:
        yield PlacementObjection.NOT_ATTESTED
    yield from _of_places(node, request)
    yield from _of_people(node, request)
    if node.until is not None and node.until < now + request.duration_us:
        yield PlacementObjection.WINDOW_TOO_SHORT


def _is_barred(node: PoolNode, request: Demand) -> bool:
    return (
        node.node_id in request.excluded_nodes
        or node.owner_id in request.excluded_owners
        or (request.attested and not node.attested)
        or (bool(request.regions) and node.region not in request.regions)
        or (bool(request.domains) and node.domain not in request.domains)
        or not request.labels <= node.labels
    )


def _of_devices(node: PoolNode, request: Demand) -> Iterator[PlacementObjection]:
    if not request.devices:
        return
    right = [
        device
        for device in node.candidate.devices
        if not request.device_models or device.device_model in request.device_models
    ]
    if not right:
        yield PlacementObjection.MODEL_DIFFERS
        return
    if not any(device.memory_mib >= request.gpu_memory_mib for device in right):
        yield PlacementObjection.DEVICE_MEMORY_TOO_SMALL
        return
    if node.free_for(request) < request.devices:
        yield PlacementObjection.DEVICES_BUSY
    elif not node.joined_for(request):
        yield PlacementObjection.NVLINK_MISSING


def _of_machine(node: PoolNode, request: Demand) -> Iterator[PlacementObjection]:
    if node.cpu_milli < request.cpu_milli:
        yield PlacementObjection.PROCESSOR_BUSY
    if node.memory_mib < request.memory_mib:
        yield PlacementObjection.MEMORY_BUSY
    if node.disk_mib < request.disk_mib:
        yield PlacementObjection.DISK_FULL


def _of_places(node: PoolNode, request: Demand) -> Iterator[PlacementObjection]:
    if request.regions and node.region not in request.regions:
        yield PlacementObjection.REGION_DIFFERS
    if request.domains and node.domain not in request.domains:
        yield PlacementObjection.DOMAIN_DIFFERS
    if not request.labels <= node.labels:
        yield PlacementObjection.LABELS_MISSING


def _of_people(node: PoolNode, request: Demand) -> Iterator[PlacementObjection]:
    if node.node_id in request.excluded_nodes:
        yield PlacementObjection.EXCLUDED
    if node.owner_id in request.excluded_owners:
        yield PlacementObjection.OWNER_EXCLUDED
    if node.owner_id == request.customer_id:
        yield PlacementObjection.OWN_NODE
