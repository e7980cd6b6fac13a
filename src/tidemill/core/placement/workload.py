"""What is asked for, as it was observed; and what a device will still be filled with, from that.

`Workload` counts requests by shape. `fill_table` answers: if requests keep coming like this, how much of a device that
has so much left, with so much processor and memory beside it, will be used in the end? A gap that many pairs of
requests can fill is worth nearly its size; a gap for which nothing small enough comes is worth nothing. One step ahead,
as the usual measure of fragmentation looks, both seem alike.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.policies import Floats, Numbers

STEPS = 100
"""Into so many steps a device is divided."""

BUCKETS = 32
"""Into so many the processor and the memory beside a device."""

PATIENCES = (0.4, 0.2, 0.1, 0.05, 0.025)
"""How likely it is that no further request comes in the time of one. Nobody knows; it is averaged over these."""

_QUANTILE, _HEADROOM = 0.98, 1.25
"""The buckets reach a little beyond what all but the greediest requests need; who has more has plenty."""


@dataclass(frozen=True)
class ShapeCount:
    """Requests of one shape, and how many there were of them."""

    count: int
    devices: int
    milli: int
    device_models: frozenset[str]
    cpu_milli: int
    memory_mib: int


@dataclass(frozen=True)
class Workload:
    """All requests of some time."""

    shapes: tuple[ShapeCount, ...]

    @classmethod
    def of(cls, requests: Iterable[Demand]) -> "Workload":
        counts = Counter((one.devices, one.milli, one.device_models, one.cpu_milli, one.memory_mib) for one in requests)
        return cls(tuple(ShapeCount(count, *shape) for shape, count in counts.items()))

    @property
    def of_devices(self) -> tuple[ShapeCount, ...]:
        return tuple(one for one in self.shapes if one.devices)

    @property
    def count(self) -> int:
        return sum(one.count for one in self.shapes)


UNKNOWN = Workload((ShapeCount(1, 1, WHOLE_MILLI, frozenset(), 0, 0),))
"""Before anything is known: whole devices, one at a time."""


@dataclass(frozen=True)
class FillTable:
    """`filled[step, cpu bucket, memory bucket]`: the share of a device that will be used, flattened."""

    filled: Floats
    cpu_unit: float
    memory_unit: float

    def expected(self, free: Numbers, cpu: Numbers, memory: Numbers) -> Floats:
        """What devices with so many milli free will be filled with, in milli, between buckets by proportion."""
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


def fill_table(demand: Workload) -> FillTable:
    """Worked out from the smallest gap up: what fits is filled in, and leaves a smaller gap."""
    asked = demand.of_devices
    cpu_unit = _unit([one.cpu_milli / one.devices for one in asked], [one.count for one in asked])
    memory_unit = _unit([one.memory_mib / one.devices for one in asked], [one.count for one in asked])
    items: Counter[tuple[int, int, int]] = Counter()
    for one in asked:
        steps = -(-one.milli * STEPS // WHOLE_MILLI)
        cpu = min(BUCKETS, round(one.cpu_milli / one.devices / cpu_unit))
        memory = min(BUCKETS, round(one.memory_mib / one.devices / memory_unit))
        items[steps, cpu, memory] += one.count * one.devices  # a request for several devices comes to each of them
    side, total = BUCKETS + 1, demand.count
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
    order = np.argsort(needs)
    reached = np.cumsum(np.array(counts, float)[order])
    at = int(np.searchsorted(reached, _QUANTILE * reached[-1]))
    return max(1e-9, needs[int(order[at])] * _HEADROOM / BUCKETS)
