"""What a task needs of a node: devices or a part of one, memory, a price, and who must not get it.

`devices` counts whole devices; a demand for one device may need less than a whole one, in `milli`. A demand without
devices needs the processor only. Fields that are not set demand nothing.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from math import inf
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant

WHOLE_MILLI = 1000
"""One whole device."""

_LONG_AGO = Instant(0)
_PART = -1

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
    is_choosy: bool = field(init=False, repr=False, compare=False)
    """Whether it has wishes that few demands have; the others need not check them one by one."""
    is_usual: bool = field(init=False, repr=False, compare=False)
    """Whether it wants whole devices, and has no wish that few demands have."""
    is_modest: bool = field(init=False, repr=False, compare=False)
    """Whether it demands no disk, no device memory, no price limit and no reputation."""
    device_memory_mib: int = field(init=False, repr=False, compare=False)
    limit_uc: float = field(init=False, repr=False, compare=False)
    """The price limit; infinite where there is none."""
    asked_milli: int = field(init=False, repr=False, compare=False)
    """The device capacity that it takes in all."""
    customer_number: int = field(init=False, repr=False, compare=False)
    lanes: tuple[frozenset[str], int] = field(init=False, repr=False, compare=False)
    """The lanes of its nodes: by models, and by the number of free devices; for a part of a device, none."""
    shape: Shape = field(init=False, repr=False, compare=False)
    """What it takes from a node, whoever owns the node."""

    def __post_init__(self) -> None:
        assert self.devices >= 0
        assert 0 < self.milli <= WHOLE_MILLI
        assert self.milli == WHOLE_MILLI or self.devices == 1, "only one device can be shared"
        choosy = bool(self.excluded_nodes or self.excluded_owners or self.attested or self._places)
        models = self.device_models if self.devices else frozenset()
        needs = (self.gpu_memory_mib, self.cpu_milli, self.memory_mib, self.disk_mib)
        set_field = object.__setattr__
        set_field(self, "is_choosy", choosy)
        set_field(self, "is_usual", not (choosy or self.nvlink or self.milli < WHOLE_MILLI))
        device_memory_mib = self.gpu_memory_mib if self.devices else 0
        set_field(self, "device_memory_mib", device_memory_mib)
        is_cheap_to_please = self.price_max_uc is None and not self.reputation_floor
        set_field(self, "is_modest", is_cheap_to_please and not (self.disk_mib or device_memory_mib))
        set_field(self, "limit_uc", inf if self.price_max_uc is None else self.price_max_uc)
        set_field(self, "asked_milli", self.devices * self.milli)
        set_field(self, "customer_number", -1 if self.customer_id is None else self.customer_id.int)
        set_field(self, "lanes", _lanes(models, self.devices if self.milli == WHOLE_MILLI else _PART))
        set_field(self, "shape", (self.devices, self.milli if self.devices else 0, models, *needs, self.nvlink))

    @property
    def _places(self) -> frozenset[str]:
        return self.regions or self.domains or self.labels

    @property
    def input_bytes(self) -> int:
        return sum(needed.size_bytes for needed in self.inputs)


@lru_cache(maxsize=10_000)
def _lanes(models: frozenset[str], devices: int) -> tuple[frozenset[str], int]:
    """One object for equal lanes, so that lookups compare identity instead of names."""
    return models, devices
