"""The observed workload; and what a device will still be filled with, from that.

`Workload` counts demands by shape. `fill_table` answers: if demands keep coming like this, how much of a device that
has so much left, with so much processor and memory beside it, will be used in the end? A gap that many pairs of demands
can fill is worth nearly its size; a gap for which nothing small enough comes is worth nothing. One step ahead, as the
usual measure of fragmentation looks, both seem alike.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.policies import Floats, Numbers

STEPS = 100
"""Into how many steps a device is divided."""

BUCKETS = 32
"""Into how many buckets the processor and the memory beside a device are divided."""

PATIENCES = (0.4, 0.2, 0.1, 0.05, 0.025)
"""How likely it is that no further demand comes in the time of one. Nobody knows; we average over these."""

_QUANTILE, _HEADROOM = 0.98, 1.25
"""The buckets reach a little beyond what all but the greediest demands need; above that, nodes have plenty."""


@dataclass(frozen=True)
class ShapeCount:
    """Demands of one shape, and their number."""

    count: int
    devices: int
    milli: int
    device_models: frozenset[str]
    cpu_milli: int
    memory_mib: int


@dataclass(frozen=True)
class Workload:
    """All demands of some time."""

    shapes: tuple[ShapeCount, ...]

    @classmethod
    def of(cls, demands: Iterable[Demand]) -> "Workload":
        counts = Counter(
            (demand.devices, demand.milli, demand.device_models, demand.cpu_milli, demand.memory_mib)
            for demand in demands
        )
        return cls(tuple(ShapeCount(count, *shape) for shape, count in counts.items()))

    @property
    def of_devices(self) -> tuple[ShapeCount, ...]:
        return tuple(shape for shape in self.shapes if shape.devices)

    @property
    def count(self) -> int:
        return sum(shape.count for shape in self.shapes)


UNKNOWN = Workload((ShapeCount(1, 1, WHOLE_MILLI, frozenset(), 0, 0),))
"""Before anything is known: whole devices, one at a time."""


@dataclass(frozen=True)
class FillTable:
    """`filled[step, cpu bucket, memory bucket]`: the share of a device that will be used, flattened."""

    filled: Floats
    cpu_unit: float
    memory_unit: float

    def expected(self, free: Numbers, cpu: Numbers, memory: Numbers) -> Floats:
        """What devices with so many milli free will be filled with, in milli, interpolated between buckets."""
        side = BUCKETS + 1
        cpu, memory = (
            np.minimum(cpu / self.cpu_unit, BUCKETS - 1e-6),
            np.minimum(memory / self.memory_unit, BUCKETS - 1e-6),
        )
        low_cpu, low_memory = cpu.astype(np.intp), memory.astype(np.intp)
        more_cpu, more_memory = cpu - low_cpu, memory - low_memory
        at = ((free * STEPS // WHOLE_MILLI).astype(np.intp) * side + low_cpu) * side + low_memory
        filled = self.filled
        less = filled[at] * (1 - more_memory) + filled[at + 1] * more_memory
        at += side
        more = filled[at] * (1 - more_memory) + filled[at + 1] * more_memory
        answer: Floats = (less + (more - less) * more_cpu) * WHOLE_MILLI
        return answer


def fill_table(workload: Workload) -> FillTable:
    """Computed from the smallest gap up: a demand that fits is filled in, and leaves a smaller gap."""
    shapes = workload.of_devices
    cpu_unit = _unit([shape.cpu_milli / shape.devices for shape in shapes], [shape.count for shape in shapes])
    memory_unit = _unit([shape.memory_mib / shape.devices for shape in shapes], [shape.count for shape in shapes])
    items: Counter[tuple[int, int, int]] = Counter()
    for shape in shapes:
        steps = -(-shape.milli * STEPS // WHOLE_MILLI)
        cpu = min(BUCKETS, round(shape.cpu_milli / shape.devices / cpu_unit))
        memory = min(BUCKETS, round(shape.memory_mib / shape.devices / memory_unit))
        items[steps, cpu, memory] += shape.count * shape.devices  # a demand for several devices comes to each of them
    side, total = BUCKETS + 1, workload.count
    filled = np.zeros((STEPS + 1, len(PATIENCES), side, side))
    giving_up = np.array(PATIENCES)[:, None, None]
    rates = [(size, cpu, memory, count / total) for (size, cpu, memory), count in sorted(items.items())]
    for step in range(1, STEPS + 1):
        gained, coming = np.zeros((len(PATIENCES), side, side)), np.zeros((side, side))
        for size, cpu, memory, rate in rates:
            if size > step:
                break
            rest = filled[step - size, :, : side - cpu, : side - memory]
            gained[:, cpu:, memory:] += rate * (size / STEPS + rest)
            coming[cpu:, memory:] += rate
        filled[step] = gained / (coming + giving_up)
    return FillTable(np.ascontiguousarray(filled.mean(1)).ravel(), cpu_unit, memory_unit)


def _unit(needs: list[float], counts: list[int]) -> float:
    """The size of one bucket."""
    by_need = np.argsort(needs)
    reached = np.cumsum(np.array(counts, float)[by_need])
    at = int(np.searchsorted(reached, _QUANTILE * reached[-1]))
    return max(1e-9, needs[int(by_need[at])] * _HEADROOM / BUCKETS)
