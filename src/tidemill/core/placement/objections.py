"""Why a node cannot take a task: one name and one sentence for each reason, shown to whoever asks.

A node without an objection suits; everything else about it is the policy's business.
"""

from collections.abc import Iterator
from enum import Enum

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, are_joined, fitting_devices
from tidemill.core.placement.demand import Demand


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


def objections(node: Candidate, demand: Demand, now: Instant) -> Iterator[PlacementObjection]:
    """Every objection that applies to a node of which so much is free."""
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
    if node.available_until is not None and node.available_until < now + demand.duration_us:
        yield PlacementObjection.WINDOW_TOO_SHORT


def _of_devices(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if not demand.devices:
        return
    right = [
        device for device in node.devices if not demand.device_models or device.device_model in demand.device_models
    ]
    if not right:
        yield PlacementObjection.MODEL_DIFFERS
        return
    if not any(device.memory_mib >= demand.gpu_memory_mib for device in right):
        yield PlacementObjection.DEVICE_MEMORY_TOO_SMALL
        return
    fitting = fitting_devices(node.devices, demand)
    if len(fitting) < demand.devices:
        yield PlacementObjection.DEVICES_BUSY
    elif not are_joined(node.devices, fitting, demand):
        yield PlacementObjection.NVLINK_MISSING


def _of_machine(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if node.cpu_milli < demand.cpu_milli:
        yield PlacementObjection.PROCESSOR_BUSY
    if node.memory_mib < demand.memory_mib:
        yield PlacementObjection.MEMORY_BUSY
    if node.disk_mib < demand.disk_mib:
        yield PlacementObjection.DISK_FULL


def _of_places(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if demand.regions and node.region not in demand.regions:
        yield PlacementObjection.REGION_DIFFERS
    if demand.domains and node.domain not in demand.domains:
        yield PlacementObjection.DOMAIN_DIFFERS
    if not demand.labels <= node.labels:
        yield PlacementObjection.LABELS_MISSING


def _of_people(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if node.node_id in demand.excluded_nodes:
        yield PlacementObjection.EXCLUDED
    if node.owner_id in demand.excluded_owners:
        yield PlacementObjection.OWNER_EXCLUDED
    if node.owner_id == demand.customer_id:
        yield PlacementObjection.OWN_NODE
