"""What customers write, read: sizes, counts, ranges and whole orders; and what is no order."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.jobs.kinds.kind import KindRefusal, TaskObjection
from tidemill.core.jobs.quotes import Order, parse_order
from tidemill.core.jobs.quotes.quantities import BYTES, COUNT, LARGEST, MEBIBYTES, PLAIN, Range, amount, range_of
from tidemill.core.jobs.quotes.tasks import divide

MATMUL: dict[str, Any] = {"kind": "matmul", "parameters": {"m": 8, "n": 8, "k": 8, "element": "int8", "seed": 1}}
SCENE = {"camera": {"at": {"x": 0, "y": 0, "z": 0}, "towards": {"x": 0, "y": 0, "z": 1000}}}

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


def understood(body: dict[str, Any], most: int = 1_000) -> Order:
    order = parse_order(body, most)
    assert isinstance(order, Order), order
    return order


@pytest.mark.parametrize(
    ("text", "units", "found"),
    [
        ("500GB", BYTES, 500 * 10**9),
        ("70B", COUNT, 70 * 10**9),
        ("1.5b", COUNT, 1_500_000_000),
        (7, COUNT, 7),
        ("24 GiB", MEBIBYTES, 24 * 1024),
        ("1e999", BYTES, None),
        ("-1GB", BYTES, None),
        (float("inf"), BYTES, None),
        (float("nan"), BYTES, None),
        (True, BYTES, None),
        ("GB", BYTES, None),
        ("9" * 40, PLAIN, None),
        (10**40, PLAIN, None),
        ("٣GB", BYTES, None),
        (None, PLAIN, None),
    ],
)
def test_quantities_as_customers_write_them(text: object, units: Any, found: int | None) -> None:
    assert amount(text, units) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1..16", Range(Decimal(1), Decimal(16))),
        ("4..", Range(Decimal(4), None)),
        ("..2.5", Range(None, Decimal("2.5"))),
        ("3", Range(Decimal(3), Decimal(3))),
        (3, Range(Decimal(3), Decimal(3))),
        ("..", None),
        ("9..2", None),
        ("1..2..3", None),
        ("a..b", None),
    ],
)
def test_ranges_as_customers_write_them(text: object, found: Range | None) -> None:
    assert range_of(text, PLAIN) == found


@given(ANYTHING)
def test_nothing_that_is_read_is_larger_than_we_count(raw: object) -> None:
    for units in (BYTES, COUNT, MEBIBYTES, PLAIN):
        found = amount(raw, units)
        assert found is None or (found.is_finite() and 0 <= found <= LARGEST)
        range_of(raw, units)


@given(
    st.dictionaries(st.sampled_from(["kind", "type", "tasks", "inputs", "max_budget", "memory", "expected"]), ANYTHING)
)
def test_whatever_is_sent_is_an_order_or_an_objection(body: dict[str, Any]) -> None:
    assert isinstance(parse_order(body), Order | TaskObjection)
    assert isinstance(parse_order({**MATMUL, **body, "kind": "matmul"}), Order | TaskObjection)


def test_an_order_says_what_it_may_cost_and_when_it_must_be_done() -> None:
    wishes = {"max_budget": "1.5", "deadline": "2h", "hourly": "..0.5", "memory": "2GiB..", "priority": "low"}
    order = understood({**MATMUL, **wishes})
    assert (order.budget_uc, order.deadline_s, order.requirements.hourly_max_uc) == (1_500_000, 7_200, 500_000)
    assert (order.memory_mib, order.priority.value) == (2048, "low")


def test_memory_that_is_too_little_for_the_work_is_refused() -> None:
    objection = parse_order({**MATMUL, "memory": "..64MiB"})
    assert isinstance(objection, TaskObjection)
    assert objection.refusal is KindRefusal.WORK_TOO_LARGE


def test_a_seeded_product_that_is_asked_for_several_times_has_the_next_seed_each_time() -> None:
    parts = divide(understood({**MATMUL, "tasks": 3}), ())
    assert not isinstance(parts, TaskObjection)
    assert [part.task.parameters["seed"] for part in parts] == [1, 2, 3]


def test_texts_are_divided_so_that_each_is_embedded_once_and_every_task_fits_an_offer() -> None:
    texts = [f"{number} " + "word " * (number * 7 % 900) for number in range(400)]
    parts = divide(understood({"kind": "embed", "parameters": {"texts": texts}, "tasks": "1..100"}), ())
    assert not isinstance(parts, TaskObjection)
    assert [text for part in parts for text in part.task.parameters["texts"]] == texts  # type: ignore[attr-defined]
    assert max(sum(map(len, part.task.parameters["texts"])) for part in parts) < 50_000  # type: ignore[call-overload]


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 64))
def test_bands_of_a_picture_are_together_the_whole_picture(width: int, height: int, tasks: int) -> None:
    asked = {"kind": "render", "parameters": {"scene": SCENE, "width": width, "height": height}, "tasks": f"..{tasks}"}
    order = parse_order(asked)
    if isinstance(order, TaskObjection):
        assert width * height > 16 * 1024 * 1024 // 2
        return
    parts = divide(order, ())
    assert not isinstance(parts, TaskObjection)
    tiles: list[Any] = [part.task.parameters["tile"] for part in parts]
    assert [tile["y"] for tile in tiles] == [0, *(tile["y"] + tile["height"] for tile in tiles[:-1])]
    assert tiles[-1]["y"] + tiles[-1]["height"] == height
    assert {(tile["x"], tile["width"]) for tile in tiles} == {(0, width)}


def test_a_picture_that_is_larger_than_a_task_is_divided() -> None:
    parameters = {"scene": SCENE, "width": 32_768, "height": 32_768}
    parts = divide(understood({"kind": "render", "parameters": parameters}), ())
    assert not isinstance(parts, TaskObjection)
    assert len(parts) > 60


def test_a_program_that_is_run_several_times_finds_its_number() -> None:
    script = {"seconds": 5, "program": "pass", "arguments": ["{task}", "of {tasks}"]}
    parts = divide(understood({"kind": "script", "parameters": script, "tasks": 3}), ())
    assert not isinstance(parts, TaskObjection)
    assert [part.task.parameters["arguments"] for part in parts] == [["0", "of 3"], ["1", "of 3"], ["2", "of 3"]]


def test_a_job_has_no_more_tasks_than_the_pool_allows() -> None:
    assert isinstance(parse_order({**MATMUL, "tasks": 1_001}), TaskObjection)
    assert understood({**MATMUL, "tasks": 1_000}).tasks == (1_000, 1_000)
    many = {"kind": "render", "parameters": {"scene": SCENE, "width": 32_768, "height": 32_768}}
    assert isinstance(parse_order(many, 5), TaskObjection)


def test_expected_results_are_one_for_each_task() -> None:
    one = "ab" * 32
    assert isinstance(divide(understood({**MATMUL, "tasks": 2, "expected": [one]}), ()), TaskObjection)
    parts = divide(understood({**MATMUL, "expected": one}), ())
    assert not isinstance(parts, TaskObjection)
