"""What a task needs of a node: devices or a part of one, memory, a price, and who must not get it.

`devices` counts whole devices; a demand for one device may need less than a whole one, in `milli`. A demand without
devices needs the processor only. Fields that are not set demand nothing.

The index compares demands with nodes by a `QuickDemand`: worked out once, when the demand is made, it says nothing that
the demand does not say.
"""

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import lru_cache
from math import inf
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant

WHOLE_MILLI = 1000

HOUSE = "node=house"
"""The label of the operator's own nodes, whose results the pool trusts."""

"""One whole device."""

_LONG_AGO = Instant(0)

Shape = tuple[int, int, frozenset[str], int, int, int, int, bool]

Filters = tuple[frozenset[str], frozenset[str], frozenset[UUID], int, int | None]

LaneKey: TypeAlias = tuple[frozenset[str], int]
"""The models and the number of whole devices that a demand asks for; for a part of a device, no number."""

_PART = -1


class PriorityLevel(IntEnum):
    LOW = 0
    NORMAL = 1
    HIGH = 2


class PriceBasis(Enum):
    """What the cost of a task at a node follows from: the price of a device-hour, of work on a device, or of a core."""

    DEVICE_HOUR = "device_hour"
    DEVICE_WORK = "device_work"
    CORE = "core"


RankingKey: TypeAlias = tuple[str, PriceBasis]
"""The policy, and what costs follow from."""


class NeededArtefact(NamedTuple):
    """An input or a model; a node that has it already need not fetch it."""

    digest: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Requirements:
    """What an order asks of nodes, besides what its work needs. Fields that are not set ask for nothing."""

    device_models: frozenset[str] = frozenset()
    """Any of these, as the catalogue or a driver names them."""

    gpu_memory_mib: int = 0
    """Of each device, as it is sold: drivers keep a little of it for themselves."""

    nvlink: bool = False
    regions: frozenset[str] = frozenset()
    """Any of these."""

    labels: frozenset[str] = frozenset()
    """All of these."""

    reputation_floor: int = 0
    hourly_max_uc: int | None = None
    """The most that a device-hour may cost."""

    policy: str = ""
    """By which a node is chosen; empty leaves it to the pool."""

    avoided: frozenset[UUID] = frozenset()
    """Nodes that must not get it."""


NO_REQUIREMENTS = Requirements()


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
    audited_id: UUID | None = None
    """Of an audit, the customer whose result it checks: it takes their turn."""

    duration_us: int = 0
    inputs: tuple[NeededArtefact, ...] = ()
    priority: PriorityLevel = PriorityLevel.NORMAL
    submitted_at: Instant = _LONG_AGO
    policy: str = "value"
    price_basis: PriceBasis = PriceBasis.DEVICE_HOUR
    asked_milli: int = field(init=False, repr=False, compare=False)
    """The device capacity that it takes in all."""
    shape: Shape = field(init=False, repr=False, compare=False)
    """What it takes from a node, whoever owns the node."""
    filters: Filters = field(init=False, repr=False, compare=False)
    """What else decides which nodes suit it, whatever is free of them."""
    quick: "QuickDemand" = field(init=False, repr=False, compare=False)
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
        set_field(
            self,
            "filters",
            (self.labels, self.regions, self.excluded_nodes, self.reputation_floor, self.price_max_uc),
        )
        set_field(self, "quick", QuickDemand(self))

    @property
    def is_shared(self) -> bool:
        """Whether it wants a part of a device, and leaves the rest to others."""
        return self.milli < WHOLE_MILLI

    @property
    def input_bytes(self) -> int:
        return sum(needed.size_bytes for needed in self.inputs)


class QuickDemand:
    """What most comparisons of a demand need."""

    __slots__ = (
        "cpu_milli", "customer_number", "device_memory_mib", "disk_mib", "is_choosy", "is_usual", "kind",
        "lanes", "limit_uc", "memory_mib", "ranking", "reputation_floor",
    )  # fmt: skip

    def __init__(self, demand: Demand) -> None:
        self.kind, self.reputation_floor = demand.kind, demand.reputation_floor
        self.cpu_milli, self.memory_mib, self.disk_mib = demand.cpu_milli, demand.memory_mib, demand.disk_mib
        self.device_memory_mib = demand.gpu_memory_mib if demand.devices else 0
        """What the largest device must have."""
        self.limit_uc = inf if demand.price_max_uc is None else demand.price_max_uc
        """The price limit; infinite where there is none."""
        self.customer_number = -1 if demand.customer_id is None else demand.customer_id.int
        """Numbers compare in C, ids in Python (1.04 ×)."""
        places = demand.regions or demand.domains or demand.labels
        self.is_choosy = bool(demand.excluded_nodes or demand.excluded_owners or demand.attested or places)
        """Whether it has wishes that few demands have; the others need not check them one by one."""
        self.is_usual = not (self.is_choosy or demand.nvlink or demand.is_shared)
        """Whether it wants whole devices, and has no wish that few demands have: on a usual node, it needs few checks
        (1.13 ×)."""
        models = demand.device_models if demand.devices else frozenset()
        self.lanes = _lane_key(models, _PART if demand.is_shared else demand.devices)
        """In which lanes its nodes stand."""
        self.ranking = _ranking_key(demand.policy, demand.price_basis)
        """In which ranking."""


@lru_cache(maxsize=10_000)
def _lane_key(models: frozenset[str], devices: int) -> LaneKey:
    """One object for equal keys, so that lookups compare identity instead of names (1.04 ×)."""
    return models, devices


@lru_cache(maxsize=1_000)
def _ranking_key(policy: str, basis: PriceBasis) -> RankingKey:
    return policy, basis
