"""What a task needs of a node: devices or a part of one, memory, a price, and who must not get it.

`devices` counts whole devices; a demand for one device may need less than a whole one, in `milli`. A demand without
devices needs the processor only. Fields that are not set demand nothing.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.index.quick_demand import QuickDemand

WHOLE_MILLI = 1000
"""One whole device."""

_LONG_AGO = Instant(0)

Shape = tuple[int, int, frozenset[str], int, int, int, int, bool]


class PriorityLevel(IntEnum):
    LOW = 0
    NORMAL = 1
    HIGH = 2


class NeededArtefact(NamedTuple):
    """An input or a model; a node that has it already need not fetch it."""

    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What one task demands."""

    kind: str
    devices: int = 1
    milli: int = WHOLE_MILLI
    device_models: frozenset[str] = frozenset()
    gpu_memory_mib: int = 0
    nvlink: bool = False
    cpu_milli: int = 0
    memory_mib: int = 0
    disk_mib: int = 0
    price_max_uc: int | None = None
    reputation_floor: int = 0
    attested: bool = False
    regions: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    excluded_nodes: frozenset[UUID] = frozenset()
    excluded_owners: frozenset[UUID] = frozenset()
    customer_id: UUID | None = None
    duration_us: int = 0
    inputs: tuple[NeededArtefact, ...] = ()
    priority: PriorityLevel = PriorityLevel.NORMAL
    submitted_at: Instant = _LONG_AGO
    policy: str = "value"
    asked_milli: int = field(init=False, repr=False, compare=False)
    """The device capacity that it takes in all."""
    shape: Shape = field(init=False, repr=False, compare=False)
    """What it takes from a node, whoever owns the node."""
    quick: QuickDemand = field(init=False, repr=False, compare=False)
    """The same demand as the index reads it."""

    def __post_init__(self) -> None:
        assert self.devices >= 0
        assert 0 < self.milli <= WHOLE_MILLI
        assert self.milli == WHOLE_MILLI or self.devices == 1, "only one device can be shared"
        models = self.device_models if self.devices else frozenset()
        needs = (self.gpu_memory_mib, self.cpu_milli, self.memory_mib, self.disk_mib)
        set_field = object.__setattr__
        set_field(self, "asked_milli", self.devices * self.milli)
        set_field(self, "shape", (self.devices, self.milli if self.devices else 0, models, *needs, self.nvlink))
        set_field(self, "quick", QuickDemand(self))

    @property
    def is_shared(self) -> bool:
        """Whether it wants a part of a device, and leaves the rest to others."""
        return self.milli < WHOLE_MILLI

    @property
    def input_bytes(self) -> int:
        return sum(needed.size_bytes for needed in self.inputs)
