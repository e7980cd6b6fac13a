"""The policy `packed`: least is left behind that nobody will use; for mixed, shared and multi-device work.

A placement costs what the rest of the node is worth less after it: how much of its free devices will be filled in the
end, given what is asked for (`demand.fill_table`). Processor and memory count as far as devices need them, so work that
needs much of them goes where they are plentiful.

To that come prices for what is scarce. Some requests can go to few nodes only: those that name models, and those that
need many devices of one node. What is free for such a group is dear when the group will need most of it, and costs
nothing when there is plenty; so others keep off it just as long as that matters.
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
"""So many groups of choosy requests are looked after, those that ask for most."""

SCARCITY_WEIGHT = 0.3
"""What using up the last that a group can use costs, as a part of its size."""

STEEPNESS = 4
"""How late scarcity is felt: when half is needed, the price is a sixteenth."""

Group = tuple[frozenset[str], int]
"""Models, and how many devices of one node; no models are all models."""


@dataclass(frozen=True)
class PackedPolicy:
    """The policy for a certain demand. A demand without devices tells nothing, and is as good as an unknown one."""

    workload: Workload = UNKNOWN

    def knowing(self, demand: Workload) -> "PackedPolicy":
        """The same, for what was asked for lately."""
        return replace(self, workload=demand if demand.of_devices else UNKNOWN)

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

    def costs(self, request: Demand, slots: Slots) -> tuple[Floats, Slots]:
        columns = self._columns
        cpu, memory = columns.cpu[slots] - request.cpu_milli, columns.memory[slots] - request.memory_mib
        free = columns.free[slots]
        rows, devices = np.arange(len(slots)), np.full(len(slots), -1, np.intp)
        if 0 < request.milli < WHOLE_MILLI:
            rows, devices = np.nonzero((free >= request.milli) & columns.first[slots])
            free, cpu, memory = free[rows], cpu[rows], memory[rows]
            free[np.arange(len(rows)), devices] -= request.milli
        elif request.devices:
            whole = free == WHOLE_MILLI
            free[whole & (np.cumsum(whole, 1) <= request.devices)] = 0
        waste: Floats = self._worths[slots[rows]] - self._worth(free, cpu, memory)
        if len(rows) != len(slots):
            best = _least_of_each(rows, waste, devices)
            waste, devices = waste[best], devices[best]
        terms = np.column_stack((waste, self._uses(request, slots, devices)))
        return terms, np.where(
            columns.plain[slots], devices, -1
        )  # of devices that differ, the node knows which will do

    def prices(self) -> Floats:
        needed = self._shares * self._free_sum / np.maximum(self._usable_sums, 1.0)
        return np.concatenate(([1.0], SCARCITY_WEIGHT * np.minimum(1.0, needed) ** STEEPNESS))

    def _worth(self, free: Numbers, cpu: Numbers, memory: Numbers) -> Floats:
        """What all devices of each node will be filled with; each has its part of processor and memory."""
        parts = free / np.maximum(free.sum(1), 1)[:, None]
        worth: Floats = self._table.expected(free, cpu[:, None] * parts, memory[:, None] * parts).sum(1)
        return worth

    def _uses(self, request: Demand, slots: Slots, devices: Slots) -> Floats:
        """What the request takes away from each group, in milli."""
        if not request.devices or not self._groups:
            return np.zeros((len(slots), len(self._groups)))
        columns = self._columns
        before, sums = columns.whole[slots].astype(np.int64), self._free[slots]
        if request.milli == WHOLE_MILLI:
            after = before - request.devices
        else:
            after = before - (columns.free[slots, devices] == WHOLE_MILLI)
        gone = self._usable_of(before, sums) - self._usable_of(after, sums - request.asked_milli)
        uses: Floats = self._open(slots) * gone
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


def _groups(demand: Workload) -> dict[Group, float]:
    """The groups that cannot go everywhere, and the share of all that is asked for which is theirs."""
    asked: Counter[Group] = Counter()
    for one in demand.of_devices:
        asked[one.device_models, one.devices] += one.count * one.devices * one.milli
    total = sum(asked.values())
    choosy = Counter({group: milli for group, milli in asked.items() if group[0] or group[1] > 1})
    return {group: milli / total for group, milli in choosy.most_common(GROUPS_MAX)}


def _named(group: Group) -> str:
    models, devices = group
    return f"{devices} × {' or '.join(sorted(models)) or 'any model'}"


def _least_of_each(rows: Slots, costs: Floats, devices: Slots) -> Slots:
    """The place of the lowest cost of each row, the lowest device among equals."""
    order = np.lexsort((devices, costs, rows))
    sorted_rows = rows[order]
    firsts = np.ones(len(order), np.bool_)
    firsts[1:] = sorted_rows[1:] != sorted_rows[:-1]
    return order[firsts]
