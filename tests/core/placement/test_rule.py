"""The index gives the answers of the rule: the quick path and the exact path, whatever happened to the pool before."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds.candidates import NOW, POLICIES, ask, candidates, node, pool_of, requests, uuid
from tests.worlds.databases.dispatch_world import body_of, demand_of_body, queued
from tidemill.core.clock import Instant
from tidemill.core.placement import rule
from tidemill.core.placement.candidate import Candidate, CandidateDevice, MedianPrices
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.explainer import Explainer
from tidemill.core.placement.index import ranking
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.index.node import PoolNode, suits
from tidemill.core.placement.placer import Placer
from tidemill.core.placement.policies import RankPolicy
from tidemill.core.placement.policies.packed import PackedPolicy
from tidemill.core.placement.rule import (
    NodeChoice,
    PlacementObjection,
    PlacementRule,
    PolicyAssessment,
    Reservation,
    SnapshotNode,
    objections,
)
from tidemill.core.placement.supply import Seller
from tidemill.core.placement.workload import Workload
from tidemill.core.settlement.pay import RewardPlan

NUMBERS = range(1, 7)
SHARE = 0.05
EVERYBODY, NEWCOMERS = 1.0, 0.0
CHOOSY = Workload.of([ask(devices=3), ask(device_models=frozenset({"L4"})), *[ask(milli=500)] * 4])
ALL_POLICIES = POLICIES | {"choosy": PackedPolicy(CHOOSY)}
RANK_POLICIES = {name: policy for name, policy in ALL_POLICIES.items() if isinstance(policy, RankPolicy)}

ALL_NODES = st.tuples(*(candidates(number) for number in NUMBERS))
WHAT = ["place", "place", "place", "newcomers", "release", "release", "put", "remove", "note"]
STEPS = st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 50)), max_size=60)


class PlainPool:
    """A `PlacementPool` that asks the rule, over a snapshot that is kept by hand."""

    def __init__(self, median_prices: MedianPrices) -> None:
        self.rule = PlacementRule(ALL_POLICIES, median_prices, SHARE)
        self.nodes: dict[UUID, SnapshotNode] = {}
        self.came: dict[UUID, int] = {}
        self.noted: dict[str, set[UUID]] = {}
        self._vacant: list[int] = []
        self._changes = 0

    def __len__(self) -> int:
        return len(self.nodes)

    def put(self, candidate: Candidate) -> None:
        """A node that comes takes the place that was vacated last."""
        before = self.nodes.get(candidate.node_id)
        place = before.place if before else self._vacant.pop() if self._vacant else len(self.nodes)
        self.noted = self.noted if before else {}
        self.came[candidate.node_id] = now = self._next()
        self.nodes[candidate.node_id] = SnapshotNode(candidate, candidate, place, now)

    def remove(self, node_id: UUID) -> None:
        if gone := self.nodes.pop(node_id, None):
            self._vacant.append(gone.place)
            self.noted = {}

    def note_cached(self, holders: Mapping[str, Iterable[UUID]]) -> None:
        self.noted = {digest: {one for one in node_ids if one in self.nodes} for digest, node_ids in holders.items()}

    def place(self, demand: Demand, now: Instant, draw: float = EVERYBODY) -> Reservation[int] | None:
        choice = self._choice(demand, now, draw)
        if choice is None:
            return None
        node_id = choice.node.candidate.node_id
        self.nodes[node_id] = rule.take(self.nodes[node_id], demand, choice.devices, self._next())
        return Reservation(node_id, choice.devices, demand, self.came[node_id])

    def release(self, placed: Reservation[int]) -> bool:
        node_id, devices, demand, came = placed
        if node_id not in self.nodes or self.came[node_id] != came:
            return False
        self.nodes[node_id] = rule.give_back(self.nodes[node_id], demand, devices, self._next())
        return True

    def against(self, demand: Demand, now: Instant) -> Iterator[tuple[UUID, tuple[PlacementObjection, ...]]]:
        for node_id, one in self.nodes.items():
            yield node_id, tuple(objections(one.left, demand, now))

    def ranked(self, demand: Demand, now: Instant, most: int) -> Iterator[UUID]:
        for _ in range(most):
            if choice := self._choice(demand, now, EVERYBODY):
                yield (best := choice.node.candidate.node_id)
                demand = replace(demand, excluded_nodes=demand.excluded_nodes | {best})

    def counts_costs(self, policy: str) -> bool:
        return policy not in RANK_POLICIES

    def explain(self, demand: Demand, now: Instant, node_id: UUID) -> PolicyAssessment | None:
        if node_id not in self.nodes:
            return None
        one, against = self._seen(self.nodes[node_id]), dict(self.against(demand, now))[node_id]
        policy = RANK_POLICIES[demand.policy]
        terms = {} if against else {"all": rule.score(policy, one, demand, self.rule.median_prices)}
        return PolicyAssessment(node_id, against, terms)

    def _choice(self, demand: Demand, now: Instant, draw: float) -> NodeChoice | None:
        return self.rule.choose([self._seen(one) for one in self.nodes.values()], demand, now, draw)

    def _seen(self, one: SnapshotNode) -> SnapshotNode:
        noted = {digest for digest, node_ids in self.noted.items() if one.candidate.node_id in node_ids}
        return replace(one, left=replace(one.left, cached=one.left.cached | noted)) if noted else one

    def _next(self) -> int:
        self._changes += 1
        return self._changes


@given(
    ALL_NODES,
    st.lists(requests(), min_size=1, max_size=8),
    STEPS,
    st.sampled_from(sorted(ALL_POLICIES)),
    st.sampled_from([0, 1, ranking.SKIPPED_MAX]),
)
@settings(max_examples=250, deadline=None)
def test_the_quick_path_and_the_exact_path_answer_as_the_rule_does(
    nodes: tuple[Candidate, ...], asked: list[Demand], steps: list[tuple[str, int]], policy: str, skipped_max: int
) -> None:
    demands = [replace(demand, policy=policy) for demand in asked]
    first = [("place", number) for number in range(len(demands))]
    with patch.object(ranking, "SKIPPED_MAX", skipped_max):  # an impatient ranking opens narrow lanes
        _compare(nodes, demands, [*first, *steps])


@given(
    ALL_NODES,
    st.lists(st.tuples(requests(), st.sampled_from(sorted(ALL_POLICIES))), min_size=2, max_size=8),
    STEPS,
)
@settings(max_examples=150, deadline=None)
def test_demands_that_choose_their_policies_share_one_pool(
    nodes: tuple[Candidate, ...], asked: list[tuple[Demand, str]], steps: list[tuple[str, int]]
) -> None:
    demands = [replace(demand, policy=policy) for demand, policy in asked]
    _compare(nodes, demands, [*(("place", number) for number in range(len(demands))), *steps])


def _compare(nodes: tuple[Candidate, ...], demands: list[Demand], steps: list[tuple[str, int]]) -> None:
    plain = PlainPool(MedianPrices.of(nodes))
    for candidate in nodes:
        plain.put(candidate)
    quick, exact = (pool_of(*nodes, newcomers_share=SHARE, policies=ALL_POLICIES) for _ in range(2))
    running: list[tuple[Reservation[PoolNode], Reservation[PoolNode], Reservation[int]]] = []
    for step, number in steps:
        candidate = nodes[number % len(nodes)]
        if step in ("place", "newcomers"):
            demand, draw = demands[number % len(demands)], EVERYBODY if step == "place" else NEWCOMERS
            here = quick.place(demand, NOW, draw)
            there = exact.place_exactly(demand, NOW) if step == "place" else exact.place(demand, NOW, draw)
            wanted = plain.place(demand, NOW, draw)
            assert (here and here[:2]) == (there and there[:2]) == (wanted and wanted[:2])
            running += [(here, there, wanted)] if here and there and wanted else []
        elif step == "release" and running:
            here, there, wanted = running.pop(number % len(running))
            assert quick.release(here) == exact.release(there) == plain.release(wanted)
        elif step == "put":
            for pool in (quick, exact, plain):
                pool.put(candidate)
        elif step == "remove":
            for pool in (quick, exact, plain):
                pool.remove(candidate.node_id)
        elif step == "note":
            holders = {"one": [candidate.node_id, uuid(1)], "two": [candidate.node_id]}
            for pool in (quick, exact, plain):
                pool.note_cached(holders)


def test_tasks_go_where_they_go_by_the_rule_and_for_the_same_reasons() -> None:
    """The placer knows its pool by the rule alone: with the rule itself it decides and explains as with the index."""
    sellers = [Seller(node(number, disk_mib=10**6), False, 1e12, number * 1e9) for number in NUMBERS]
    demand = demand_of_body(body_of(1))
    tasks = [queued(number, number % 3, 10**6, demand, 10**12)._replace(since=NOW) for number in range(12)]
    found = []
    for new_pool in (PlainPool, partial(CandidatePool, ALL_POLICIES, newcomers_share=SHARE)):
        placer, explainer = Placer(new_pool, RewardPlan(), "value"), Explainer()
        placer.refill(sellers)
        plan = placer.decide(tasks, NOW, listener=explainer)
        explainer.applied(plan, {one.task.task_id for one in plan.placements}, placer, NOW)
        explained, waits = explainer.take()
        found.append(
            (
                [(one.task.task_id, one.reservation[:3]) for one in plan.placements],
                [one.task_ids for one in explained],
                [(one.node_id, one.objections) for each in explained for one in each.weighing.candidates],
                [(one.task_id, one.nowhere) for one in waits],
            )
        )
    assert found[0] == found[1]
    assert found[0][0]


@given(candidates(1), requests())
@settings(max_examples=200, deadline=None)
def test_a_node_suits_when_there_is_no_objection(candidate: Candidate, demand: Demand) -> None:
    assert suits(PoolNode(0, candidate, 1), demand, NOW) == (not list(objections(candidate, demand, NOW)))


def chosen(*nodes: Candidate, draw: float = EVERYBODY, **wishes: object) -> NodeChoice | None:
    snapshot = [SnapshotNode(one, one, place, place) for place, one in enumerate(nodes)]
    return PlacementRule(POLICIES, MedianPrices.of(nodes)).choose(snapshot, ask(**wishes), NOW, draw)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_the_first_of_equals_is_chosen_and_nobody_where_all_are_objected_to(policy: str) -> None:
    choice = chosen(node(1), node(2), policy=policy)
    assert choice
    assert choice.node.candidate.node_id == uuid(1)
    assert chosen(node(1), node(2), policy=policy, kind="unknown") is None


def test_a_placement_kept_for_newcomers_goes_to_one_if_one_suits() -> None:
    old, new = node(1, reputation=900), node(2, reputation=100, newcomer=True)
    for draw, number in ((NEWCOMERS, 2), (EVERYBODY, 1)):
        choice = chosen(old, new, draw=draw)
        assert choice
        assert choice.node.candidate.node_id == uuid(number)
    busy = node(2, newcomer=True, devices=(CandidateDevice("A100", 81920, free_milli=0),))
    choice = chosen(old, busy, draw=NEWCOMERS)
    assert choice
    assert choice.node.candidate.node_id == uuid(1)
