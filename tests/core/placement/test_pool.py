"""The pool of candidates: nothing is given twice, gangs are whole, nothing slows it, and all can be explained."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds.candidates import NOW, ask, candidates, node, pool_of, requests, uuid
from tidemill.core.placement.candidate import Candidate, CandidateDevice
from tidemill.core.placement.demand import Demand, NeededArtefact
from tidemill.core.placement.index.candidate_pool import CandidatePool
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.rule import PlacementObjection, Reservation

ALL_NODES = st.tuples(*(candidates(number) for number in range(1, 7)))


def test_many_nodes_with_busy_processors_do_not_slow_what_asks_for_a_processor_only() -> None:
    """Good nodes without a processor to spare stand in front of the others for long."""
    quick, exact = (pool_of(*_with_processors(500)) for _ in range(2))
    asked = [ask(devices=0, cpu_milli=1_000 * (1 + number % 3), memory_mib=2_048) for number in range(6_000)]
    running: list[tuple[Reservation[PoolNode], Reservation[PoolNode]]] = []
    for number, request in enumerate(asked):
        here, there = quick.place(request, NOW), exact.place_exactly(request, NOW)
        assert (here and here[:2]) == (there and there[:2])
        if here and there:
            running.append((here, there))
        elif number % 7 == 0:
            for first, second in (running.pop(number % len(running)) for _ in range(20)):
                assert quick.release(first) == exact.release(second)
    assert _asked_exactly(quick, asked[:300]) == 0


def test_a_policy_that_is_asked_late_ranks_nodes_as_they_are_when_others_have_gone() -> None:
    devices = (CandidateDevice("A100", 81920),) * 2
    quick, exact = (pool_of(node(1, devices=devices), node(2, devices=devices, latency_ms=30)) for _ in range(2))
    for pool, place in ((quick, quick.place), (exact, exact.place_exactly)):
        first = place(ask(policy="trusted"), NOW)
        assert first
        late = place(ask(policy="fast"), NOW)  # the policy learns of a node that has a tenant
        assert late
        pool.release(late)
        pool.release(first)
    for _ in range(4):
        here, there = quick.place(ask(policy="fast"), NOW), exact.place_exactly(ask(policy="fast"), NOW)
        assert here
        assert there
        assert here[:2] == there[:2]


@given(ALL_NODES, st.lists(requests(), max_size=12))
@settings(max_examples=50, deadline=None)
def test_what_cannot_be_placed_there_are_objections_to_everywhere(
    nodes: tuple[Candidate, ...], asked: list[Demand]
) -> None:
    for policy in ("value", "packed"):
        pool = pool_of(*nodes)
        for request in asked:
            named = replace(request, policy=policy)
            explained = [pool.explain(named, NOW, one.node_id) for one in nodes]
            placed = pool.place(named, NOW)
            assert (placed is None) == all(one and one.objections for one in explained)


@given(ALL_NODES, st.lists(requests(), max_size=12))
@settings(max_examples=50, deadline=None)
def test_placing_and_releasing_leaves_everything_as_it_was(nodes: tuple[Candidate, ...], asked: list[Demand]) -> None:
    """A device that was given twice or given back twice is an assertion in the node."""
    pool = pool_of(*nodes)
    placed = [one for number, request in enumerate(asked) if (one := _placed(pool, request, number))]
    for one in placed:
        for index in one.devices:
            assert one.node.free[index] + one.demand.milli <= 1000
    for one in placed:
        assert pool.release(one)
    for one in placed:
        assert one.node.free == tuple(device.free_milli for device in one.node.candidate.devices)
        assert one.node.cpu_milli == one.node.candidate.cpu_milli
        assert one.node.whole == one.node.free.count(1000)


def test_a_placement_cannot_be_released_twice() -> None:
    pool = pool_of(node(1))
    placed = pool.place(ask(), NOW)
    assert placed
    assert pool.release(placed)
    with pytest.raises(AssertionError):
        pool.release(placed)


def test_a_release_of_a_node_that_came_anew_changes_nothing() -> None:
    pool = pool_of(node(1))
    placed = pool.place(ask(), NOW)
    assert placed
    pool.put(node(1, devices=(CandidateDevice("A100", 81920, free_milli=0),)))
    assert not pool.release(placed)
    assert pool.place(ask(), NOW) is None
    pool.remove(uuid(1))
    assert not pool.release(placed)


def test_a_release_of_what_another_pool_placed_changes_nothing() -> None:
    before, pool = pool_of(node(1), node(2)), pool_of(node(1))
    placed = [before.place(ask(), NOW), before.place(ask(), NOW)]
    for one in placed:
        assert one
        assert not pool.release(one)
    while one := pool.place(ask(), NOW):
        assert one.node_id == uuid(1)


def test_a_release_of_what_an_earlier_pool_placed_changes_nothing() -> None:
    pool_before, pool = pool_of(*(node(number) for number in range(1, 200))), pool_of(node(1))
    placed = [pool_before.place(ask(), NOW) for _ in range(199)]
    assert not any(pool.release(one) for one in placed if one)
    assert pool.place(ask(), NOW)
    assert pool.place(ask(), NOW) is None


def test_equals_take_turns() -> None:
    pool = pool_of(*(node(number) for number in range(1, 4)))
    turns = []
    for _ in range(6):
        placed = pool.place(ask(), NOW)
        assert placed
        turns.append(placed.node_id.int)
        pool.release(placed)
    assert turns == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("policy", ["value", "packed"])
def test_many_nodes_that_do_not_suit_do_not_hide_the_one_that_does(policy: str) -> None:
    good = node(500, reputation=10)
    pool = pool_of(*(node(number, owner_id=uuid(7), reputation=900) for number in range(1, 400)), good)
    placed = pool.place(ask(customer_id=uuid(7), policy=policy), NOW)
    assert placed
    assert placed.node_id == good.node_id


def test_nodes_that_claim_models_without_number_neither_break_nor_slow_the_pool() -> None:
    pool = pool_of(*(node(number, devices=(CandidateDevice(f"model {number}", 1),)) for number in range(1, 1000)))
    assert all(pool.place(ask(), NOW) for _ in range(999))
    assert pool.place(ask(), NOW) is None


def test_some_placements_are_kept_for_newcomers_and_anybody_takes_them_when_no_newcomer_can() -> None:
    pool = pool_of(node(1, reputation=900), node(2, reputation=300, newcomer=True))
    kept = pool.place(ask(), NOW, draw=0.04)
    assert kept
    assert kept.node_id == uuid(2)
    anybody = pool.place(ask(), NOW, draw=0.04)
    assert anybody
    assert anybody.node_id == uuid(1)


@pytest.mark.parametrize("policy", ["value", "packed"])
def test_a_node_that_holds_the_inputs_is_preferred(policy: str) -> None:
    pool = pool_of(node(1), node(2, cached=frozenset({"model"})))
    wanted = (NeededArtefact("model", 900), NeededArtefact("text", 100))
    request = ask(inputs=wanted, policy=policy)
    explained = pool.explain(request, NOW, uuid(2))
    assert explained
    assert "locality" in explained.terms
    placed = pool.place(request, NOW)
    assert placed
    assert placed.node_id == uuid(2)
    pool.put(node(2))  # without it now
    without = pool.explain(request, NOW, uuid(2))
    assert without
    assert "locality" not in without.terms


def test_whole_devices_come_from_the_smallest_nvlink_group_that_has_enough() -> None:
    devices = tuple(CandidateDevice("A100", 81920, nvlink_group=group) for group in (1, 1, 1, 1, 2, 2))
    pool = pool_of(node(1, devices=devices))
    pair = pool.place(ask(devices=2, nvlink=True), NOW)
    assert pair
    assert pair.devices == (4, 5)
    four = pool.place(ask(devices=4, nvlink=True), NOW)
    assert four
    assert four.devices == (0, 1, 2, 3)


def test_devices_that_are_not_joined_are_no_nvlink_group() -> None:
    pool = pool_of(node(1, devices=(CandidateDevice("A100", 81920),) * 4))
    assert pool.place(ask(devices=2, nvlink=True), NOW) is None
    against = dict(pool.against(ask(devices=2, nvlink=True), NOW))
    assert against == {uuid(1): (PlacementObjection.NVLINK_MISSING,)}


def test_a_part_of_a_device_goes_to_the_fullest_that_will_do() -> None:
    devices = (
        CandidateDevice("A100", 81920),
        CandidateDevice("A100", 81920, free_milli=400),
        CandidateDevice("A100", 81920, free_milli=300),
    )
    pool = pool_of(node(1, devices=devices))
    assert [placed.devices for _ in range(4) if (placed := pool.place(ask(milli=300), NOW))] == [(2,), (1,), (0,), (0,)]


def test_a_pool_grows_and_a_node_may_get_more_devices_than_any_had() -> None:
    pool = pool_of(*(node(number) for number in range(1, 200)))
    assert pool.place(ask(policy="packed"), NOW)
    pool.put(node(7, devices=(CandidateDevice("A100", 81920),) * 16))
    placed = pool.place(ask(devices=16, policy="packed"), NOW)
    assert placed
    assert placed.node_id == uuid(7)
    assert len(pool) == 199
    assert pool.place(ask(devices=16), NOW) is None


def test_every_reason_has_a_sentence_of_its_own() -> None:
    assert len({why.sentence for why in PlacementObjection}) == len(PlacementObjection.__members__)
    assert all(why.sentence.endswith(".") and why.sentence[0].isupper() for why in PlacementObjection)


def _placed(pool: CandidatePool, request: Demand, number: int) -> Reservation[PoolNode] | None:
    return pool.place(replace(request, policy=("value", "packed")[number % 2]), NOW)


def _with_processors(count: int) -> list[Candidate]:
    """The better a node is, the sooner its processor is busy; a busy one is still better than most."""
    return [node(number, cpu_milli=8_000, reputation=1000 - number, devices=()) for number in range(1, count + 1)]


def _asked_exactly(pool: CandidatePool, asked: list[Demand]) -> int:
    """How many of these were held against every node, being placed and released one by one."""
    columns, times = pool._columns, 0
    suiting = columns.suiting

    def counted(*whom: object) -> object:
        nonlocal times
        times += 1
        return suiting(*whom)  # type: ignore[arg-type]

    columns.suiting = counted  # type: ignore[method-assign, assignment]
    for request in asked:
        if placed := pool.place(request, NOW):
            pool.release(placed)
    return times
