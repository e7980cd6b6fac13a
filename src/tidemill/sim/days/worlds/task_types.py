"""Task types: what each demands of a node, how often it is ordered, and how long it takes beside the others.

Ours are made up, from small embeddings to entire machines; others are read from a list of pods. A type that no node of
a world could ever carry out is not ordered there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.rule import objections
from tidemill.core.placement.supply import share_uc
from tidemill.core.placement.task_demand import price_basis
from tidemill.sim.days.worlds.world import World, WorldFault

Mask = NDArray[np.bool_]

THRIFTY_SHARE = 0.25
"""The share of a type's orders from customers who pay no more than nine of ten providers ask."""

_THRIFTY_QUANTILE = 0.9
_NOW = Instant(0)


@dataclass(frozen=True)
class TaskType:
    """Tasks with the same demand. `lengths` are relative; where there are none, lengths scatter around `work`."""

    name: str
    demand: Demand
    weight: float
    tasks_mean: float = 1.0
    work: float = 1.0
    lengths: tuple[float, ...] = ()


@dataclass(frozen=True)
class TaskTypeFit:
    """A task type in a world: which nodes could ever carry it out, and how fast they are.

    The mean is harmonic, so that on devices drawn at random tasks take as long as intended.
    """

    task_type: TaskType
    able: Mask
    speed_mean: float
    reference_least: float
    """The lowest reference speed by which its work is paid."""

    share_max_uc: int
    """The highest price of an hour of its share of a machine."""

    def needs(self, operations: float) -> Needs:
        return _needs(self.task_type.demand, operations)


_GIB = 1024

OURS: tuple[TaskType, ...] = (
    TaskType(
        "embeddings", Demand("embed", 1, gpu_memory_mib=6 * _GIB, cpu_milli=1000, memory_mib=4 * _GIB), 30, 20, 0.5
    ),
    TaskType("pictures", Demand("render", 1, gpu_memory_mib=10 * _GIB, cpu_milli=2000, memory_mib=8 * _GIB), 20, 12),
    TaskType(
        "products", Demand("matmul", 1, gpu_memory_mib=22 * _GIB, cpu_milli=1000, memory_mib=8 * _GIB), 20, 8, 1.5
    ),
    TaskType(
        "pairs", Demand("container", 2, gpu_memory_mib=10 * _GIB, cpu_milli=4000, memory_mib=16 * _GIB), 10, 3, 1.5
    ),
    TaskType(
        "fours", Demand("container", 4, gpu_memory_mib=14 * _GIB, cpu_milli=8000, memory_mib=32 * _GIB), 5, 2, 2.0
    ),
    TaskType("machines", Demand("container", 8, gpu_memory_mib=40 * _GIB, cpu_milli=8000, memory_mib=_GIB), 2, 1, 3.0),
    TaskType("scripts", Demand("script", 0, cpu_milli=1000, memory_mib=2 * _GIB), 5, 15),
)


def fit_task_types(world: World, task_types: Sequence[TaskType], policy: str) -> list[TaskTypeFit]:
    """Each task type that some node could carry out, with some of its orders under a price limit."""
    candidates = [member.seller.candidate for member in world.members]
    prices = np.array([candidate.price_uc for candidate in candidates])
    fits = []
    for task_type in task_types:
        able = _able(candidates, task_type.demand)
        if able.any():
            fits += _divided(
                world, replace(task_type, demand=_named(task_type.demand, policy, candidates)), able, prices
            )
    if not fits:
        raise WorldFault("No node of this world can carry out anything that is ordered: look at kinds and memory.")
    return fits


def _divided(world: World, task_type: TaskType, able: Mask, prices: NDArray[np.int64]) -> list[TaskTypeFit]:
    """Without a limit, and with one where prices differ."""
    limit_uc, most_uc = int(np.quantile(prices[able], _THRIFTY_QUANTILE)), int(prices[able].max())
    if limit_uc == most_uc:
        return [_field(world, task_type, able)]
    free = replace(task_type, weight=task_type.weight * (1 - THRIFTY_SHARE))
    thrifty = replace(
        task_type,
        name=f"{task_type.name}, thrifty",
        weight=task_type.weight * THRIFTY_SHARE,
        demand=_within(world, task_type.demand, able, limit_uc),
    )
    cheap = able & (prices <= limit_uc) & _of_models(world, thrifty.demand)
    return [_field(world, free, able), _field(world, thrifty, cheap)]


def _within(world: World, demand: Demand, able: Mask, limit_uc: int) -> Demand:
    """The demand under a price limit, for device models of which at least half the nodes keep to the limit."""
    medians = MedianPrices.of(world.members[number].seller.candidate for number in np.flatnonzero(able).tolist())
    models = frozenset(model for model in demand.device_models if medians.medians_uc.get(model, limit_uc) <= limit_uc)
    return replace(demand, price_max_uc=limit_uc, device_models=models or demand.device_models)


def _of_models(world: World, demand: Demand) -> Mask:
    models = demand.device_models
    return np.array(
        [
            not models or any(device.device_model in models for device in member.seller.candidate.devices)
            for member in world.members
        ]
    )


def _named(demand: Demand, policy: str, candidates: Sequence[Candidate]) -> Demand:
    """A demand for memory names the models that have it, so that it is placed quickly."""
    demand = replace(demand, policy=policy, price_basis=price_basis(_needs(demand, 0.0)))
    if not demand.devices or demand.device_models:
        return demand
    enough = {
        device.device_model
        for node in candidates
        for device in node.devices
        if device.memory_mib >= demand.gpu_memory_mib
    }
    return replace(demand, device_models=frozenset(enough))


def _able(candidates: Sequence[Candidate], demand: Demand) -> Mask:
    """The nodes whose idle machine is large enough. Machines that are alike are checked once."""
    by_machine: dict[tuple[object, ...], bool] = {}
    able = np.zeros(len(candidates), np.bool_)
    for number, candidate in enumerate(candidates):
        alike = (candidate.devices, candidate.cpu_milli, candidate.memory_mib, candidate.disk_mib, candidate.kinds)
        if alike not in by_machine:
            by_machine[alike] = not any(objections(candidate, demand, _NOW))
        able[number] = by_machine[alike]
    return able


def _field(world: World, task_type: TaskType, able: Mask) -> TaskTypeFit:
    sellers = [world.members[number].seller for number in np.flatnonzero(able).tolist()]
    speeds = [
        max(1.0, seller.device_ops_per_s if task_type.demand.devices else seller.core_ops_per_s) for seller in sellers
    ]
    weights = [max(1, len(seller.candidate.devices)) for seller in sellers]
    mean = sum(weights) / sum(weight / speed for weight, speed in zip(weights, speeds, strict=True))
    needs = _needs(task_type.demand, 0.0)
    shares_uc = {
        share_uc(price_uc, size, needs) for price_uc, size in {(s.candidate.price_uc, s.size) for s in sellers}
    }
    return TaskTypeFit(task_type, able, mean, min(seller.reference_ops_per_s for seller in sellers), max(shares_uc))


def _needs(demand: Demand, operations: float) -> Needs:
    return Needs(demand.memory_mib, 0, operations, demand.devices, cores=max(1, demand.cpu_milli // 1_000))
