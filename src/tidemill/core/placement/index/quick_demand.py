"""A demand as the index compares it with nodes: worked out once, when the demand is made.

It says nothing that the demand does not say. `suits` and the lanes read it instead of the demand.
"""

from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tidemill.core.placement.demand import Demand

LaneKey: TypeAlias = tuple[frozenset[str], int]
"""The models and the number of whole devices that a demand asks for; for a part of a device, no number."""

_PART = -1


class QuickDemand:
    """What most comparisons of a demand need."""

    __slots__ = (
        "cpu_milli", "customer_number", "device_memory_mib", "disk_mib", "is_choosy", "is_usual", "kind",
        "lanes", "limit_uc", "memory_mib", "reputation_floor",
    )  # fmt: skip

    def __init__(self, demand: "Demand") -> None:
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


@lru_cache(maxsize=10_000)
def _lane_key(models: frozenset[str], devices: int) -> LaneKey:
    """One object for equal keys, so that lookups compare identity instead of names (1.04 ×)."""
    return models, devices
