"""The pool of candidates as columns: one array for each quantity, so that a request is held against all nodes at once.

This is the exact path: `room` and `allowed` say of every slot what `suits` says of one node. Only what a request asks
for is compared. Nodes that mix models are rare; they are asked one by one.
"""

from collections.abc import Collection, Sequence
from typing import Generic, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.placement.node import PoolNode
from tidemill.core.placement.policies import Numbers, Slots
from tidemill.core.placement.request import WHOLE_MILLI, Request

T = TypeVar("T")

Mask = NDArray[np.bool_]

_FOR_EVER = np.iinfo(np.int64).max
_INT32_MAX = np.iinfo(np.int32).max
_EVERYWHERE = slice(None)
_FEW_MODELS = 4


class Columns:
    """What is known of the node in each slot. Slots without a node are not alive, and have room for nothing."""

    def __init__(self, capacity: int, width: int) -> None:
        self.capacity, self.width = capacity, width
        self.nodes: list[PoolNode | None] = [None] * capacity
        self.alive = np.zeros(capacity, np.bool_)
        self.plain = np.zeros(capacity, np.bool_)
        self.model, self.kinds, self.labels, self.owner, self.region, self.domain = (
            np.full(capacity, -1, np.int32) for _ in range(6)
        )
        self._changing = np.zeros((6, capacity), np.int32)
        self.whole, self.largest, self.joined, self.cpu, self.memory, self.disk = self._changing
        """Rows of one array, so that what has changed is written at once."""
        self.device_memory = np.zeros(capacity, np.int32)
        self.reputation = np.zeros(capacity, np.int16)
        self.price, self.until, self.version = (np.zeros(capacity, np.int64) for _ in range(3))
        self.attested, self.newcomer = np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_)
        self.free = np.zeros((capacity, width), np.int32)
        self.first = np.zeros((capacity, width), np.bool_)
        """Whether a device is the first of its node that has so much free: the others need not be tried."""
        self.models, self.kind_sets, self.label_sets = _Names[str](), _Names[frozenset[str]](), _Names[frozenset[str]]()
        self.owners, self.regions, self.domains = _Names[UUID](), _Names[str](), _Names[str]()
        self._mixed: set[int] = set()
        self._windowed: set[int] = set()

    def put(self, node: PoolNode) -> None:
        """A node comes into its slot, or comes anew with other facts."""
        slot = node.slot
        self.nodes[slot] = node
        self.alive[slot], self.plain[slot] = True, node.is_plain
        (self._mixed.discard if node.is_plain else self._mixed.add)(slot)
        (self._windowed.discard if node.until is None else self._windowed.add)(slot)
        self.model[slot] = self.models.number(node.model)
        self.kinds[slot], self.labels[slot] = self.kind_sets.number(node.kinds), self.label_sets.number(node.labels)
        self.owner[slot] = self.owners.number(node.owner_id)
        self.region[slot], self.domain[slot] = self.regions.number(node.region), self.domains.number(node.domain)
        self.device_memory[slot] = min(node.device_memory_mib, _INT32_MAX)
        self.reputation[slot], self.price[slot] = node.reputation, node.price_uc
        self.until[slot] = _FOR_EVER if node.until is None else node.until
        self.attested[slot], self.newcomer[slot] = node.attested, node.newcomer
        self.change([node])

    def change(self, nodes: Sequence[PoolNode]) -> None:
        """What is free of these nodes has changed."""
        slots = [node.slot for node in nodes]
        width = self.width
        self.free[slots] = [node.free + [0] * (width - len(node.free)) for node in nodes]
        self.first[slots] = [_firsts(node.free, width) for node in nodes]
        self.version[slots] = [node.version for node in nodes]
        self._changing[:, slots] = np.array([_quantities(node) for node in nodes]).T

    def drop(self, slot: int) -> None:
        self.nodes[slot] = None
        self.alive[slot] = False
        self.whole[slot] = self.largest[slot] = 0
        self.free[slot] = 0
        self._mixed.discard(slot)
        self._windowed.discard(slot)

    def room(self, request: Request, slots: Slots | None = None) -> Mask:
        """Where enough is free, of all slots or of these."""
        at: Slots | slice = _EVERYWHERE if slots is None else slots
        mask: Mask = self.alive[at] & self.plain[at]
        if request.devices and request.milli == WHOLE_MILLI:
            mask &= self.whole[at] >= request.devices
        elif request.devices:
            mask &= self.largest[at] >= request.milli
        if request.devices and request.models:
            mask &= _is_one_of(self.model[at], self.models.known(request.models))
        if request.devices and request.gpu_memory_mib:
            mask &= self.device_memory[at] >= request.gpu_memory_mib
        if request.nvlink and request.devices > 1:
            mask &= self.joined[at] >= request.devices
        for column, least in (
            (self.cpu, request.cpu_milli),
            (self.memory, request.memory_mib),
            (self.disk, request.disk_mib),
        ):
            if least:
                mask &= column[at] >= least
        self._ask_mixed(request, slots, mask)
        return mask

    def allowed(self, request: Request, now: Instant, excluded: list[int]) -> Mask:
        """Where the request may go, room or no room. `excluded` are the slots of excluded nodes."""
        mask: Mask = self.alive.copy()
        self._restrict(mask, self.kinds, self.kind_sets, request.kind)
        if request.price_max_uc is not None:
            mask &= self.price <= request.price_max_uc
        if request.reputation_floor:
            mask &= self.reputation >= request.reputation_floor
        if request.attested:
            mask &= self.attested
        if request.regions:
            mask &= _is_one_of(self.region, self.regions.known(request.regions))
        if request.domains:
            mask &= _is_one_of(self.domain, self.domains.known(request.domains))
        for label in request.labels:
            self._restrict(mask, self.labels, self.label_sets, label)
        barred = request.excluded_owners | ({request.customer_id} if request.customer_id else set())
        for number in self.owners.known(barred):
            mask &= self.owner != number
        if self._windowed:
            mask &= self.until >= now + request.duration_us
        if excluded:
            mask[excluded] = False
        return mask

    def _restrict(self, mask: Mask, column: Numbers, names: "_Names[frozenset[str]]", wanted: str) -> None:
        """To where the set that a number stands for contains what is wanted; mostly all sets do."""
        if lacking := [number for held, number in names.numbers.items() if wanted not in held]:
            mask &= ~_is_one_of(column, lacking)

    def _ask_mixed(self, request: Request, slots: Slots | None, mask: Mask) -> None:
        if not self._mixed:
            return
        places = enumerate(slots.tolist()) if slots is not None else ((slot, slot) for slot in self._mixed)
        for place, slot in places:
            node = self.nodes[slot]
            if slot in self._mixed and node is not None:
                mask[place] = node.holds(request)


class _Names(Generic[T]):
    """Numbers for values of which there are few, so that a column of them is small."""

    def __init__(self) -> None:
        self.numbers: dict[T, int] = {}

    def number(self, value: T) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def known(self, values: Collection[T]) -> list[int]:
        return [self.numbers[value] for value in values if value in self.numbers]


def _is_one_of(column: Numbers, numbers: Sequence[int]) -> Mask:
    if len(numbers) > _FEW_MODELS:
        return np.isin(column, numbers)
    if not numbers:
        return np.zeros(len(column), np.bool_)
    mask: Mask = column == numbers[0]
    for number in numbers[1:]:
        mask |= column == number
    return mask


def _quantities(node: PoolNode) -> tuple[int, ...]:
    """In the order of the rows."""
    return (
        node.whole,
        max(node.free, default=0),
        _largest_group(node) if node.is_grouped else 0,
        min(node.cpu_milli, _INT32_MAX),
        min(node.memory_mib, _INT32_MAX),
        min(node.disk_mib, _INT32_MAX),
    )


def _firsts(free: list[int], width: int) -> list[bool]:
    return [left not in free[:index] for index, left in enumerate(free)] + [False] * (width - len(free))


def _largest_group(node: PoolNode) -> int:
    counts: dict[int, int] = {}
    for device, left in zip(node.candidate.devices, node.free, strict=True):
        if device.nvlink_group and left == WHOLE_MILLI:
            counts[device.nvlink_group] = counts.get(device.nvlink_group, 0) + 1
    return max(counts.values(), default=0)
