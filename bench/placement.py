"""How quickly and how well tasks are placed: on 100,000 nodes of mixed kinds, on one core, in processor time.

Prints one line of JSON. `placements_per_s` counts placements in a pool that is kept four fifths full; for each there is
a release, and requests differ in models, device counts, prices and reputations. `exact_ms` is one placement and its
release by the exact path, which holds the request against every node. `optimal_pct` is what our assignment of 1,000
requests to 5,000 nodes is worth, as a share of the best there is, which scipy finds. `placer_per_s` counts tasks that
the placer of a control process decides, in batches as they come from the queue and on 10,000 nodes: read, put in turn,
priced, placed, noted and released. Turns are short, and the best of
them (the best tenth of exact ones) counts, since nobody has interrupted those; medians are told, too.
"""

import argparse
import json
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from random import Random
from uuid import UUID

import numpy as np
from scipy.optimize import linear_sum_assignment

from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds import matmul
from tidemill.core.jobs.kinds.matmul import Element, Matmul
from tidemill.core.jobs.kinds.needs import limits_of
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.placement.candidate import Candidate, CandidateDevice, MedianPrices
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.joint_placement import place_jointly
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.plan import QueuedTask
from tidemill.core.placement.policies.value import ValuePolicy
from tidemill.core.placement.rule import Reservation
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.task_demand import TaskDemand, demand_of
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.core.settlement.pay import RewardPlan

NODES = 100_000
OWNERS = 20_000
MODELS = {
    "RTX 3060": (12_288, 90_000), "RTX 3090": (24_576, 220_000), "RTX 4090": (24_576, 400_000),
    "RTX A6000": (49_152, 500_000), "L4": (23_034, 450_000), "L40S": (46_068, 900_000), "T4": (15_360, 150_000),
    "V100": (32_768, 300_000), "A100": (81_920, 1_300_000), "H100": (81_559, 2_400_000),
}  # fmt: skip
KIND = "matmul"
NOW = Instant(0)


def nodes(dice: Random, count: int) -> list[Candidate]:
    return [_node(dice, number) for number in range(count)]


def requests(dice: Random, count: int) -> list[Demand]:
    """Mostly one device of one model; some of several models, several devices, a price limit or a trusted owner."""
    names = list(MODELS)
    return [
        Demand(
            KIND,
            devices=dice.choices((1, 2, 4, 8), (80, 10, 6, 4))[0],
            device_models=frozenset(dice.sample(names, dice.choices((1, 2, 3), (70, 20, 10))[0])),
            cpu_milli=dice.choice((1000, 2000, 4000)),
            memory_mib=dice.choice((2048, 8192)),
            price_max_uc=dice.choice((None, None, 3_000_000)),
            reputation_floor=dice.choice((0, 0, 300)),
            customer_id=UUID(int=dice.randrange(OWNERS)),
        )
        for _ in range(count)
    ]


def churn(pool: CandidatePool, asked: Sequence[Demand], running: deque[Reservation[PoolNode]], dice: Random) -> int:
    """Every request is placed, and what began first is released."""
    placed = 0
    for request in asked:
        one = pool.place(request, NOW, dice.random())
        if one is not None:
            placed += 1
            running.append(one)
            pool.release(running.popleft())
    return placed


def quick(pool: CandidatePool, dice: Random, rounds: int) -> dict[str, float]:
    running: deque[Reservation[PoolNode]] = deque()
    for request in requests(dice, NODES):  # until four fifths of the devices are busy, and every lane is open
        if (one := pool.place(request, NOW, dice.random())) is not None:
            running.append(one)
    speeds = []
    for _ in range(20 * rounds):
        asked = requests(dice, 2_000)
        cpu = time.process_time()
        placed = churn(pool, asked, running, dice)
        speeds.append(placed / (time.process_time() - cpu))
    return {
        "placements_per_s": round(max(speeds)),
        "placements_per_s_median": round(float(np.median(speeds))),
        "running": len(running),
    }


def exact(pool: CandidatePool, dice: Random, rounds: int) -> dict[str, float]:
    times = []
    for request in requests(dice, 200 * rounds):
        began = time.perf_counter()
        one = pool.place_exactly(request, NOW)
        if one is not None:
            pool.release(one)
        times.append(time.perf_counter() - began)
    return {
        "exact_ms": round(float(np.quantile(times, 0.1)) * 1000, 4),
        "exact_ms_median": round(float(np.median(times)) * 1000, 4),
    }


def optimal(dice: Random) -> dict[str, float]:
    """Scores as the value policy has them, on nodes that a request may use; unplaced is worth nothing."""
    candidates, policy = nodes(dice, 5_000), ValuePolicy()
    market = MedianPrices.of(candidates)
    base = np.array([sum(policy.terms(one, market).values()) for one in candidates])
    models = np.array([one.device_model for one in candidates])
    rows = []
    for request in requests(dice, 1_000):
        eligible = np.isin(models, sorted(request.device_models))
        near = np.array([dice.random() for _ in candidates]) * 0.1  # what holding its inputs would be worth
        rows.append(np.where(eligible, base + near, -np.inf))
    values = np.array(rows)
    began = time.process_time()
    chosen = place_jointly(values)
    ours_ms = (time.process_time() - began) * 1000
    worth = sum(values[row, column] for row, column in enumerate(chosen.tolist()) if column >= 0)
    finite = np.where(np.isfinite(values), values, 0.0)
    began = time.process_time()
    best = linear_sum_assignment(finite, maximize=True)
    scipy_ms = (time.process_time() - began) * 1000
    return {
        "optimal_pct": round(100 * float(worth / finite[best].sum()), 3),
        "assign_ms": round(ours_ms, 1),
        "scipy_ms": round(scipy_ms, 1),
    }


def placing(dice: Random, rounds: int) -> dict[str, float]:
    """Tasks of fifty jobs and customers, of which each may cost what it was quoted."""
    placer = Placer(partial(CandidatePool, {"value": ValuePolicy()}), RewardPlan(), "value")
    placer.refill(
        Seller(replace(one, devices=(), disk_mib=10**6), False, 0.0, dice.uniform(1e9, 1e11))
        for one in nodes(dice, 10_000)
    )
    speeds = []
    for turn in range(4 * rounds):
        wants = [_want(dice, number) for number in range(2_000)]
        cpu = time.process_time()
        found = placer.decide(wants, NOW).placements
        attempts = [UUID(int=turn * len(wants) + number) for number in range(len(found))]
        for attempt_id, one in zip(attempts, found, strict=True):
            placer.keep(attempt_id, one)
        placer.release(attempts)
        speeds.append(len(found) / (time.process_time() - cpu))
    return {"placer_per_s": round(max(speeds)), "placer_per_s_median": round(float(np.median(speeds)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--rounds", type=int, default=5, help="how often each measurement is taken")
    options = parser.parse_args()
    dice = Random(1)
    candidates = nodes(dice, NODES)
    pool = CandidatePool({"value": ValuePolicy()}, MedianPrices.of(candidates))
    for candidate in candidates:
        pool.put(candidate)
    figures = quick(pool, dice, options.rounds) | exact(pool, dice, options.rounds) | optimal(dice)
    figures |= placing(dice, options.rounds)
    sys.stdout.write(json.dumps(figures) + "\n")


def _node(dice: Random, number: int) -> Candidate:
    model = dice.choice(list(MODELS))
    memory_mib, price_uc = MODELS[model]
    count = dice.choices((1, 2, 4, 8), (70, 15, 8, 7))[0]
    return Candidate(
        UUID(int=number + 1),
        UUID(int=dice.randrange(OWNERS)),
        tuple(CandidateDevice(model, memory_mib, nvlink_group=int(count == 8)) for _ in range(count)),
        cpu_milli=16_000 * count,
        memory_mib=65_536 * count,
        price_uc=int(price_uc * dice.uniform(0.6, 1.7)),
        reputation=dice.randrange(200, 1001),
        success=dice.uniform(0.7, 1.0),
        nvlink_pct=140 if count == 8 else 100,
        latency_ms=dice.randrange(5, 300),
        kinds=frozenset({KIND}),
        newcomer=dice.random() < 0.1,
    )


def _want(dice: Random, number: int) -> QueuedTask:
    job, side = dice.randrange(50), dice.choice((256, 512, 1024))
    parameters = {"m": side, "n": side, "k": side, "element": "int8", "seed": number}
    needs = matmul.needs(Matmul(side, side, side, Element.INT8, 0))
    demand = demand_of(Task(KIND, parameters, limits_of(needs, 60.0, ContainersSettings())))
    assert isinstance(demand, TaskDemand)
    customer_id = UUID(int=OWNERS + job)
    ids = (UUID(int=number), UUID(int=job), customer_id, customer_id)
    return QueuedTask(1, *ids, 0, 0, Instant(job), b"", 10**9, demand.id, demand)


if __name__ == "__main__":
    main()
