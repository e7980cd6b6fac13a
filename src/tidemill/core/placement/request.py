"""What a task asks of a node: devices or a part of one, memory, a price, and who must not get it.

`devices` counts whole devices; a request for one device may ask for less than a whole one in `milli`. A request without
devices asks for the processor only. Everything that is not set is not asked for.
"""

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant

WHOLE_MILLI = 1000
"""One whole device."""

_LONG_AGO = Instant(0)

Shape = tuple[int, int, frozenset[str], int, int, int, int, bool]


class Priority(IntEnum):
    LOW = 0
    NORMAL = 1
    HIGH = 2


class Apart(Enum):
    """What the parts of a gang must not share."""

    NOTHING = "nothing"
    NODES = "nodes"
    OWNERS = "owners"


class Wanted(NamedTuple):
    """An input or a model; a node that holds it already need not fetch it."""

    digest: str
    size_bytes: int


@dataclass(frozen=True)
class Request:
    """One task, or a gang of equal ones that begin together or not at all."""

    kind: str
    devices: int = 1
    milli: int = WHOLE_MILLI
    models: frozenset[str] = frozenset()
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
    inputs: tuple[Wanted, ...] = ()
    gang: int = 1
    apart: Apart = Apart.NOTHING
    priority: Priority = Priority.NORMAL
    submitted_at: Instant = _LONG_AGO
    policy: str = "value"
    is_choosy: bool = field(init=False, repr=False, compare=False)
    """Whether it asks for something that few requests ask for, which then need not be looked at one by one."""

    def __post_init__(self) -> None:
        assert self.devices >= 0
        assert 0 < self.milli <= WHOLE_MILLI
        assert self.milli == WHOLE_MILLI or self.devices == 1, "only one device can be shared"
        assert self.gang >= 1
        places = self.regions or self.domains or self.labels
        choosy = bool(self.excluded_nodes or self.excluded_owners or self.attested or places)
        object.__setattr__(self, "is_choosy", choosy)

    @cached_property
    def shape(self) -> Shape:
        """What it takes from a node, without regard to whose node it is."""
        milli = self.milli if self.devices else 0
        needs = (self.gpu_memory_mib, self.cpu_milli, self.memory_mib, self.disk_mib)
        return (self.devices, milli, self.models if self.devices else frozenset(), *needs, self.nvlink)

    @property
    def asked_milli(self) -> int:
        return self.devices * self.milli

    @property
    def input_bytes(self) -> int:
        return sum(one.size_bytes for one in self.inputs)
