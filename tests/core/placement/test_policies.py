"""What each policy prefers, and why."""

from pathlib import Path

import numpy as np
import pytest

from tests.worlds.candidates import NOW, ask, node, pool_of, uuid
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.core.placement.candidate import Candidate, CandidateDevice, MedianPrices
from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.policies import FitPolicy, RankPolicy
from tidemill.core.placement.policies.packed import PackedPolicy
from tidemill.core.placement.policies.value import ValuePolicy
from tidemill.core.placement.workload import STEPS, UNKNOWN, Workload, fill_table
from tidemill.core.settings.tree import Settings

PAIR = (CandidateDevice("A100", 81920),) * 2


def chosen(request: Demand, *nodes: Candidate) -> int | None:
    placed = pool_of(*nodes).place(request, NOW)
    return placed.node_id.int if placed else None


@pytest.mark.parametrize(
    ("policy", "better", "worse"),
    [
        ("value", {"reputation": 900}, {"reputation": 800}),
        ("value", {"success": 1.0}, {"success": 0.8}),
        ("value", {"price_uc": 900_000}, {"price_uc": 1_100_000}),
        ("value", {"nvlink_pct": 150}, {"nvlink_pct": 100}),
        ("value", {"latency_ms": 10}, {"latency_ms": 5_000}),
        ("trusted", {"reputation": 301}, {"reputation": 300, "stake_uc": 10**12}),
        ("trusted", {"stake_uc": 10**9}, {"stake_uc": 0}),
        ("trusted", {"reputation": 900, "price_uc": 10**9}, {"reputation": 800, "price_uc": 1}),
        ("fast", {"latency_ms": 5}, {"latency_ms": 200, "price_uc": 1}),
        ("fast", {"capability": 1.0}, {"capability": 0.3}),
        ("fast", {"price_uc": 500_000}, {"price_uc": 2_000_000}),
    ],
)
def test_a_policy_prefers_the_better_node(policy: str, better: dict[str, object], worse: dict[str, object]) -> None:
    assert chosen(ask(policy=policy), node(1, **worse), node(2, **better)) == 2


@pytest.mark.parametrize("policy", ["value", "trusted", "fast"])
def test_a_busy_node_comes_after_an_idle_one(policy: str) -> None:
    busy = node(1, devices=(PAIR[0], CandidateDevice("A100", 81920, free_milli=0)))
    assert chosen(ask(policy=policy), busy, node(2, devices=PAIR)) == 2


def test_the_value_of_a_node_is_what_the_formula_says() -> None:
    one = node(1, reputation=800, success=0.9, price_uc=500_000, nvlink_pct=120, latency_ms=1_000)
    terms = ValuePolicy().terms(one, MedianPrices({"A100": 1_000_000.0}))
    assert terms == pytest.approx({"reputation": 0.32, "success": 0.27, "price": 0.2, "nvlink": 0.08, "link": -0.01})


@pytest.mark.parametrize(("price_uc", "cheapness"), [(1, 0.2), (0, 0.2), (10**9, 0.0), (1_000_000, 0.2 / 3)])
def test_a_price_counts_within_bounds(price_uc: int, cheapness: float) -> None:
    terms = ValuePolicy().terms(node(1, price_uc=price_uc), MedianPrices({"A100": 1_000_000.0}))
    assert terms["price"] == pytest.approx(cheapness)


def test_the_terms_of_an_explanation_sum_to_what_the_node_was_chosen_by() -> None:
    pool = pool_of(node(1, reputation=500), node(2, reputation=900, devices=PAIR))
    scores = {number: one.score for number in (1, 2) if (one := pool.explain(ask(), NOW, uuid(number)))}
    assert scores[2] > scores[1]
    assert pool.explain(ask(), NOW, uuid(3)) is None


def test_all_policies_are_found_by_their_entry_points() -> None:
    policies = placement_policies(Settings(home=Path()))
    assert {"value", "trusted", "fast", "packed"} <= policies.keys()
    assert isinstance(policies["packed"], FitPolicy)
    assert isinstance(policies["fast"], RankPolicy)


def test_a_gap_that_nothing_fills_is_worth_nothing_and_one_that_pairs_fill_is_worth_nearly_its_size() -> None:
    table = fill_table(Workload.of([ask(milli=500)] * 9 + [ask(milli=800)]))
    free, plenty = np.array([[200, 500, 1000]]), np.full((1, 3), 1e9)
    nothing, half, whole = table.expected(free, plenty, plenty)[0]
    assert nothing == 0
    assert 400 < half < 500
    assert whole > half + 300


def test_a_device_without_processor_is_worth_nothing_to_requests_that_need_one() -> None:
    table = fill_table(Workload.of([ask(cpu_milli=8_000)]))
    free, cpu, memory = np.array([[1000, 1000]]), np.array([[9_000, 2_000]]), np.array([[1e9, 1e9]])
    enough, too_little = table.expected(free, cpu, memory)[0]
    assert enough > 800
    assert too_little < 300


@pytest.mark.parametrize("requests", [[], [ask(devices=0, cpu_milli=1000)]])
def test_a_demand_that_tells_nothing_of_devices_is_an_unknown_one(requests: list[Demand]) -> None:
    assert PackedPolicy().knowing(Workload.of(requests)).workload == UNKNOWN
    assert len(fill_table(UNKNOWN).filled) % (STEPS + 1) == 0


def test_packed_fills_the_gap_that_fits_and_keeps_whole_devices_whole() -> None:
    demand = Workload.of([ask(milli=600), ask(milli=400), ask()])
    pool = CandidatePool({"packed": PackedPolicy().knowing(demand)}, MedianPrices({}))
    pool.put(node(1, devices=PAIR))
    pool.put(node(2, devices=(PAIR[0], CandidateDevice("A100", 81920, free_milli=400))))
    placed = pool.place(ask(milli=400, policy="packed"), NOW)
    assert placed
    assert (placed.node_id.int, placed.devices) == (2, (1,))


def test_packed_leaves_a_scarce_model_to_those_who_need_it() -> None:
    rare, plain = CandidateDevice("H100", 81920), CandidateDevice("T4", 16384)
    demand = Workload.of([ask(device_models=frozenset({"H100"})), *[ask()] * 2])
    pool = CandidatePool({"packed": PackedPolicy().knowing(demand)}, MedianPrices({}))
    pool.put(node(1, devices=(rare,)))
    pool.put(node(2, devices=(plain,)))
    placed = pool.place(ask(policy="packed"), NOW)
    assert placed
    assert placed.node_id == uuid(2)


def test_packed_leaves_a_whole_node_to_those_who_need_all_of_it() -> None:
    demand = Workload.of([ask(devices=4), *[ask()] * 4])
    pool = CandidatePool({"packed": PackedPolicy().knowing(demand)}, MedianPrices({}))
    pool.put(node(1, devices=(CandidateDevice("A100", 81920),) * 4))
    pool.put(node(2, devices=(CandidateDevice("A100", 81920),) * 3))
    first = [placed.node_id.int for _ in range(3) if (placed := pool.place(ask(policy="packed"), NOW))]
    assert first == [2, 2, 2]


def test_packed_puts_a_part_only_on_a_device_that_will_do_where_a_node_mixes_them() -> None:
    mixed = (CandidateDevice("T4", 16384, free_milli=WHOLE_MILLI // 2), CandidateDevice("A100", 81920))
    pool = pool_of(node(1, devices=mixed))
    placed = pool.place(ask(milli=500, device_models=frozenset({"A100"}), policy="packed"), NOW)
    assert placed
    assert placed.devices == (1,)
