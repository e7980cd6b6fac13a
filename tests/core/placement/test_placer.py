"""Whom waiting tasks go to: what they may cost, whose turn it is, newcomers, copies of inputs, what finds no room."""

import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds.databases.dispatch_world import body_of, demand_of_body, queued
from tidemill.control.placement.placement_policies import placement_policies
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.kinds import work_of
from tidemill.core.jobs.kinds.needs import Needs, limits_of
from tidemill.core.jobs.kinds.task_body import Input, Task, task_bytes
from tidemill.core.jobs.sandboxes import MIB, RunLimits
from tidemill.core.placement.candidate import Candidate
from tidemill.core.placement.demand import HOUSE, Requirements
from tidemill.core.placement.explainer import Explainer, why_nowhere
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.index.prices import Prices
from tidemill.core.placement.placer import HOLDERS_MAX, Placer
from tidemill.core.placement.plan import PlacementPlan, QueuedTask, inputs_of
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.task_demand import demand_for, work_footprint
from tidemill.core.settings import Settings
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.core.settlement.pay import RewardPlan, cost_max_uc
from tidemill.core.trust.checks.judgement import THE_POOL

NOW = Instant(1_000_000 * SECOND)
PLENTY_UC = 10**12
POLICIES = placement_policies(Settings(home=Path("/nowhere")))
ROOM = 10**6


def seller(number: int, price_uc: int = 10**6, speed: float = 1e10, **facts: object) -> Seller:
    plain = {"price_uc": price_uc, "kinds": frozenset({"matmul"})}
    candidate = Candidate(UUID(int=number), UUID(int=number), (), 10**9, ROOM, ROOM, **plain | facts)  # type: ignore[arg-type]
    return Seller(candidate, house=False, device_ops_per_s=0.0, core_ops_per_s=speed)


def placer_of(*sellers: Seller, newcomers_share: float = 0.0, audit_share: float = 1.0) -> Placer:
    new_pool = partial(CandidatePool, POLICIES, newcomers_share=newcomers_share)
    placer = Placer(new_pool, RewardPlan(), "value", audit_share, POLICIES)
    placer.refill(sellers)
    return placer


def want(number: int, customer: int = 10**6, body: bytes = body_of(1), cost_max_uc: int = PLENTY_UC) -> QueuedTask:
    return queued(number, 1, customer, demand_of_body(body), cost_max_uc)._replace(since=NOW)


def cost_uc(one: Seller, body: bytes) -> int:
    return cost_max_uc(RewardPlan(), one.terms(demand_of_body(body).needs))


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 999_999, 10**6, 10**15]) | st.integers(0, 10**9), st.floats(0.0, 1e15)),
        min_size=1,
        max_size=20,
    ),
    st.sampled_from([1, 24, 512]),
    st.integers(0, 19),
    st.integers(-2, 2),
)
@settings(max_examples=200, deadline=None)
def test_who_is_too_dear_is_found_exactly_for_all_nodes_at_once(
    offers: list[tuple[int, float]], side: int, of: int, off_uc: int
) -> None:
    sellers = [seller(number, price, speed) for number, (price, speed) in enumerate(offers, start=1)]
    known = demand_of_body(body_of(1, side))
    limit_uc = cost_uc(sellers[of % len(sellers)], body_of(1, side)) + off_uc
    dear = {one.node_id for one in sellers if cost_uc(one, body_of(1, side)) > limit_uc}
    assert Prices(sellers, RewardPlan()).too_dear(known, limit_uc) == dear


def test_thousands_of_dear_nodes_do_not_hide_a_cheap_one_nor_take_long() -> None:
    dear = [seller(number, price_uc=10**16, reputation=900) for number in range(1, 20_001)]
    cheap = seller(30_000, price_uc=10**13, reputation=100)
    placer = placer_of(*dear, cheap)
    limit_uc = cost_uc(cheap, body_of(1))
    began = time.process_time()
    decided = placer.decide([want(number, cost_max_uc=limit_uc) for number in range(200)], NOW)
    assert time.process_time() - began < 5
    assert {one.seller.node_id for one in decided.placements} == {cheap.node_id}
    assert len(decided.placements) == 200


def test_what_is_too_dear_everywhere_waits_and_is_told_so() -> None:
    placer = placer_of(*(seller(number, price_uc=10**9) for number in range(1, 50)))
    asked_for = want(1, cost_max_uc=1)
    assert not placer.decide([asked_for], NOW).placements
    assert why_nowhere(placer, asked_for, NOW).counts == {"above_quote": 49}


def test_what_an_order_asks_of_nodes_decides_where_its_tasks_go() -> None:
    here, there = seller(1, region="here", reputation=400), seller(2, region="there", reputation=900)
    asked = {
        Requirements(regions=frozenset({"here"})): here,
        Requirements(reputation_floor=500): there,
        Requirements(avoided=frozenset({there.node_id})): here,
        Requirements(regions=frozenset({"elsewhere"})): None,
        Requirements(hourly_max_uc=1): None,
    }
    tasks = [asking(number, requirements) for number, requirements in enumerate(asked)]
    plan = placer_of(here, there).decide(tasks, NOW)
    went = {placement.task.task_id: placement.seller for placement in plan.placements}
    assert [went.get(task.task_id) for task in tasks] == list(asked.values())
    assert len(plan.waiting) == 2, "each waits for reasons of its own"


def test_each_order_is_placed_by_its_own_policy_and_by_the_pools_where_that_is_gone() -> None:
    trusted, cheap = seller(1, reputation=1000, core_price_uc=10.0), seller(2, reputation=900, core_price_uc=1.0)
    chosen = {"trusted": trusted, "value": cheap, "": cheap, "uninstalled": cheap}
    tasks = [asking(number, Requirements(policy=policy)) for number, policy in enumerate(chosen)]
    placer, explainer = placer_of(trusted, cheap), Explainer()
    plan = placer.decide(tasks, NOW, listener=explainer)
    went = {placement.task.task_id: placement.seller for placement in plan.placements}
    assert [went[task.task_id] for task in tasks] == list(chosen.values())
    explainer.applied(plan, went.keys(), placer, NOW)
    assert {kept.weighing.policy for kept in explainer.take()[0]} == {"trusted", "value"}


def asking(number: int, requirements: Requirements) -> QueuedTask:
    task = Task("matmul", {"m": 8, "n": 8, "k": 8, "element": "int8", "seed": number}, RunLimits(seconds=1))
    demand = demand_for(task, *work_footprint("matmul", work_of(task)), requirements)
    return want(number)._replace(demand=demand, demand_id=demand.id, job_id=UUID(int=number))


def test_a_node_that_becomes_cheaper_is_too_dear_no_more() -> None:
    one, other = seller(1, price_uc=10**16), seller(2, price_uc=10**16)
    placer = placer_of(one, other)
    limit_uc = cost_uc(seller(1, price_uc=10**13), body_of(1))
    assert not placer.decide([want(1, cost_max_uc=limit_uc)], NOW).placements
    placer.know(one.node_id, seller(1, price_uc=10**13))
    assert [found.seller.node_id for found in placer.decide([want(1, cost_max_uc=limit_uc)], NOW).placements] == [
        one.node_id
    ]


@pytest.mark.parametrize("sorts", [1, 500])
def test_a_front_of_ten_thousand_that_fit_nowhere_neither_starves_nor_slows_the_rest(sorts: int) -> None:
    placer = placer_of(*(seller(number) for number in range(1, 1_001)))
    too_large = [large_body(extra) for extra in range(sorts)]
    hopeless = [
        want(number, customer=1_000_000 + number % 7, body=too_large[number % sorts]) for number in range(10_000)
    ]
    rest = [want(20_000 + number, customer=2_000_000) for number in range(100)]
    placer.decide(rest[:1], NOW)
    began = time.process_time()
    decided = placer.decide([*hopeless, *rest], NOW)
    taken_s = time.process_time() - began
    assert {one.task.task_id for one in decided.placements} == {one.task_id for one in rest}
    assert taken_s < 8
    assert len(decided.waiting) >= sorts


def test_who_has_much_at_work_comes_after_who_has_nothing() -> None:
    placer = placer_of(seller(1, speed=1e10))
    busy, idle = 2_000_001, 2_000_002
    for number, found in enumerate(placer.decide([want(number, customer=busy) for number in range(5)], NOW).placements):
        placer.keep(UUID(int=900 + number), found)
    both = [
        *(want(number, customer=busy) for number in range(10, 13)),
        *(want(n, customer=idle) for n in range(20, 23)),
    ]
    order = [one.task.account_id.int for one in placer.decide(both, NOW).placements]
    assert order == [idle] * 3 + [busy] * 3
    placer.release([UUID(int=900 + number) for number in range(5)])
    again = [one.task.account_id.int for one in placer.decide(both, NOW).placements]
    assert again[:2] == [idle, busy], "among equals, whoever was served longest ago is next"


def test_what_another_process_placed_counts_for_its_customer() -> None:
    placer = placer_of(seller(1))
    busy, idle = 2_000_001, 2_000_002
    for number in range(5):
        placer.reserve(UUID(int=900 + number), UUID(int=1), demand_of_body(body_of(1)), UUID(int=busy))
    decided = placer.decide([want(1, customer=busy), want(2, customer=idle)], NOW)
    assert [one.task.account_id.int for one in decided.placements] == [idle, busy]


def test_newcomers_get_their_share_and_no_more() -> None:
    old = [seller(number, reputation=900) for number in range(1, 20)]
    new = [seller(number, reputation=100, newcomer=True) for number in range(20, 30)]
    placer = placer_of(*old, *new, newcomers_share=0.05)
    decided = placer.decide([want(number) for number in range(1_000)], NOW)
    counts = Counter(one.seller.candidate.newcomer for one in decided.placements)
    assert counts == {False: 950, True: 50}


def test_a_node_that_has_the_inputs_is_preferred_until_it_is_said_that_it_has_not() -> None:
    digest = Digest("ab" * 32)
    body = input_body(digest)
    placer = placer_of(*(seller(number, reputation=300) for number in range(1, 10)))
    asked_for = [want(1, body=body)]
    assert inputs_of(asked_for) == {digest}
    found = placer.decide(asked_for, NOW, holders={digest: [UUID(int=7)]}).placements
    assert [one.seller.node_id.int for one in found] == [7]
    placer.take_back(found[0])
    found = placer.decide(asked_for, NOW, holders={digest: [UUID(int=4), UUID(int=10_000)]}).placements
    assert [one.seller.node_id.int for one in found] == [4]


def test_an_input_that_everybody_has_slows_nothing() -> None:
    digest = Digest("ab" * 32)
    placer = placer_of(*(seller(number) for number in range(1, 5_001)))
    holders = {digest: [UUID(int=number) for number in range(1, 5_001)]}
    began = time.process_time()
    found = placer.decide(
        [want(number, body=input_body(digest)) for number in range(200)], NOW, holders=holders
    ).placements
    assert time.process_time() - began < 4
    assert all(one.seller.node_id.int <= HOLDERS_MAX for one in found)


def test_the_memory_of_gpus_is_limited_for_all_of_them_together_and_asked_for_of_each() -> None:
    needs = Needs(memory_mib=100, disk_mib=1, operations=0.0, devices=4, gpu_memory_mib=20_000, seconds=60)
    limit_bytes = limits_of(needs, 60.0, ContainersSettings()).gpu_memory_bytes
    assert limit_bytes
    assert limit_bytes >= 4 * 20_000 * MIB


def large_body(extra: int) -> bytes:
    limits = RunLimits(seconds=10.0, memory_bytes=(ROOM + 1 + extra) * MIB, disk_bytes=MIB, file_bytes=MIB)
    return task_bytes(Task("matmul", {"m": 8, "n": 8, "k": 8, "element": "int8", "seed": 1}, limits))


def input_body(digest: Digest) -> bytes:
    parameters = {"m": 8, "n": 8, "k": 8, "element": "int8"}
    limits = RunLimits(seconds=10.0, memory_bytes=100 * MIB, disk_bytes=MIB, file_bytes=MIB)
    inputs = (Input("a", digest, 200), Input("b", digest, 200))
    return task_bytes(Task("matmul", parameters, limits, inputs=inputs))


def house(number: int, cores: int) -> Seller:
    plain = seller(number, labels=frozenset({HOUSE}))
    return replace(plain, house=True, candidate=replace(plain.candidate, cpu_milli=1_000 * cores))


def audit(number: int, customer: int, since: Instant = NOW) -> QueuedTask:
    """Of a customer's result."""
    task = want(number)._replace(account_id=THE_POOL, for_house=True, since=since, job_id=UUID(int=number))
    return task._replace(customer_id=UUID(int=customer))


def customers(decided: PlacementPlan) -> list[int]:
    return [placement.task.customer_id.int for placement in decided.placements]


HOG, MODEST, THIRD = 2_000_001, 2_000_002, 2_000_003


def test_one_customers_audits_never_take_the_whole_house() -> None:
    """Eight tasks that sleep kept the house busy, and a script of another customer waited for 322 s instead of 2."""
    placer = placer_of(house(1, cores=8), audit_share=0.5)
    sleeping = [audit(number, HOG) for number in range(100)]
    decided = placer.decide(sleeping, NOW)
    assert customers(decided) == [HOG] * 4
    for number, placement in enumerate(decided.placements):
        placer.keep(UUID(int=900 + number), placement)
    waiting = sleeping[4:]
    decided = placer.decide([*waiting, *(audit(200 + number, MODEST) for number in range(9))], NOW)
    assert customers(decided) == [MODEST] * 2, "half of what is left"
    for number, placement in enumerate(decided.placements):
        placer.keep(UUID(int=910 + number), placement)
    assert customers(placer.decide([*waiting, audit(300, THIRD)], NOW)) == [THIRD]


def test_what_an_audit_had_is_free_again_when_it_ends_or_was_not_applied() -> None:
    placer = placer_of(house(1, cores=4), audit_share=0.5)
    for _ in range(3):
        decided = placer.decide([audit(number, HOG) for number in range(10)], NOW)
        assert customers(decided) == [HOG] * 2
        for placement in decided.placements:
            placer.take_back(placement)
    for number in range(2):
        placer.reserve(UUID(int=900 + number), UUID(int=1), demand_of_body(body_of(1)), THE_POOL, UUID(int=HOG))
    assert not placer.decide([audit(1, HOG)], NOW).placements
    placer.release([UUID(int=900)])
    assert customers(placer.decide([audit(1, HOG), audit(2, HOG)], NOW)) == [HOG]


def test_a_house_with_one_seat_serves_customers_in_turns_however_long_one_has_waited() -> None:
    placer = placer_of(house(1, cores=1), audit_share=0.5)
    long_ago = Instant(NOW - 3_600 * SECOND)
    waiting = [audit(number, HOG, long_ago) for number in range(50)]
    waiting += [audit(100 + number, MODEST) for number in range(3)]
    order = []
    for number in range(6):
        [placement] = placer.decide(waiting, NOW).placements
        placer.keep(UUID(int=900 + number), placement)
        order.append(placement.task.customer_id.int)
        waiting = [task for task in waiting if task.task_id != placement.task.task_id]
        placer.release([UUID(int=900 + number)])
    assert order == [HOG, MODEST] * 3


def test_an_audit_counts_for_its_customer_at_other_nodes_too() -> None:
    placer = placer_of(seller(1), house(2, cores=8), audit_share=0.5)
    for number, placement in enumerate(placer.decide([audit(number, HOG) for number in range(4)], NOW).placements):
        placer.keep(UUID(int=900 + number), placement)
    decided = placer.decide([want(10, customer=HOG), want(11, customer=MODEST)], NOW)
    assert customers(decided) == [MODEST, HOG]
