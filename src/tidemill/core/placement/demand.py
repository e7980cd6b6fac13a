"""What a task asks of a node: devices or a part of one, memory, a price, and who must not get it.

`devices` counts whole devices; a request for one device may ask for less than a whole one in `milli`. A request without
devices asks for the processor only. Everything that is not set is not asked for.
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
    """An input or a model; a node that holds it already need not fetch it."""

    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What one task asks for."""

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
    """Whether it asks for something that few requests ask for, which then need not be looked at one by one."""
    is_usual: bool = field(init=False, repr=False, compare=False)
    """Whether it asks for whole devices, and for nothing that few requests ask for."""
    is_modest: bool = field(init=False, repr=False, compare=False)
    """Whether it asks neither for a disk, nor for devices of some size, nor for a price or a reputation."""
    device_memory_mib: int = field(init=False, repr=False, compare=False)
    limit_uc: float = field(init=False, repr=False, compare=False)
    """The price limit, also where there is none."""
    asked_milli: int = field(init=False, repr=False, compare=False)
    """All that it asks of devices."""
    customer_number: int = field(init=False, repr=False, compare=False)
    lanes: tuple[frozenset[str], int] = field(init=False, repr=False, compare=False)
    """Where the nodes for it wait: by their models, and by how many devices are free; for a part of one, none."""
    shape: Shape = field(init=False, repr=False, compare=False)
    """What it takes from a node, without regard to whose node it is."""

    def __post_init__(self) -> None:
        assert self.devices >= 0
        assert 0 < self.milli <= WHOLE_MILLI
        assert self.milli == WHOLE_MILLI or self.devices == 1, "only one device can be shared"
        choosy = bool(self.excluded_nodes or self.excluded_owners or self.attested or self._places)
        models = self.device_models if self.devices else frozenset()
        needs = (self.gpu_memory_mib, self.cpu_milli, self.memory_mib, self.disk_mib)
        put = object.__setattr__
        put(self, "is_choosy", choosy)
        put(self, "is_usual", not (choosy or self.nvlink or self.milli < WHOLE_MILLI))
        device_memory_mib = self.gpu_memory_mib if self.devices else 0
        put(self, "device_memory_mib", device_memory_mib)
        is_cheap_to_please = self.price_max_uc is None and not self.reputation_floor
        put(self, "is_modest", is_cheap_to_please and not (self.disk_mib or device_memory_mib))
        put(self, "limit_uc", inf if self.price_max_uc is None else self.price_max_uc)
        put(self, "asked_milli", self.devices * self.milli)
        put(self, "customer_number", -1 if self.customer_id is None else self.customer_id.int)
        put(self, "lanes", _lanes(models, self.devices if self.milli == WHOLE_MILLI else _PART))
        put(self, "shape", (self.devices, self.milli if self.devices else 0, models, *needs, self.nvlink))

    @property
    def _places(self) -> frozenset[str]:
        return self.regions or self.domains or self.labels

    @property
    def input_bytes(self) -> int:
        return sum(one.size_bytes for one in self.inputs)


@lru_cache(maxsize=10_000)
def _lanes(models: frozenset[str], devices: int) -> tuple[frozenset[str], int]:
    """The same for all who ask the same, so that it is found by being it, and not by comparing names."""
    return models, devices
