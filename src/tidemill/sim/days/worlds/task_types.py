"""Sorts of tasks: what each asks of a node, how often it is ordered, and how long it takes beside the others.

Ours are made up, from small embeddings to whole machines; others are read from a list of pods. A sort that no node of a
world could ever carry out is not ordered there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.objections import suits
from tidemill.sim.days.worlds.world import World, WorldFault

Mask = NDArray[np.bool_]

THRIFTY_SHARE = 0.25
"""So many orders of a sort come from customers who pay no more than nine of ten providers ask."""

_THRIFTY_QUANTILE = 0.9
_NOW = Instant(0)


@dataclass(frozen=True)
class TaskType:
    """Tasks that ask the same. `lengths` are relative; where there are none, lengths scatter around `work`."""

    name: str
    demand: Demand
    weight: float
    tasks_mean: float = 1.0
    work: float = 1.0
    lengths: tuple[float, ...] = ()


@dataclass(frozen=True)
class TaskTypeFit:
    """A sort in a world: who could ever carry it out, how fast they are, and the most that one of them asks.

    The mean is harmonic, so that on devices drawn at random tasks take as long as was meant.
    """

    task_type: TaskType
    able: Mask
    speed_mean: float
    speed_least: float
    price_max_uc: int


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


def fit_task_types(world: World, sorts: Sequence[TaskType], policy: str) -> list[TaskTypeFit]:
    """Each sort that somebody could carry out, and some of its orders under a limit of price."""
    candidates = [member.seller.candidate for member in world.members]
    prices = np.array([one.price_uc for one in candidates])
    made = []
    for sort in sorts:
        able = _able(candidates, sort.demand)
        if able.any():
            made += _divided(world, replace(sort, demand=_named(sort.demand, policy, candidates)), able, prices)
    if not made:
        raise WorldFault("No node of this world can carry out anything that is ordered: look at kinds and memory.")
    return made


def _divided(world: World, sort: TaskType, able: Mask, prices: NDArray[np.int64]) -> list[TaskTypeFit]:
    """Without a limit, and with one where prices differ."""
    limit_uc, most_uc = int(np.quantile(prices[able], _THRIFTY_QUANTILE)), int(prices[able].max())
    if limit_uc == most_uc:
        return [_field(world, sort, able, most_uc)]
    free = replace(sort, weight=sort.weight * (1 - THRIFTY_SHARE))
    thrifty = replace(
        sort,
        name=f"{sort.name}, thrifty",
        weight=sort.weight * THRIFTY_SHARE,
        demand=_within(world, sort.demand, able, limit_uc),
    )
    cheap = able & (prices <= limit_uc) & _of_models(world, thrifty.demand)
    return [_field(world, free, able, most_uc), _field(world, thrifty, cheap, limit_uc)]


def _within(world: World, request: Demand, able: Mask, limit_uc: int) -> Demand:
    """Under a limit of price, naming the models of which at least half the nodes keep to it: others are hopeless."""
    market = MedianPrices.of(world.members[number].seller.candidate for number in np.flatnonzero(able).tolist())
    models = frozenset(model for model in request.device_models if market.medians_uc.get(model, limit_uc) <= limit_uc)
    return replace(request, price_max_uc=limit_uc, device_models=models or request.device_models)


def _of_models(world: World, request: Demand) -> Mask:
    models = request.device_models
    return np.array(
        [
            not models or any(one.device_model in models for one in member.seller.candidate.devices)
            for member in world.members
        ]
    )


def _named(request: Demand, policy: str, candidates: Sequence[Candidate]) -> Demand:
    """A request that asks for memory names the models that have it, so that it is placed quickly."""
    if not request.devices or request.device_models:
        return replace(request, policy=policy)
    enough = {
        one.device_model for node in candidates for one in node.devices if one.memory_mib >= request.gpu_memory_mib
    }
    return replace(request, device_models=frozenset(enough), policy=policy)


def _able(candidates: Sequence[Candidate], request: Demand) -> Mask:
    """Whose machine is large enough when it is idle. Machines that are alike are asked once."""
    known: dict[tuple[object, ...], bool] = {}
    found = np.zeros(len(candidates), np.bool_)
    for number, one in enumerate(candidates):
        alike = (one.devices, one.cpu_milli, one.memory_mib, one.disk_mib, one.kinds)
        if alike not in known:
            known[alike] = suits(PoolNode(0, one, 0), request, _NOW)
        found[number] = known[alike]
    return found


def _field(world: World, sort: TaskType, able: Mask, price_max_uc: int) -> TaskTypeFit:
    sellers = [world.members[number].seller for number in np.flatnonzero(able).tolist()]
    speeds = [max(1.0, one.device_ops_per_s if sort.demand.devices else one.cpu_ops_per_s) for one in sellers]
    weights = [max(1, len(one.candidate.devices)) for one in sellers]
    mean = sum(weights) / sum(weight / speed for weight, speed in zip(weights, speeds, strict=True))
    return TaskTypeFit(sort, able, mean, min(speeds), price_max_uc)
