"""Freivalds' check is exact: it agrees with arithmetic on whole numbers, and a wrong product is found."""

import secrets

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.trust.proofs.freivalds import MODULUS, product, residues, rows_agree

Integers = np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def agrees(left: Integers, right: Integers, claimed: Integers, vector: Integers) -> bool:
    return rows_agree(left, product(right, vector), claimed, vector)


def drawn(count: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return residues(secrets.token_bytes(8 * count))


def by_hand(matrix: np.ndarray[tuple[int, ...], np.dtype[np.int64]], vector: list[int]) -> list[int]:
    return [sum(int(entry) * one for entry, one in zip(row, vector, strict=True)) % MODULUS for row in matrix]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 300), st.integers(0, 32), st.integers(0, 2**32))
def test_a_product_is_what_whole_numbers_give(rows: int, columns: int, bits: int, seed: int) -> None:
    dice = np.random.default_rng(seed)
    most = 2**bits - 1
    matrix = dice.integers(-most, most, (rows, columns), endpoint=True)
    vector = dice.integers(0, MODULUS, columns)
    assert product(matrix, vector).tolist() == by_hand(matrix, vector.tolist())


@pytest.mark.parametrize("entry", [2**32 - 1, -(2**32) + 1])
def test_the_largest_entries_and_numbers_stay_exact(entry: int) -> None:
    matrix = np.full((2, 8192), entry, dtype=np.int64)
    vector = np.full(8192, MODULUS - 1, dtype=np.int64)
    assert product(matrix, vector).tolist() == by_hand(matrix, vector.tolist())


def test_what_could_not_be_exact_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        product(np.array([[2**40]]), drawn(1))


def test_drawn_numbers_are_below_the_modulus() -> None:
    assert residues(b"\xff" * 16).tolist() == [0, 0]
    numbers = drawn(10_000)
    assert numbers.min() >= 0
    assert numbers.max() < MODULUS
    assert len(set(numbers.tolist())) == 10_000


def test_a_right_product_agrees_and_one_wrong_entry_does_not() -> None:
    dice = np.random.default_rng(7)
    left, right = dice.integers(-128, 128, (40, 60)), dice.integers(-128, 128, (60, 50))
    claimed = left @ right
    assert agrees(left, right, claimed, drawn(50))
    for row, column in [(0, 0), (17, 3), (39, 49)]:
        wrong = claimed.copy()
        wrong[row, column] += 1
        assert not agrees(left, right, wrong, drawn(50))


def test_a_wrong_row_that_was_made_to_fit_one_vector_fails_another() -> None:
    """Why the vector is drawn after the product is fixed."""
    dice = np.random.default_rng(8)
    left, right = dice.integers(-8, 8, (4, 64)), dice.integers(-8, 8, (64, 64))
    known = dice.integers(0, 2, 64)
    known[:2] = 1
    wrong = left @ right
    wrong[2, 0] += 5
    wrong[2, 1] -= 5
    assert agrees(left, right, wrong, known)
    assert not agrees(left, right, wrong, drawn(64))


def test_rows_are_checked_alone() -> None:
    dice = np.random.default_rng(9)
    left, right = dice.integers(-8, 8, (30, 64)), dice.integers(-8, 8, (64, 64))
    vector = drawn(64)
    through = product(right, vector)
    assert rows_agree(left[5:7], through, left[5:7] @ right, vector)
    assert not rows_agree(left[5:7], through, left[6:8] @ right, vector)
