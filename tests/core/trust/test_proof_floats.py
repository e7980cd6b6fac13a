"""Products of floats: whatever honest arithmetic gives is accepted, and what it cannot give is found."""

import hashlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.trust.test_proofs import SECRET, a_statement
from tidemill.core.trust.checks import products
from tidemill.core.trust.checks.products import ClaimedProduct, Factors
from tidemill.core.trust.checks.verdict import Ruling
from tidemill.core.trust.proofs.floats import ROWS, SUSPECTS_MAX, VECTORS, Examination, Precision, examine, signs

DRAW = hashlib.sha256(b"a draw").digest()
F32 = Precision.FLOAT32


def factors(m: int, k: int, n: int, seed: int, scale: float = 1.0) -> tuple[Any, Any]:
    dice = np.random.default_rng(seed)
    left, right = dice.standard_normal((m, k)), dice.standard_normal((k, n))
    return (left * scale).astype(np.float32), right.astype(np.float32)


def one_by_one(left: Any, right: Any, order: Any) -> Any:
    """The sums in float32, added in this order, each rounded."""
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for place in order:
            total += left[:, place : place + 1] * right[place : place + 1]
    return total


def truncated(values: Any, bits: int) -> Any:
    """float32 with fewer bits, cut off as some devices do."""
    return (values.view(np.uint32) & np.uint32(2**32 - 2**bits)).view(np.float32)


def looked(left: Any, right: Any, claimed: Any, precision: Precision = F32, draw: bytes = DRAW) -> Examination:
    return examine(left, right, claimed, precision, draw)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 30),
    st.integers(1, 80),
    st.integers(1, 30),
    st.integers(0, 2**32),
    st.sampled_from([1.0, 1e-30, 1e-38, 1e-44, 1e30]),
    st.sampled_from(["library", "forwards", "backwards", "shuffled", "smallest first"]),
)
def test_honest_sums_in_any_order_and_of_any_size_are_accepted(
    m: int, k: int, n: int, seed: int, scale: float, way: str
) -> None:
    left, right = factors(m, k, n, seed, scale)
    order = {
        "forwards": np.arange(k),
        "backwards": np.arange(k)[::-1],
        "shuffled": np.random.default_rng(seed).permutation(k),
        "smallest first": np.argsort(np.abs(left[0])),
    }
    claimed = left @ right if way == "library" else one_by_one(left, right, order[way])
    found = looked(left, right, claimed, draw=b"%d" % seed)
    assert found.wrong is None
    assert not found.rows_suspect


@pytest.mark.parametrize("k", [1, 7, 500, 3_000])
def test_other_precisions_are_accepted_as_what_they_are(k: int) -> None:
    left, right = factors(20, k, 20, k)
    assert looked(left, right, truncated(left, 13) @ truncated(right, 13), Precision.TENSOR_FLOAT32).wrong is None
    half_left, half_right = left.astype(np.float16), right.astype(np.float16)
    exact = half_left.astype(np.float64) @ half_right.astype(np.float64)
    assert looked(half_left, half_right, exact.astype(np.float16), Precision.FLOAT16).wrong is None
    brain_left, brain_right = truncated(left, 16), truncated(right, 16)
    rounded = truncated(brain_left @ brain_right, 16)
    assert looked(brain_left, brain_right, rounded, Precision.BFLOAT16).wrong is None


def test_a_coarser_precision_is_found_where_sums_are_short() -> None:
    """Where they are long, the errors of honest float32 may be as large: the bound says so and does not pretend."""
    left, right = factors(20, 50, 20, 1)
    coarse = truncated(left, 13) @ truncated(right, 13)
    assert looked(left, right, coarse).wrong is not None
    assert looked(left, right, truncated(left @ right, 12)).wrong is not None


def test_small_numbers_that_a_device_takes_as_zero_are_accepted() -> None:
    left, right = factors(8, 20, 8, 2)
    tiny = (left * np.float32(1e-40)).astype(np.float32)
    assert looked(tiny, right, np.zeros((8, 8), dtype=np.float32)).wrong is None
    half = (left * 1e-5).astype(np.float16), (right * 1e-3).astype(np.float16)
    exact = half[0].astype(np.float64) @ half[1].astype(np.float64)
    assert looked(*half, exact.astype(np.float16), Precision.FLOAT16).wrong is None


def test_a_zero_of_either_sign_is_zero() -> None:
    left, right = np.zeros((4, 3), dtype=np.float32), np.ones((3, 5), dtype=np.float32)
    assert looked(left, right, np.full((4, 5), -0.0, dtype=np.float32)).wrong is None
    assert looked(left, right, np.full((4, 5), 1e-30, dtype=np.float32)).wrong is not None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38, 1e6])
@pytest.mark.parametrize("whole_row", [True, False])
def test_what_is_no_number_or_far_too_large_is_found_wherever_it_stands(value: float, whole_row: bool) -> None:
    left, right = factors(300, 60, 40, 3)
    for row in (0, 123, 299):
        claimed = left @ right
        claimed[row, slice(None) if whole_row else 17] = value
        found = looked(left, right, claimed)
        assert found.wrong is not None
        assert found.wrong.row == row


def test_rows_of_no_numbers_do_not_hide_a_wrong_one_among_them() -> None:
    left, right = factors(300, 60, 40, 4)
    claimed = left @ right
    claimed[10:200] = np.nan
    found = looked(left, right, claimed)
    assert found.wrong is not None
    assert found.rows_unsettled == 190 - SUSPECTS_MAX


def test_an_honest_overflow_is_accepted_and_a_claimed_one_is_not() -> None:
    left, right = factors(30, 40, 20, 5)
    left *= np.float32(3e37)
    claimed = one_by_one(left, right, range(40))
    assert not np.isfinite(claimed).all()
    found = looked(left, right, claimed)
    assert found.wrong is None
    assert found.entries_overflowing
    sane_left, sane_right = factors(30, 40, 20, 5)
    assert looked(sane_left, sane_right, np.full((30, 20), np.inf, dtype=np.float32)).wrong is not None


def test_a_row_that_was_not_computed_is_found_wherever_it_is() -> None:
    left, right = factors(2_000, 64, 64, 6)
    honest = left @ right
    dice = np.random.default_rng(7)
    for row in dice.integers(0, 2_000, 20):
        for wrong in (np.zeros(64), honest[row - 1], dice.standard_normal(64) * honest[row].std()):
            claimed = honest.copy()
            claimed[row] = wrong
            found = looked(left, right, claimed, draw=b"%d" % row)
            assert found.wrong is not None
            assert found.wrong.row == row


def test_one_entry_far_off_is_found_by_vectors_alone() -> None:
    """Twice the bound of its row's sum is found with a probability of 1 − 2^-32."""
    left, right = factors(1_000, 64, 64, 8)
    for number in range(50):
        claimed = left @ right
        claimed[number * 20, number] += 1.0
        found = looked(left, right, claimed, draw=b"%d" % number)
        assert found.wrong is not None
        assert (found.wrong.row, found.wrong.column) == (number * 20, number)


def test_small_errors_everywhere_are_found_in_the_drawn_rows() -> None:
    """A prover who stays below the bound of the sums, and above that of entries, must do so in few rows."""
    left, right = factors(400, 64, 64, 9)
    magnitudes = np.abs(left) @ np.abs(right)
    claimed = (left @ right + magnitudes * np.float32(64 * 2.0**-23 * 1.5)).astype(np.float32)
    found = looked(left, right, claimed)
    assert found.wrong is not None
    half = left @ right
    half[::2] = claimed[::2]
    missed = sum(looked(left, right, half, draw=b"%d" % number).wrong is None for number in range(30))
    assert missed == 0  # one in 2^16 draws takes good rows only


def test_changes_in_the_null_space_of_known_vectors_are_found_by_others() -> None:
    """With the draw in hand a prover hides anything; so the draw is made of the commitment."""
    left, right = factors(500, 50, 64, 10)
    known = signs(DRAW, 64)
    change = np.linalg.svd(known.T)[2][-1] * 1_000
    assert np.abs(change @ known).max() < 1e-9
    drawn = looked(left, right, left @ right).rows_computed
    claimed = (left @ right).astype(np.float64)
    claimed[333] += change
    claimed32 = claimed.astype(np.float32)
    assert drawn == ROWS
    assert VECTORS < 64
    for number in range(20):
        found = looked(left, right, claimed32, draw=b"%d" % number)
        assert found.wrong is not None
        assert found.wrong.row == 333


def test_two_entries_that_cancel_are_found() -> None:
    left, right = factors(500, 50, 64, 11)
    for number in range(40):
        claimed = left @ right
        claimed[200, 5] += 10
        claimed[200, 6] -= 10
        assert looked(left, right, claimed, draw=b"%d" % number).wrong is not None


def test_the_check_passes_fails_and_reviews() -> None:
    left, right = factors(30, 40, 20, 12)

    def ruled(claimed: Any, left: Any = left, right: Any = right) -> Ruling:
        evidence = Factors(left, right, SECRET, F32)
        return products.check(ClaimedProduct(a_statement(left, right, claimed), claimed), evidence).ruling

    assert ruled(left @ right) is Ruling.PASS
    assert ruled((left @ right) + np.float32(1)) is Ruling.FAIL
    assert ruled((left @ right).astype(np.int32)) is Ruling.FAIL
    assert ruled(np.full((30, 20), np.nan, dtype=np.float32)) is Ruling.FAIL
    huge = left * np.float32(3e37)
    assert ruled(one_by_one(huge, right, range(40)), huge) is Ruling.REVIEW
    unfit = left.copy()
    unfit[0, 0] = np.nan
    assert ruled(left @ right, unfit) is Ruling.REVIEW
