"""Published policies of others, to compare ours with: random, best fit, and fragmentation gradient descent.

They are fit policies like `packed`, and are not available to jobs. The last is that of Weng et al., "Beware of
Fragmentation" (USENIX ATC 2023): a placement costs the growth of what a random demand could not use of the node, and
scores are whole numbers from 0 to 100.
"""

from dataclasses import dataclass
from random import Random

import numpy as np

from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.index.columns import Columns
from tidemill.core.placement.policies import Floats, Numbers, Slots
from tidemill.core.placement.workload import ShapeCount, Workload

CPU_SCALE_MILLI, GPU_SCALE_MILLI = 128_000, 8 * WHOLE_MILLI
"""The largest machine; the rest of a machine is measured by it."""

_ONE = np.ones(1)


@dataclass(frozen=True)
class RandomFit:
    """Any node, and any device of it."""

    dice: Random

    def begin(self, columns: Columns) -> "_RandomFitting":
        return _RandomFitting(columns, self.dice)


class _RandomFitting:
    names, lasting = ("draw",), False

    def __init__(self, columns: Columns, dice: Random) -> None:
        self._columns, self._dice = columns, dice

    def refresh(self, slots: Slots) -> None:
        """Nothing is remembered."""

    def costs(self, demand: Demand, slots: Slots) -> tuple[Floats, Slots]:
        draws = np.array([self._dice.random() for _ in range(len(slots))])
        devices = np.full(len(slots), -1, np.intp)
        if demand.milli < WHOLE_MILLI:
            best = int(np.argmin(draws))
            fitting = np.flatnonzero(self._columns.free[slots[best]] >= demand.milli)
            devices[best] = self._dice.choice(fitting.tolist())
        return draws[:, None], devices

    def prices(self) -> Floats:
        return _ONE


@dataclass(frozen=True)
class BestFit:
    """The node with the least processor and GPU left, and the fullest device that will do."""

    def begin(self, columns: Columns) -> "_BestFitting":
        return _BestFitting(columns)


class _BestFitting:
    names, lasting = ("left",), True

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def refresh(self, slots: Slots) -> None:
        """Everything needed is in the columns."""

    def costs(self, demand: Demand, slots: Slots) -> tuple[Floats, Slots]:
        columns = self._columns
        cpu = (columns.cpu[slots] - demand.cpu_milli) / CPU_SCALE_MILLI
        gpu = (columns.free[slots].sum(1) - demand.asked_milli) / GPU_SCALE_MILLI
        return (0.5 * cpu + 0.5 * gpu)[:, None], np.full(len(slots), -1, np.intp)

    def prices(self) -> Floats:
        return _ONE


@dataclass(frozen=True)
class GradientDescent:
    """Least growth of fragmentation, for a known workload."""

    workload: Workload

    def begin(self, columns: Columns) -> "_DescentFitting":
        return _DescentFitting(columns, self.workload)


class _DescentFitting:
    names, lasting = ("fragmentation",), True

    def __init__(self, columns: Columns, workload: Workload) -> None:
        self._columns, self._workload = columns, workload
        self._kinds = list({(shape.devices, shape.milli, shape.device_models) for shape in workload.of_devices})
        self._sizes = np.array([devices for devices, _, _ in self._kinds])
        self._millis = np.array([milli for _, milli, _ in self._kinds])
        self._cpus = np.unique([shape.cpu_milli for shape in workload.of_devices])
        self._popularities = self._popularity(workload.of_devices, workload.count)

    def refresh(self, slots: Slots) -> None:
        """Fragmentation is computed when it is needed."""

    def costs(self, demand: Demand, slots: Slots) -> tuple[Floats, Slots]:
        columns = self._columns
        free, cpu = columns.free[slots], columns.cpu[slots]
        before = self._fragments(slots, free, cpu)
        rows, devices = np.arange(len(slots)), np.full(len(slots), -1, np.intp)
        after = free.copy()
        if demand.milli < WHOLE_MILLI:
            rows, devices = np.nonzero((free >= demand.milli) & columns.first[slots])
            after = free[rows]
            after[np.arange(len(rows)), devices] -= demand.milli
        elif demand.devices:
            whole = free == WHOLE_MILLI
            after[whole & (np.cumsum(whole, 1) <= demand.devices)] = 0
        growths = self._fragments(slots[rows], after, cpu[rows] - demand.cpu_milli) - before[rows]
        scores = np.floor(100 / (1 + np.exp(growths / WHOLE_MILLI)))
        order = np.lexsort((devices, -scores, rows))
        best = order[np.unique(rows[order], return_index=True)[1]]
        return -scores[best][:, None], devices[best]

    def prices(self) -> Floats:
        return _ONE

    def _fragments(self, slots: Slots, free: Numbers, cpu: Numbers) -> Floats:
        """What is free and of no use to a demand drawn at random."""
        whole = (free == WHOLE_MILLI).sum(1)[:, None]
        several = np.where(whole >= self._sizes, whole * WHOLE_MILLI, 0)
        parts = np.where(free[:, :, None] >= self._millis, free[:, :, None], 0).sum(1)
        usable = np.where(self._millis == WHOLE_MILLI, several, parts)
        coming = self._popularities[np.searchsorted(self._cpus, cpu, "right")] * self._open(slots)
        fragments: Floats = free.sum(1) - (coming * usable).sum(1)
        return fragments

    def _open(self, slots: Slots) -> Floats:
        """Which kinds of demands may use the model of each node."""
        model = self._columns.device_model[slots]
        columns = [
            np.isin(model, self._columns.device_models.known(models)) if models else np.ones(len(slots), np.bool_)
            for _, _, models in self._kinds
        ]
        return np.column_stack(columns).astype(float)

    def _popularity(self, shapes: tuple[ShapeCount, ...], total: int) -> Floats:
        """For each number of demands' processor needs that are met, the share of demands of each kind."""
        shares = np.zeros((len(self._cpus) + 1, len(self._kinds)))
        for shape in shapes:
            kind = self._kinds.index((shape.devices, shape.milli, shape.device_models))
            shares[int(np.searchsorted(self._cpus, shape.cpu_milli)) + 1, kind] += shape.count / total
        return np.cumsum(shares, 0)
