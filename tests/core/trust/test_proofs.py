"""Products of integers: right ones hold, wrong ones do not, also for a prover who knows all but the draw."""

import dataclasses
import hashlib
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.core.matrices.npy import MatrixLayout, header_of
from tidemill.core.trust.checks import products
from tidemill.core.trust.checks.products import ClaimedProduct, Factors
from tidemill.core.trust.checks.verdict import Ruling
from tidemill.core.trust.proofs.freivalds import MODULUS
from tidemill.core.trust.proofs.integers import (
    drawn_vectors,
    each_agrees,
    is_equal,
    is_possible,
    is_recomputed,
    is_right,
)
from tidemill.core.trust.proofs.statement import Statement, challenge, is_about, matrix_digest, statement_bytes

SECRET = b"known to the pool alone"
DRAW = hashlib.sha256(b"a draw").digest()
sides = st.integers(1, 40)


def factors(m: int, k: int, n: int, seed: int) -> tuple[Any, Any, Any]:
    dice = np.random.default_rng(seed)
    left, right = dice.integers(-128, 128, (m, k), dtype=np.int8), dice.integers(-128, 128, (k, n), dtype=np.int8)
    return left, right, (left.astype(np.int64) @ right.astype(np.int64)).astype(np.int32)


def a_statement(left: Any, right: Any, product: Any, **changes: Any) -> Statement:
    made = Statement(
        task_id=UUID(int=1),
        attempt_id=UUID(int=2),
        node_id=UUID(int=3),
        lease=4,
        m=left.shape[0],
        n=right.shape[1],
        k=left.shape[1],
        left=matrix_digest(left),
        right=matrix_digest(right),
        product=matrix_digest(product),
    )
    return dataclasses.replace(made, **changes)


def agrees(left: Any, right: Any, claimed: Any, draw: bytes, vectors: int = 1) -> bool:
    """Freivalds' check, however small the product is."""
    return each_agrees(right, [(left, claimed)], draw, vectors)[0]


@settings(deadline=None, max_examples=60)
@given(sides, sides, sides, st.integers(0, 2**32), st.binary(min_size=32, max_size=32), st.integers(1, 3))
def test_a_right_product_holds_whatever_its_size_and_the_draw(
    m: int, k: int, n: int, seed: int, draw: bytes, vectors: int
) -> None:
    left, right, product = factors(m, k, n, seed)
    assert agrees(left, right, product, draw, vectors)
    assert is_equal(left, right, product)
    assert is_right(left, right, product, draw)


@settings(deadline=None, max_examples=200)
@given(sides, sides, sides, st.integers(0, 2**32), st.binary(min_size=32, max_size=32), st.data())
def test_any_changed_entry_is_found(m: int, k: int, n: int, seed: int, draw: bytes, data: st.DataObject) -> None:
    left, right, product = factors(m, k, n, seed)
    row, column = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    other = data.draw(st.integers(-(2**31), 2**31 - 1).filter(lambda one: one != product[row, column]))
    product[row, column] = other
    assert not agrees(left, right, product, draw)
    assert not is_equal(left, right, product)
    assert not is_right(left, right, product, draw)


def test_a_product_too_large_to_be_multiplied_again_is_checked_by_a_draw() -> None:
    left, right, product = factors(190, 180, 170, 5)
    assert not is_recomputed(190, 180, 170)
    assert is_right(left, right, product, DRAW)
    product[189, 169] -= 1
    assert not is_right(left, right, product, DRAW)


def test_the_largest_sums_there_are_hold_and_one_more_does_not() -> None:
    left, right = np.full((2, 65_536), -128, dtype=np.int8), np.full((65_536, 3), -128, dtype=np.int8)
    product = np.full((2, 3), 2**30, dtype=np.int32)
    assert agrees(left, right, product, DRAW)
    assert is_equal(left, right, product)
    product[1, 2] += 1
    assert not agrees(left, right, product, DRAW)
    assert not is_possible(left, right, product)


def test_an_entry_that_is_off_by_the_modulus_is_refused_by_its_size() -> None:
    """Modulo 2^61 − 1 it would be right; so would one off by 2^32 after it was cut to 32 bits."""
    left, right, product = factors(8, 8, 8, 6)
    wrong = product.astype(np.int64)
    wrong[3, 3] += MODULUS
    assert not is_right(left, right, wrong, DRAW)
    assert not agrees(left, right, wrong, DRAW)
    shifted = product.astype(np.int64)
    shifted[3, 3] += 2**32
    assert not is_right(left, right, shifted, DRAW)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.uint32, np.int16, ">i4"])
def test_a_product_of_another_type_is_none_even_if_its_numbers_are_right(kind: Any) -> None:
    left, right, product = factors(4, 5, 6, 7)
    assert not is_right(left, right, np.abs(product).astype(kind), DRAW)


def test_a_product_of_another_shape_is_none() -> None:
    left, right, product = factors(4, 5, 6, 8)
    for wrong in (product[:3], product[:, :5], product.T, product[:0], product.reshape(6, 4)):
        assert not is_right(left, right, wrong, DRAW)
    assert not is_possible(left[:, :4], right, product)


def test_a_wrong_product_made_to_fit_a_known_draw_passes_it_and_fails_every_other() -> None:
    """The prover who learns the draw before it commits wins; so the draw is made of the commitment."""
    left, right, product = factors(1, 65_536, 40, 9)
    known = drawn_vectors(DRAW, 40, 1)[0].tolist()
    wrong = product.copy()
    column, change = next(
        (pair, found)
        for pair in range(0, 40, 2)
        if max(map(abs, found := shortest(known[pair], known[pair + 1]))) < 2**29
    )
    wrong[0, column] += change[0]
    wrong[0, column + 1] += change[1]
    assert not is_equal(left, right, wrong)
    assert agrees(left, right, wrong, DRAW)
    for other in range(20):
        assert not agrees(left, right, wrong, hashlib.sha256(b"%d" % other).digest())
    assert challenge(SECRET, a_statement(left, right, wrong)) != challenge(SECRET, a_statement(left, right, product))


def test_rows_that_cancel_each_other_are_found() -> None:
    left, right, product = factors(16, 16, 16, 11)
    for change in ((0, 0, 1), (0, 1, -1), (1, 0, -1), (1, 1, 1)):
        product[change[0], change[1]] += change[2]
    assert product.sum() == (left.astype(np.int64) @ right.astype(np.int64)).sum()
    assert not agrees(left, right, product, DRAW)


def test_products_of_one_right_matrix_are_judged_together_and_each_for_itself() -> None:
    left, right, product = factors(60, 50, 40, 12)
    parts = [(left[at : at + 20], product[at : at + 20].copy()) for at in (0, 20, 40)]
    parts[1][1][7, 7] += 1
    assert each_agrees(right, parts, DRAW) == [True, False, True]


def test_drawn_vectors_are_below_the_modulus_and_all_different() -> None:
    drawn = drawn_vectors(DRAW, 5_000, 2)
    assert drawn.min() >= 0
    assert drawn.max() < MODULUS
    assert len(set(drawn.ravel().tolist())) == 10_000


def test_every_part_of_a_statement_changes_the_draw() -> None:
    left, right, product = factors(2, 3, 4, 13)
    made = a_statement(left, right, product)
    changed = [
        dataclasses.replace(made, **{name: value})
        for name, value in {
            "task_id": UUID(int=9),
            "attempt_id": UUID(int=9),
            "node_id": UUID(int=9),
            "lease": 9,
            "m": 9,
            "n": 9,
            "k": 9,
            "left": bytes(32),
            "right": bytes(32),
            "product": bytes(32),
        }.items()
    ]
    draws = {challenge(SECRET, one) for one in (made, *changed)} | {challenge(b"another secret", made)}
    assert len(draws) == len(changed) + 2
    assert len({len(statement_bytes(one)) for one in changed}) == 1


def test_a_matrix_is_named_by_the_file_that_holds_it() -> None:
    left, _, product = factors(2, 3, 4, 14)
    assert matrix_digest(left) == hashlib.sha256(header_of(MatrixLayout("int8", 2, 3)) + left.tobytes()).digest()
    assert matrix_digest(np.asfortranarray(product)) == matrix_digest(product)
    assert matrix_digest(left.reshape(3, 2)) != matrix_digest(left)


def test_a_check_takes_only_what_was_committed_to() -> None:
    left, right, product = factors(5, 6, 7, 15)
    of = a_statement(left, right, product)
    evidence = Factors(left, right, SECRET)
    assert products.check(ClaimedProduct(of, product), evidence).ruling is Ruling.PASS
    wrong = product.copy()
    wrong[0, 0] += 1
    other_left = left.copy()
    other_left[0, 0] ^= 1
    tries = [
        (ClaimedProduct(of, wrong), evidence),
        (ClaimedProduct(a_statement(left, right, wrong), wrong), evidence),
        (ClaimedProduct(of, product.astype(np.int64)), evidence),
        (ClaimedProduct(of, product.T), evidence),
        (ClaimedProduct(of, product), Factors(other_left, right, SECRET)),
        (ClaimedProduct(a_statement(other_left, right, product), product), evidence),
        (ClaimedProduct(dataclasses.replace(of, m=6), product), evidence),
    ]
    assert {products.check(claim, one).ruling for claim, one in tries} == {Ruling.FAIL}
    assert not is_about(of, left, right, product.astype(np.float64))


def shortest(one: int, other: int) -> tuple[int, int]:
    """The smallest whole numbers, not both zero, with x·one + y·other divisible by the modulus."""
    slope = (-other * pow(one, -1, MODULUS)) % MODULUS
    longer, shorter = (MODULUS, 0), (slope, 1)
    while True:
        if norm(longer) < norm(shorter):
            longer, shorter = shorter, longer
        dot = longer[0] * shorter[0] + longer[1] * shorter[1]
        times = round_divided(dot, norm(shorter))
        if times == 0:
            return shorter
        longer = (longer[0] - times * shorter[0], longer[1] - times * shorter[1])


def norm(vector: tuple[int, int]) -> int:
    return vector[0] ** 2 + vector[1] ** 2


def round_divided(one: int, other: int) -> int:
    return (2 * one + other) // (2 * other)
