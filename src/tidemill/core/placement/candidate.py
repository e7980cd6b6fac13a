"""A node as placement sees it: what it has, what is free of it, what it costs, and what is known of its owner.

A candidate is a value: the caller makes it from the registry, and makes a new one after a change. Which of its devices
a demand gets is decided here, too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.demand import WHOLE_MILLI, Demand, PriceBasis

NVLINK_NONE_PCT = 100
NVLINK_MAX_PCT = 150


@dataclass(frozen=True, slots=True)
class CandidateDevice:
    """One device. Devices of one NVLink group are linked directly; group 0 means none."""

    device_model: str
    memory_mib: int
    free_milli: int = WHOLE_MILLI
    nvlink_group: int = 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may get work now. The machine's quantities are what is free of them."""

    node_id: UUID
    owner_id: UUID
    devices: tuple[CandidateDevice, ...]
    cpu_milli: int
    memory_mib: int
    disk_mib: int = 0
    price_uc: int = 0
    """Of a device-hour."""

    work_price_uc: float = 0.0
    """Of known work on a device: the price of a device-hour over the reference speed of its model."""

    core_price_uc: float = 0.0
    """Of an hour of one core, as a share of the machine."""

    reputation: int = 300
    success: float = 0.0
    stake_uc: int = 0
    capability: float = 0.0
    nvlink_pct: int = NVLINK_NONE_PCT
    latency_ms: int = 0
    region: str = ""
    domain: str = ""
    labels: frozenset[str] = frozenset()
    kinds: frozenset[str] = frozenset()
    cached: frozenset[str] = frozenset()
    attested: bool = False
    newcomer: bool = False
    available_until: Instant | None = None

    @property
    def device_model(self) -> str:
        """The model of its devices; empty for a node without devices, or with devices of several models."""
        models = {device.device_model for device in self.devices}
        return models.pop() if len(models) == 1 else ""

    def price_by(self, basis: PriceBasis) -> float:
        """What a task of this basis costs here, up to a factor that is the same at every node."""
        if basis is PriceBasis.DEVICE_HOUR:
            return self.price_uc
        return self.work_price_uc if basis is PriceBasis.DEVICE_WORK else self.core_price_uc


@dataclass(frozen=True)
class MedianPrices:
    """The median prices with which a node's price is compared: for tasks by the device-hour that of the same model,
    else that of all nodes, since the same work is worth the same everywhere."""

    medians_uc: dict[str, float]
    """Of a device-hour, by model."""

    work_uc: float = 0.0
    core_uc: float = 0.0
    basis: PriceBasis = PriceBasis.DEVICE_HOUR

    @classmethod
    def of(cls, candidates: Iterable[Candidate]) -> "MedianPrices":
        every = list(candidates)
        prices: dict[str, list[int]] = {}
        for candidate in every:
            prices.setdefault(candidate.device_model, []).append(candidate.price_uc)
        return cls(
            {model: median(prices_uc) for model, prices_uc in prices.items()},
            median(candidate.work_price_uc for candidate in every) if every else 0.0,
            median(candidate.core_price_uc for candidate in every) if every else 0.0,
        )

    def by(self, basis: PriceBasis) -> "MedianPrices":
        """The same prices, for tasks that are paid on this basis."""
        return replace(self, basis=basis)

    def median_over(self, candidate: Candidate, low: float, high: float) -> float:
        """The median price over the node's own, between two bounds. Nothing is cheaper than free."""
        price_uc, median_uc = candidate.price_by(self.basis), self._median_uc(candidate)
        if price_uc <= 0:
            return high if median_uc > 0 else min(high, max(low, 1.0))
        return min(high, max(low, median_uc / price_uc))

    def _median_uc(self, candidate: Candidate) -> float:
        if self.basis is PriceBasis.DEVICE_HOUR:
            return self.medians_uc.get(candidate.device_model, candidate.price_uc)
        return self.work_uc if self.basis is PriceBasis.DEVICE_WORK else self.core_uc


def fitting_devices(devices: Sequence[CandidateDevice], demand: Demand) -> list[int]:
    """The indexes of devices of the right kind that are free enough."""
    return [
        index
        for index, device in enumerate(devices)
        if device.free_milli >= demand.milli
        and device.memory_mib >= demand.gpu_memory_mib
        and (not demand.device_models or device.device_model in demand.device_models)
    ]


def are_joined(devices: Sequence[CandidateDevice], fitting: Sequence[int], demand: Demand) -> bool:
    """Whether enough of the fitting devices are joined by NVLink, where the demand wants that."""
    if not demand.nvlink or demand.devices < 2:
        return True
    groups = Counter(devices[index].nvlink_group for index in fitting)
    return any(count >= demand.devices for group, count in groups.items() if group)


def choose_devices(devices: Sequence[CandidateDevice], demand: Demand) -> tuple[int, ...]:
    """The devices for a demand that suits: of part of a device, the fullest that will do; of whole ones, those that
    break up the fewest NVLink groups."""
    if not demand.devices:
        return ()
    fitting = fitting_devices(devices, demand)
    if demand.milli < WHOLE_MILLI:
        return (min(fitting, key=lambda index: (devices[index].free_milli, index)),)
    return from_groups(devices, fitting, demand.devices)


def from_groups(devices: Sequence[CandidateDevice], fitting: Sequence[int], count: int) -> tuple[int, ...]:
    """Devices of the smallest group that has enough; else of the largest groups, so that few are needed.

    A device without a group is a group of its own.
    """
    groups: dict[int, list[int]] = {}
    for index in fitting:
        groups.setdefault(devices[index].nvlink_group or -1 - index, []).append(index)
    enough = [group for group in groups.values() if len(group) >= count]
    if enough:
        return tuple(min(enough, key=lambda group: (len(group), group[0]))[:count])
    by_size = sorted(groups.values(), key=lambda group: (-len(group), group[0]))
    return tuple(sorted([index for group in by_size for index in group][:count]))
