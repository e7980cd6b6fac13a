"""The policy `packed`: leave behind as little as possible that no task will use; for mixed, shared and multi-device
work.

A placement costs the value that the rest of the node loses: how much of its free devices will be filled in the end,
given the workload (`workload.fill_table`). Processor and memory count as far as devices need them, so work that needs
much of them goes where they are plentiful.

In addition, scarce devices have prices. Some demands fit few nodes only: those that name models, and those that need
many devices of one node. Free devices of such a group are expensive when the group will need most of them, and cost
nothing when there are plenty; so other demands avoid them just as long as that matters.
"""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.index.columns import Columns
from tidemill.core.placement.policies import Floats, Numbers, Slots
from tidemill.core.placement.workload import UNKNOWN, FillTable, Workload, fill_table
from tidemill.core.settings.tree import Settings

GROUPS_MAX = 24
"""How many groups of choosy demands are considered: those that demand most."""

SCARCITY_WEIGHT = 0.3
"""The cost of using up the last devices of a group, as a part of its size."""

STEEPNESS = 4
"""How late scarcity is felt: when half is needed, the price is a sixteenth."""

Group = tuple[frozenset[str], int]
"""Models, and how many devices of one node; no models means all models."""


@dataclass(frozen=True)
class PackedPolicy:
    """The policy for a certain workload. A workload without devices tells nothing, and counts as unknown."""

    workload: Workload = UNKNOWN

    def knowing(self, workload: Workload) -> "PackedPolicy":
        """The same policy for a recent workload."""
        return replace(self, workload=workload if workload.of_devices else UNKNOWN)

    def begin(self, columns: Columns) -> "PackedScorer":
        return PackedScorer(columns, fill_table(self.workload), _groups(self.workload))


class PackedScorer:
    lasting = True

    def __init__(self, columns: Columns, table: FillTable, groups: dict[Group, float]) -> None:
        self._columns, self._table = columns, table
        self._groups = list(groups)
        self.names = ("waste", *(_named(group) for group in groups))
        self._shares = np.array(list(groups.values()))
        self._sizes = np.array([devices for _, devices in groups], np.int64)
        self._worths = np.zeros(columns.capacity)
        self._open_models = np.zeros((0, len(groups)), np.bool_)
        self._usable = np.zeros((columns.capacity, len(groups)))
        self._usable_sums = np.zeros(len(groups))
        self._free = np.zeros(columns.capacity)
        self._free_sum = 0.0

    def refresh(self, slots: Slots) -> None:
        columns = self._columns
        free = columns.free[slots]
        self._worths[slots] = self._worth(free, columns.cpu[slots], columns.memory[slots])
        sums = free.sum(1)
        self._free_sum += float((sums - self._free[slots]).sum())
        self._free[slots] = sums
        usable = self._open(slots) * self._usable_of(columns.whole[slots].astype(np.int64), sums)
        self._usable_sums += (usable - self._usable[slots]).sum(0)
        self._usable[slots] = usable

    def costs(self, demand: Demand, slots: Slots) -> tuple[Floats, Slots]:
        columns = self._columns
        cpu, memory = columns.cpu[slots] - demand.cpu_milli, columns.memory[slots] - demand.memory_mib
        free = columns.free[slots]
        rows, devices = np.arange(len(slots)), np.full(len(slots), -1, np.intp)
        if 0 < demand.milli < WHOLE_MILLI:
            rows, devices = np.nonzero((free >= demand.milli) & columns.first[slots])
            free, cpu, memory = free[rows], cpu[rows], memory[rows]
            free[np.arange(len(rows)), devices] -= demand.milli
        elif demand.devices:
            whole = free == WHOLE_MILLI
            free[whole & (np.cumsum(whole, 1) <= demand.devices)] = 0
        waste: Floats = self._worths[slots[rows]] - self._worth(free, cpu, memory)
        if len(rows) != len(slots):
            best = _least_of_each(rows, waste, devices)
            waste, devices = waste[best], devices[best]
        terms = np.column_stack((waste, self._uses(demand, slots, devices)))
        return terms, np.where(
            columns.plain[slots], devices, -1
        )  # of devices that differ, the node knows which will do

    def prices(self) -> Floats:
        needed = self._shares * self._free_sum / np.maximum(self._usable_sums, 1.0)
        return np.concatenate(([1.0], SCARCITY_WEIGHT * np.minimum(1.0, needed) ** STEEPNESS))

    def _worth(self, free: Numbers, cpu: Numbers, memory: Numbers) -> Floats:
        """What all devices of each node will be filled with; each has its part of processor and memory."""
        parts = free / np.maximum(free.sum(1), 1)[:, None]
        worths = self._table.expected(free, cpu[:, None] * parts, memory[:, None] * parts)
        if not worths.shape[1]:
            return np.zeros(len(worths))
        return np.cumsum(worths, 1)[:, -1]  # `sum` would round in another way where there are more columns

    def _uses(self, demand: Demand, slots: Slots, devices: Slots) -> Floats:
        """What the demand takes away from each group, in milli."""
        if not demand.devices or not self._groups:
            return np.zeros((len(slots), len(self._groups)))
        columns = self._columns
        before, sums = columns.whole[slots].astype(np.int64), self._free[slots]
        if demand.milli == WHOLE_MILLI:
            after = before - demand.devices
        else:
            after = before - (columns.free[slots, devices] == WHOLE_MILLI)
        lost = self._usable_of(before, sums) - self._usable_of(after, sums - demand.asked_milli)
        uses: Floats = self._open(slots) * lost
        return uses

    def _open(self, slots: Slots) -> NDArray[np.bool_]:
        """Which groups may use the model of each node."""
        names = self._columns.device_models.numbers
        if len(self._open_models) < len(names):
            rows = [[not models or name in models for models, _ in self._groups] for name in names]
            self._open_models = np.array(rows, np.bool_).reshape(len(names), len(self._groups))
        return self._open_models[self._columns.device_model[slots]]

    def _usable_of(self, whole: Numbers, sums: Numbers) -> Floats:
        """What each group can use of nodes with so many whole devices and so much free in all."""
        several = whole[:, None] // self._sizes * self._sizes * WHOLE_MILLI
        return np.where(self._sizes > 1, several, sums[:, None]).astype(float)


def from_settings(_: Settings) -> PackedPolicy:
    return PackedPolicy()


def _groups(workload: Workload) -> dict[Group, float]:
    """The groups that cannot go everywhere, and their share of the workload."""
    milli_by_group: Counter[Group] = Counter()
    for shape in workload.of_devices:
        milli_by_group[shape.device_models, shape.devices] += shape.count * shape.devices * shape.milli
    total = sum(milli_by_group.values())
    choosy = Counter({group: milli for group, milli in milli_by_group.items() if group[0] or group[1] > 1})
    return {group: milli / total for group, milli in choosy.most_common(GROUPS_MAX)}


def _named(group: Group) -> str:
    models, devices = group
    return f"{devices} × {' or '.join(sorted(models)) or 'any model'}"


def _least_of_each(rows: Slots, costs: Floats, devices: Slots) -> Slots:
    """The index of the lowest cost of each row, the lowest device among equals."""
    order = np.lexsort((devices, costs, rows))
    sorted_rows = rows[order]
    firsts = np.ones(len(order), np.bool_)
    firsts[1:] = sorted_rows[1:] != sorted_rows[:-1]
    return order[firsts]
