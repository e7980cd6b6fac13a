"""Whose turn it is, and who goes where when many are placed at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from tests.worlds.candidates import ask, uuid
from tidemill.core.clock import HOUR, SECOND, Instant
from tidemill.core.placement.demand import PriorityLevel
from tidemill.core.placement.joint_placement import place_jointly
from tidemill.core.placement.turns import AGEING_US, DevicesAtWork, in_turn, level

NOW = Instant(100 * HOUR)


def test_a_higher_priority_comes_first_and_waiting_makes_up_for_a_lower_one() -> None:
    high = ask(priority=PriorityLevel.HIGH, submitted_at=NOW)
    low = ask(priority=PriorityLevel.LOW, submitted_at=NOW)
    old = ask(priority=PriorityLevel.LOW, submitted_at=Instant(NOW - 3 * AGEING_US))
    assert in_turn([low, high, old], {}, NOW) == [old, high, low]


def test_who_has_nothing_at_work_any_more_is_forgotten() -> None:
    at_work = DevicesAtWork()
    asked = [ask(customer_id=uuid(number % 7), devices=number % 3) for number in range(100)]
    for one in asked:
        at_work.begin(one)
    assert at_work.devices[uuid(1)] == pytest.approx(15.005)
    for one in reversed(asked):
        at_work.end(one)
    assert not at_work.devices


def test_a_request_from_the_future_gains_and_loses_nothing() -> None:
    assert level(ask(submitted_at=Instant(NOW + 50 * HOUR)), NOW) == PriorityLevel.NORMAL


def test_a_customer_with_a_thousand_requests_does_not_hold_up_one_with_two() -> None:
    many = [ask(customer_id=uuid(1), submitted_at=Instant(NOW - 9 * SECOND)) for _ in range(1000)]
    few = [ask(customer_id=uuid(2), submitted_at=NOW) for _ in range(2)]
    order = in_turn([*many, *few], {}, NOW)
    assert max(place for place, one in enumerate(order) if one.customer_id == uuid(2)) <= 4


def test_who_was_served_least_is_next_and_large_requests_count_more() -> None:
    large = [ask(customer_id=uuid(1), devices=4) for _ in range(2)]
    small = [ask(customer_id=uuid(2)) for _ in range(5)]
    assert [one.customer_id for one in in_turn([*large, *small], {uuid(1): 1.0}, NOW)] == [
        *[uuid(2), uuid(1)],
        *[uuid(2)] * 4,
        uuid(1),
    ]


@given(
    st.lists(
        st.builds(
            lambda c, p, at: ask(customer_id=uuid(c), priority=p, submitted_at=Instant(at)),
            st.integers(1, 4),
            st.sampled_from(PriorityLevel),
            st.integers(0, NOW),
        ),
        max_size=20,
    )
)
def test_everybody_gets_a_turn_and_nobody_of_a_lower_level_comes_before_a_higher(asked: list) -> None:  # type: ignore[type-arg]
    order = in_turn(asked, {}, NOW)
    assert sorted(map(repr, order)) == sorted(map(repr, asked))
    levels = [level(one, NOW) for one in order]
    assert levels == sorted(levels, reverse=True)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32), st.floats(0, 1))
@settings(deadline=None)
def test_an_assignment_is_close_to_the_best_there_is(rows: int, columns: int, seed: int, barred: float) -> None:
    dice = np.random.default_rng(seed)
    values = np.where(dice.random((rows, columns)) < barred, -np.inf, dice.random((rows, columns)) + 0.01)
    chosen = place_jointly(values)
    given = [(row, column) for row, column in enumerate(chosen.tolist()) if column >= 0]
    assert len({column for _, column in given}) == len(given)
    assert all(np.isfinite(values[pair]) for pair in given)
    worth = sum(values[pair] for pair in given)
    finite = np.where(np.isfinite(values), values, 0.0)
    assert worth >= finite[linear_sum_assignment(finite, maximize=True)].sum() - 0.006 * rows


def test_an_assignment_of_many_equal_requests_to_few_nodes_ends() -> None:
    chosen = place_jointly(np.ones((300, 7)))
    assert sorted(chosen[chosen >= 0].tolist()) == list(range(7))


def test_an_assignment_to_nobody_is_nobody() -> None:
    assert place_jointly(np.full((3, 2), -np.inf)).tolist() == [-1, -1, -1]
    assert place_jointly(np.zeros((2, 2))).tolist() == [-1, -1]
