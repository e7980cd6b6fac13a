"""A node inside the pool of candidates: what is free of it now, and which of its devices a demand gets.

The facts of a node are fixed; its free devices, processor, memory and disk change with every placement and release.
Each change gives the node a new version, which marks everything remembered of it as stale.

`suits` is true exactly if the rule has no objection. What few demands ask for is checked only where it is asked for.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, are_joined, from_groups
from tidemill.core.placement.demand import WHOLE_MILLI, Demand, QuickDemand

_ONE = [(index,) for index in range(64)]
_EVERY = [tuple(range(count)) for count in range(17)]
"""What most placements get: one device, or all of a node. A hundred thousand of them share these tuples
(1.02 ×)."""

_IDLE = [(WHOLE_MILLI,) * count for count in range(17)]
_BUSY = [(0,) * count for count in range(17)]
"""What is free of most nodes: everything, or nothing. They share these tuples, which stay in the cache (1.06 ×)."""


class PoolNode:
    """One candidate in its slot."""

    __slots__ = (
        "came_load", "candidate", "cpu_milli", "cpu_total", "device_memory_mib", "device_model", "disk_mib",
        "free", "full_milli", "home", "is_divided", "is_even", "is_grouped", "is_noted", "is_plain", "is_usual",
        "kinds", "left_then", "left_version", "memory_mib", "newcomer", "node_id", "owner_id", "owner_number",
        "price_uc", "reputation", "slot", "tenants", "until", "version", "whole",
    )  # fmt: skip

    slot: int
    """Its place in the columns."""
    version: int
    """The number of its last change."""
    candidate: Candidate
    """The node as it came. What follows without a line of its own is copied from there."""
    cpu_milli: int
    memory_mib: int
    disk_mib: int
    """What is free now of the machine."""
    free: tuple[int, ...]
    """What is free of each device. It is replaced as a whole, since most nodes share it with others."""
    whole: int
    """How many devices are wholly free."""
    tenants: int
    """How many placements have something of it."""
    cpu_total: int
    """The processor that was free when it came: all of it, for its load."""
    full_milli: int
    """What all devices have, busy or not."""
    came_load: float
    """The busy share at first, and again when all tenants have gone."""
    device_model: str
    """Empty where it has no devices, or devices of several models."""
    device_memory_mib: int
    """The memory of the largest device."""
    is_plain: bool
    """Whether all devices are alike, so that counting the free ones is enough."""
    is_usual: bool
    """Whether it is plain and has no closing time, so that enough whole devices suffice for a usual demand."""
    is_grouped: bool
    """Whether some devices are joined by NVLink."""
    is_divided: bool
    """Whether not all devices are in one group."""
    is_even: bool
    """Whether its whole devices are interchangeable."""
    home: object
    """The token by which its pool recognises it; a reference to the pool would keep the pool alive."""
    is_noted: bool
    """Whether the pool has noted that the columns are behind it."""
    left_then: Candidate
    left_version: int
    """What was left of it when that was last asked, and its version then."""

    def __init__(self, slot: int, candidate: Candidate, version: int) -> None:
        self.slot, self.version, self.candidate = slot, version, candidate
        self.left_then, self.left_version = candidate, version
        self.home, self.is_noted, self.tenants = None, False, 0
        self.node_id, self.owner_id, self.owner_number = candidate.node_id, candidate.owner_id, candidate.owner_id.int
        self.price_uc, self.reputation, self.kinds = candidate.price_uc, candidate.reputation, candidate.kinds
        self.newcomer, self.until = candidate.newcomer, candidate.available_until
        self.cpu_milli, self.memory_mib, self.disk_mib = candidate.cpu_milli, candidate.memory_mib, candidate.disk_mib
        self.cpu_total = max(1, candidate.cpu_milli)
        self.device_model = candidate.device_model
        memories = {device.memory_mib for device in candidate.devices}
        self.device_memory_mib = max(memories, default=0)
        groups = {device.nvlink_group for device in candidate.devices}
        self.is_grouped, self.is_divided = any(groups), len(groups) > 1
        self.is_plain = (bool(self.device_model) and len(memories) == 1) or not candidate.devices
        self.is_usual = self.is_plain and self.until is None
        self.is_even = self.is_plain and not self.is_divided
        self.free = tuple(device.free_milli for device in candidate.devices)
        if len(self.free) < len(_IDLE) and self.free == _IDLE[len(self.free)]:
            self.free = _IDLE[len(self.free)]
        self.whole = self.free.count(WHOLE_MILLI)
        self.full_milli = WHOLE_MILLI * len(self.free)
        self.came_load = self.load

    @property
    def load(self) -> float:
        """The busy share of its devices or of its processor, whichever is more."""
        of_devices = (self.full_milli - sum(self.free)) / self.full_milli if self.full_milli else 0.0
        of_processor = 1.0 - self.cpu_milli / self.cpu_total
        return of_devices if of_devices > of_processor else of_processor

    @property
    def left(self) -> Candidate:
        """The candidate with what is free of it now, as the rule sees it. It is made once after each change, since
        waiting tasks ask the same nodes one after another: for 2,000 busy nodes 2 ms instead of 14."""
        if self.left_version != self.version:
            devices = zip(self.candidate.devices, self.free, strict=True)
            self.left_then = replace(
                self.candidate,
                devices=tuple(replace(device, free_milli=free_milli) for device, free_milli in devices),
                cpu_milli=self.cpu_milli,
                memory_mib=self.memory_mib,
                disk_mib=self.disk_mib,
            )
            self.left_version = self.version
        return self.left_then

    def can_take(self, demand: Demand) -> bool:
        """Whether enough is free, whoever asks."""
        return (
            self.cpu_milli >= demand.cpu_milli
            and self.memory_mib >= demand.memory_mib
            and self.disk_mib >= demand.disk_mib
            and self.free_for(demand) >= demand.devices
            and self.joined_for(demand)
        )

    def has_whole(self, demand: Demand) -> bool:
        """Whether a plain node has enough whole devices, of the right model."""
        return self.whole >= demand.devices and (
            not demand.devices or not demand.device_models or self.device_model in demand.device_models
        )

    def free_for(self, demand: Demand) -> int:
        """How many of its devices are of the right kind, and free enough."""
        return len(self._fitting(demand))

    def joined_for(self, demand: Demand) -> bool:
        """Whether enough of them are joined by NVLink, where the demand wants that."""
        if not demand.nvlink or demand.devices < 2:
            return True
        return are_joined(self.candidate.devices, self._fitting(demand), demand)

    def take(self, demand: Demand, device: int = -1) -> tuple[int, ...]:
        """Take what the demand needs and return which devices. The demand must suit. A caller that knows which device
        is best for a part of one names it."""
        self.tenants += 1
        self.cpu_milli -= demand.cpu_milli
        self.memory_mib -= demand.memory_mib
        if demand.disk_mib:
            self.disk_mib -= demand.disk_mib
        free, count = self.free, demand.devices
        if self.is_even and demand.milli == WHOLE_MILLI and count:
            if count < len(_EVERY) and free is _IDLE[count]:
                self.free, self.whole = _BUSY[count], 0
                return _EVERY[count]
            if count == 1:
                index = free.index(WHOLE_MILLI)
                self.free = (*free[:index], 0, *free[index + 1 :])
                self.whole -= 1
                return _ONE[index] if index < len(_ONE) else (index,)
        devices = (device,) if device >= 0 else self._devices_for(demand)
        if not devices:
            return devices
        free_milli = list(self.free)
        for index in devices:
            before = free_milli[index]
            assert before >= demand.milli, "a device has been given twice"
            free_milli[index] = before - demand.milli
            if before == WHOLE_MILLI:
                self.whole -= 1
        self.free = tuple(free_milli)
        return devices

    def give_back(self, demand: Demand, devices: Sequence[int]) -> None:
        """Free what the demand had."""
        self.tenants -= 1
        self.cpu_milli += demand.cpu_milli
        self.memory_mib += demand.memory_mib
        if demand.disk_mib:
            self.disk_mib += demand.disk_mib
        count = demand.devices
        if 0 < count < len(_BUSY) and self.free is _BUSY[count] and demand.milli == WHOLE_MILLI:
            self.free, self.whole = _IDLE[count], count
            return
        if not count:
            return
        free_milli, milli = list(self.free), demand.milli
        for index in devices:
            free_milli[index] += milli
            if free_milli[index] >= WHOLE_MILLI:
                assert free_milli[index] == WHOLE_MILLI, "a device has been given back twice"
                self.whole += 1
        all_free = self.whole == len(free_milli) < len(_IDLE)
        self.free = _IDLE[self.whole] if all_free else tuple(free_milli)

    def _devices_for(self, demand: Demand) -> tuple[int, ...]:
        """The devices for the demand: the fullest sufficient one for a part of a device, and for whole ones those that
        break up the fewest NVLink groups."""
        if demand.devices == 0:
            return ()
        fitting = self._fitting(demand)
        assert len(fitting) >= demand.devices
        if demand.milli < WHOLE_MILLI:
            return (min(fitting, key=lambda index: (self.free[index], index)),)
        if len(fitting) == demand.devices or not self.is_divided:
            return tuple(fitting[: demand.devices])
        return from_groups(self.candidate.devices, fitting, demand.devices)

    def _fitting(self, demand: Demand) -> list[int]:
        """The indexes of devices that could be among those it gets."""
        free, milli = self.free, demand.milli
        if self.is_plain:
            if (
                demand.device_models and self.device_model not in demand.device_models
            ) or self.device_memory_mib < demand.gpu_memory_mib:
                return []
            return [index for index, free_milli in enumerate(free) if free_milli >= milli]
        return [
            index
            for index, device in enumerate(self.candidate.devices)
            if free[index] >= milli
            and device.memory_mib >= demand.gpu_memory_mib
            and (not demand.device_models or device.device_model in demand.device_models)
        ]


def suits(node: PoolNode, demand: Demand, now: Instant) -> bool:
    """Whether there is no objection."""
    quick = demand.quick
    if node.is_usual and quick.is_usual:
        return node.has_whole(demand) and suits_besides(node, quick)
    until = node.until
    return (
        node.can_take(demand)
        and suits_besides(node, quick)
        and (until is None or until >= now + demand.duration_us)
        and not (quick.is_choosy and _is_barred(node.candidate, demand))
    )


def suits_besides(node: PoolNode, quick: QuickDemand) -> bool:
    """Whether no usual objection applies to a node that has enough devices of the right models."""
    return (
        node.cpu_milli >= quick.cpu_milli
        and node.memory_mib >= quick.memory_mib
        and quick.kind in node.kinds
        and node.owner_number != quick.customer_number
        and node.price_uc <= quick.limit_uc
        and node.reputation >= quick.reputation_floor
        and node.disk_mib >= quick.disk_mib
        and node.device_memory_mib >= quick.device_memory_mib
    )


def _is_barred(candidate: Candidate, demand: Demand) -> bool:
    return (
        candidate.node_id in demand.excluded_nodes
        or candidate.owner_id in demand.excluded_owners
        or (demand.attested and not candidate.attested)
        or (bool(demand.regions) and candidate.region not in demand.regions)
        or (bool(demand.domains) and candidate.domain not in demand.domains)
        or not demand.labels <= candidate.labels
    )
