"""Quotes: ranges that hold on every node they cover, and whose lines add up."""

import re
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.jobs.test_orders import MATMUL, SCENE, understood
from tidemill.core.clock import Instant
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task, read_task
from tidemill.core.jobs.plans.job_changes import why_not
from tidemill.core.jobs.quotes import Quote, quote, tasks_of
from tidemill.core.jobs.quotes.quote import QuoteRules, quote_from_json, quote_json, size_of
from tidemill.core.jobs.quotes.quote_words import notes_of
from tidemill.core.jobs.quotes.tasks import OrderPart, divide
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.placement.candidate import Candidate, CandidateDevice
from tidemill.core.placement.demand import HOUSE
from tidemill.core.placement.supply import Seller, Supply
from tidemill.core.settings.sections.work import ContainersSettings
from tidemill.core.settlement.pay import RewardPlan, UsedTime, attempt_pay, cost_max_uc

RULES = QuoteRules(RewardPlan(), valid_us=900_000_000, deadline_factor=2)
NOW = Instant(1_000_000)
EMPTY = Supply([], 200_000)
TEXTS = {"kind": "embed", "parameters": {"texts": [f"text {number}" * (number + 1) for number in range(60)]}}


def node(number: int, price_uc: int = 100_000, speed: float = 5e10, **changed: Any) -> Seller:
    house, gpu_speed = changed.pop("house", False), changed.pop("gpu_speed", 0.0)
    fields = {"devices": (), "memory_mib": 64_000, "disk_mib": 10**9, "kinds": frozenset(KINDS)} | changed
    fields["labels"] = frozenset({HOUSE} if house else ())
    candidate = Candidate(UUID(int=number), UUID(int=1000 + number), cpu_milli=16_000, price_uc=price_uc, **fields)
    return Seller(candidate, house, gpu_speed, speed)


def priced(body: dict[str, Any], *nodes: Seller, customer: UUID | None = None) -> tuple[Quote, list[OrderPart]]:
    order = understood(body)
    parts = divide(order, ()) if order.has_runner else []
    assert not isinstance(parts, TaskObjection)
    return quote(order, parts, Supply(list(nodes), 200_000), RULES, customer, NOW), list(parts)


NODES = st.lists(
    st.builds(node, st.integers(1, 10**6), st.integers(0, 10**10), st.floats(1e6, 1e15)),
    min_size=1,
    max_size=30,
    unique_by=lambda one: one.node_id,
)


@given(NODES, st.sampled_from([{**MATMUL, "tasks": 3}, TEXTS]))
def test_no_task_costs_more_than_its_most_on_any_node_that_the_quote_covers(
    nodes: list[Seller], body: dict[str, Any]
) -> None:
    made, parts = priced(body, *nodes)
    largest = max((part.needs for part in parts), key=lambda needs: needs.operations)
    by_cost = sorted(nodes, key=lambda one: (cost_max_uc(RULES.plan, one.terms(largest)), one.node_id))
    for covered in by_cost[: made.nodes]:
        for part, most_uc in zip(parts, made.costs_max_uc, strict=True):
            terms = covered.terms(part.needs)
            assert cost_max_uc(RULES.plan, terms) <= most_uc
            assert attempt_pay(RULES.plan, terms, UsedTime(10**12, 10**12)).cost_uc <= most_uc


@given(NODES)
def test_a_quote_adds_up_and_has_two_ends(nodes: list[Seller]) -> None:
    made, _ = priced(TEXTS, *nodes)
    assert 0 < made.low_uc <= made.high_uc == sum(made.costs_max_uc)
    assert sum(line.low_uc for line in made.lines) == made.low_uc
    assert sum(line.high_uc for line in made.lines) == made.high_uc
    assert made.hours_low <= made.hours_high
    assert quote_from_json(quote_json(made)) == made
    assert made.expires_at == NOW + RULES.valid_us


def test_a_quote_covers_the_cheapest_four_fifths() -> None:
    nodes = [node(number, price_uc=number * 10**9) for number in range(1, 11)]
    made, _ = priced(MATMUL, *nodes)
    cheap, _ = priced(MATMUL, *nodes[:8])
    assert made.nodes == 8
    assert made.high_uc > cheap.high_uc * 0.99
    assert made.high_uc < priced(MATMUL, nodes[9])[0].high_uc


def test_nobody_is_quoted_their_own_node() -> None:
    own = node(1)
    made, _ = priced(MATMUL, own, customer=own.candidate.owner_id)
    assert made.nodes == 0
    assert any("No node that is online" in sentence for sentence in made.reasoning)


def test_dear_nodes_and_nodes_that_are_too_small_are_left_out() -> None:
    small, dear, other = node(1, memory_mib=100), node(2, price_uc=9_000_000), node(3, kinds=frozenset({"embed"}))
    made, _ = priced({**MATMUL, "hourly": "..1"}, small, dear, other)
    assert made.nodes == 0
    assert priced(MATMUL, small, dear, other)[0].nodes == 1


def test_a_free_node_still_holds_something() -> None:
    made, _ = priced(MATMUL, node(1, price_uc=0))
    assert made.costs_max_uc == (1,)


def test_a_price_that_the_books_cannot_hold_is_not_quoted() -> None:
    large = {"kind": "matmul", "parameters": {**MATMUL["parameters"], "m": 512, "n": 512, "k": 512}}
    made, _ = priced(large, node(1, price_uc=10**21, speed=1.0))
    assert made.nodes == 0


def test_verification_is_a_line_and_the_reasoning_is_in_sentences() -> None:
    made, _ = priced(MATMUL, node(1))
    assert [line.what for line in made.lines] == ["work", "commission", "verification"]
    assert all(sentence.endswith(".") for sentence in made.reasoning)


def test_prices_are_told_in_the_pools_own_name_for_its_credit() -> None:
    rules = replace(RULES, currency="token")
    for body in (MATMUL, {"type": "ml_training", "framework": "pytorch", "dataset_size": "1GB", "model_params": "1B"}):
        order = understood(body)
        parts = divide(order, ()) if order.has_runner else ()
        assert not isinstance(parts, TaskObjection)
        told = " ".join(quote(order, parts, Supply([node(1)], 100_000), rules, None, NOW).reasoning)
        assert "tokens" in told
        assert "credit" not in told


def test_a_training_is_estimated_and_has_no_runner() -> None:
    seed = {"type": "ml_training", "framework": "pytorch", "dataset_size": "500GB", "model_params": "70B"}
    made, _ = priced({**seed, "priority": "high", "max_budget": 1000})
    assert (made.devices, made.size, made.has_runner, made.costs_max_uc) == (14, "heavy", False, ())
    assert made.gpu_memory_mib == 70 * 10**9 * 16 // 2**20
    tiny, _ = priced({**seed, "dataset_size": "1", "model_params": 1})
    assert tiny.devices == 1
    assert 0 < tiny.low_uc <= tiny.high_uc


@pytest.mark.parametrize(
    ("devices", "size"), [(0, "light"), (1, "light"), (2, "medium"), (8, "heavy"), (17, "parallel")]
)
def test_sizes_go_by_devices(devices: int, size: str) -> None:
    assert size_of(devices, RULES) == size


@pytest.mark.parametrize(
    "body",
    [
        MATMUL,
        TEXTS,
        {"kind": "render", "parameters": {"scene": SCENE, "width": 64, "height": 64}, "tasks": 4},
        {"kind": "script", "parameters": {"seconds": 5, "program": "pass"}, "memory": "2GiB.."},
        {"kind": "container", "parameters": {"image": "alpine:3", "command": ["true"], "seconds": 9, "devices": 1}},
    ],
)
def test_tasks_are_what_nodes_can_read_and_keep_to_their_limits(body: dict[str, Any]) -> None:
    made, parts = priced(body, node(1, devices=(CandidateDevice("L4", 24_000),) * 2, gpu_speed=1e12))
    new = tasks_of(understood(body), parts, made.costs_max_uc, made.limit_s, bytes(32), ContainersSettings())
    assert not isinstance(new, TaskObjection)
    for one, part in zip(new, parts, strict=True):
        task = read_task(one.body)
        assert isinstance(task, Task)
        assert (task.kind, task.devices) == (body["kind"], part.needs.devices)
        assert task.limits.memory_bytes >= part.needs.memory_mib * 2**20
        assert task.limits.seconds >= (part.needs.seconds or 1)
        assert one.cost_max_uc > 0


def test_a_task_that_does_not_fit_an_offer_is_refused() -> None:
    script = {"seconds": 5, "program": "pass", "arguments": ["a" * 4096] * 20}
    made, parts = priced({"kind": "script", "parameters": script}, node(1))
    refused = tasks_of(
        understood({"kind": "script", "parameters": script}),
        parts,
        made.costs_max_uc,
        made.limit_s,
        bytes(32),
        ContainersSettings(),
    )
    assert isinstance(refused, TaskObjection)


def test_a_quote_says_when_nobody_could_check_the_results() -> None:
    def is_warned(body: dict[str, Any], *nodes: Seller) -> bool:
        made, _ = priced(body, *nodes)
        warned = any("No house node" in why for why in notes_of(replace(made, is_checkable=True)))
        assert made.is_checkable is not warned, "these are all that the pool has"
        return warned

    assert is_warned(TEXTS, node(1))
    assert is_warned(TEXTS, node(1), node(2, house=True, memory_mib=16)), "one that is too small checks nothing"
    assert not is_warned(TEXTS, node(1), node(2, house=True))
    assert not is_warned(MATMUL, node(1)), "a product is proved"
    assert not is_warned({**TEXTS, "tasks": 1, "expected": ["0" * 64]}, node(1))


def test_a_training_says_first_how_long_it_takes_and_what_the_budget_is_enough_for() -> None:
    asked = {"type": "ml_training", "dataset_size": "500GB", "model_params": "70B", "max_budget": 1000}
    first = priced(asked, node(1))[0].reasoning[0]
    assert "days" in first
    assert "times your budget of 1000 credits" in first
    enough = re.search(
        r"enough for ([0-9.]+[KMBT]?) parameters on all samples, or all parameters on ([0-9.]+[KMGT]?B)", first
    )
    assert enough, first
    for less in ({"model_params": enough[1]}, {"dataset_size": enough[2]}):
        made, _ = priced({**asked, **less}, node(1))
        assert 500_000_000 < made.high_uc <= 1_001_000_000
        assert "budget" not in made.reasoning[0] or made.high_uc > 1_000_000_000


OWN_PROGRAM = {"kind": "script", "parameters": {"program": "print(1)", "seconds": 60}}


@pytest.mark.parametrize(
    ("body", "refused"),
    [(OWN_PROGRAM, True), (TEXTS, True), ({**OWN_PROGRAM, "expected": ["00" * 32]}, False), (MATMUL, False)],
)
@pytest.mark.parametrize("house", [None, {"memory_mib": 100}, {"kinds": frozenset({"matmul"})}])
def test_what_no_house_node_could_ever_check_cannot_be_confirmed(
    body: dict[str, Any], refused: bool, house: dict[str, Any] | None
) -> None:
    """It ran, its log was read, and a day later the money went back."""
    order = understood(body)
    parts = divide(order, ())
    assert not isinstance(parts, TaskObjection)
    houses = [] if house is None else [node(2, house=True, **house).candidate]
    made = quote(order, parts, Supply([node(1)], 200_000, houses), RULES, None, NOW)
    refusal = why_not(made, None, "credit")
    assert (refusal is JobRefusal.UNCHECKABLE) is refused
    assert not refused or not any("No house node" in note for note in notes_of(made)), "it is said once"
    away = quote(order, parts, Supply([node(1)], 200_000, [node(2, house=True).candidate]), RULES, None, NOW)
    assert why_not(away, None, "credit") is None, "a house node that is away comes back"
