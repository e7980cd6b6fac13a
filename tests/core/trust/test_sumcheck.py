"""The proof that nobody draws for: honest ones convince, and a prover who adapts at every step does not."""

import dataclasses
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.trust.test_proofs import a_statement, factors
from tidemill.core.trust.proofs import sumcheck
from tidemill.core.trust.proofs.field import (
    ELEMENT_BYTES,
    FieldElement,
    all_times,
    element_bytes,
    minus,
    plus,
    read_element,
    summed,
    times,
    weights,
)
from tidemill.core.trust.proofs.freivalds import MODULUS
from tidemill.core.trust.proofs.refusals import ProofRefusal
from tidemill.core.trust.proofs.statement import Statement
from tidemill.core.trust.proofs.sumcheck import ProofValues, prove, refused_proof, replay

residues = st.integers(0, MODULUS - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**60, MODULUS - 1])
elements = st.tuples(residues, residues)
sides = st.integers(1, 20)


@given(st.lists(st.tuples(elements, elements), min_size=1, max_size=20))
def test_many_are_multiplied_and_added_as_one_is(pairs: list[tuple[FieldElement, FieldElement]]) -> None:
    ones, others = (np.array(column, dtype=np.int64).T for column in zip(*pairs, strict=True))
    made = all_times(ones, others)
    assert [tuple(element) for element in made.T.tolist()] == [times(one, other) for one, other in pairs]
    total: FieldElement = (0, 0)
    for one, other in pairs:
        total = plus(total, times(one, other))
    assert summed(made) == total


@given(elements, elements, elements)
def test_it_is_a_field(one: FieldElement, other: FieldElement, third: FieldElement) -> None:
    assert times(one, plus(other, third)) == plus(times(one, other), times(one, third))
    assert times(times(one, other), third) == times(one, times(other, third))
    assert minus(plus(one, other), other) == one
    if one != (0, 0):
        length = pow(one[0] ** 2 + one[1] ** 2, -1, MODULUS)
        assert times(one, (one[0] * length % MODULUS, -one[1] * length % MODULUS)) == (1, 0)


@given(elements)
def test_an_element_has_one_encoding(element: FieldElement) -> None:
    encoded = element_bytes(element)
    assert read_element(encoded) == element
    assert read_element((element[0] + MODULUS).to_bytes(8, "big") + encoded[8:]) is None
    assert read_element(encoded[:8] + (element[1] + MODULUS).to_bytes(8, "big")) is None
    assert read_element(encoded[:-1]) is None


def test_the_weights_of_a_corner_are_one_at_itself_and_nowhere_else() -> None:
    for place in range(8):
        point = [((place >> bit) & 1, 0) for bit in (2, 1, 0)]
        assert weights(point, 8)[0].tolist() == [int(one == place) for one in range(8)]
        assert not weights(point, 8)[1].any()


@settings(deadline=None, max_examples=60)
@given(sides, sides, sides, st.integers(0, 2**32))
def test_an_honest_proof_convinces_whatever_the_sizes(m: int, k: int, n: int, seed: int) -> None:
    left, right, product = factors(m, k, n, seed)
    of = a_statement(left, right, product)
    proof = prove(of, left, right)
    assert isinstance(replay(of, proof), ProofValues)
    assert refused_proof(of, proof, left, right, product) is None


@settings(deadline=None, max_examples=60)
@given(sides, sides, sides, st.integers(0, 2**32), st.data())
def test_one_wrong_entry_cannot_be_proved(m: int, k: int, n: int, seed: int, data: st.DataObject) -> None:
    left, right, product = factors(m, k, n, seed)
    product[data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))] += data.draw(st.sampled_from([-1, 1]))
    of = a_statement(left, right, product)
    assert refused_proof(of, prove(of, left, right), left, right, product) is ProofRefusal.PROOF_WRONG
    for forged in forgeries(of, left, right, product):
        assert isinstance(replay(of, forged), ProofValues), "it agrees with itself, as anybody can make it"
        assert refused_proof(of, forged, left, right, product) is ProofRefusal.PROOF_WRONG


def forgeries(of: Statement, left: Any, right: Any, product: Any) -> list[bytes]:
    """What a prover does who knows the rules: claims C's own value, spreads the lie over rounds, and hides it last."""
    return [
        forged(of, left, right, product, lie_in, hide_in)
        for lie_in in ("first", "every", "last")
        for hide_in in ("left", "right")
    ]


def forged(of: Statement, left: Any, right: Any, product: Any, lie_in: str, hide_in: str) -> bytes:
    transcript = sumcheck._Transcript(of)
    rows, columns = sumcheck._points(transcript, of)
    lefts = sumcheck.products(left.T, weights(rows, of.m))
    rights = sumcheck.products(right, weights(columns, of.n))
    claim = sumcheck.value_at(product, rows, columns)
    transcript.add(claim)
    said = [claim]
    for turn in range((of.k - 1).bit_length()):
        (lefts, left_step), (rights, right_step) = sumcheck._halves(lefts), sumcheck._halves(rights)
        at_zero, square = summed(all_times(lefts, rights)), summed(all_times(left_step, right_step))
        if lie_in == "every" or (lie_in == "first" and turn == 0):
            at_zero, square = plus(at_zero, (turn + 1, 7)), plus(square, (3, turn))
        transcript.add(at_zero, square)
        said += [at_zero, square]
        (drawn,) = transcript.drawn(1)
        claim = sumcheck._at(claim, at_zero, square, drawn)
        lefts = sumcheck._folded(lefts, left_step, drawn)
        rights = sumcheck._folded(rights, right_step, drawn)
    true = summed(rights if hide_in == "left" else lefts)
    value = (1, 0) if true == (0, 0) else true
    length = pow(value[0] ** 2 + value[1] ** 2, -1, MODULUS)
    hidden = times(claim, (value[0] * length % MODULUS, -value[1] * length % MODULUS))
    last = (hidden, value) if hide_in == "left" else (value, hidden)
    return b"\x01" + b"".join(map(element_bytes, [*said, *last]))


def test_every_flipped_bit_is_refused() -> None:
    left, right, product = factors(5, 9, 6, 1)
    of = a_statement(left, right, product)
    proof = prove(of, left, right)
    for place in range(8 * len(proof)):
        wrong = bytearray(proof)
        wrong[place // 8] ^= 1 << place % 8
        assert isinstance(replay(of, bytes(wrong)), ProofRefusal)
    for wrong_length in (b"", proof[:-1], proof + b"\0", proof[:-ELEMENT_BYTES], proof + bytes(ELEMENT_BYTES)):
        assert replay(of, wrong_length) is ProofRefusal.PROOF_MALFORMED


@pytest.mark.parametrize(
    "changes",
    [
        {"task_id": UUID(int=9)},
        {"attempt_id": UUID(int=9)},
        {"node_id": UUID(int=9)},
        {"lease": 5},
        {"left": bytes(32)},
        {"right": bytes(32)},
        {"product": bytes(32)},
        {"m": 6},
        {"n": 7},
        {"k": 10},
    ],
)
def test_a_proof_is_of_one_statement_only(changes: dict[str, Any]) -> None:
    left, right, product = factors(5, 9, 6, 2)
    of = a_statement(left, right, product)
    other = dataclasses.replace(of, **changes)
    assert replay(other, prove(of, left, right)) is ProofRefusal.PROOF_INCONSISTENT


def test_a_true_proof_convinces_nobody_of_other_matrices() -> None:
    left, right, product = factors(5, 9, 6, 3)
    of = a_statement(left, right, product)
    proof = prove(of, left, right)
    other = left.copy()
    other[0, 0] ^= 1
    for matrices in ((other, right, product), (left, right.T.copy(), product), (left, right, product.astype(np.int64))):
        assert refused_proof(of, proof, *matrices) is ProofRefusal.PROOF_OF_OTHER_MATRICES


def test_a_product_that_is_right_modulo_the_field_only_is_refused() -> None:
    """int32 holds no modulus, but a statement can name matrices of another type."""
    left, right, product = factors(3, 4, 5, 4)
    floats = product.astype(np.float32)
    of = a_statement(left, right, floats)
    assert refused_proof(of, prove(of, left, right), left, right, floats) is ProofRefusal.PROOF_WRONG


def test_grinding_does_not_help() -> None:
    """Every hash that is tried is one draw; the likeliest lucky one is that of a point with 32 coordinates.

    Who tries 2^80 hashes to prove a wrong product succeeds with a probability of less than 2^-36.
    """
    lucky = 32 / MODULUS**2
    assert 2**80 * lucky < 2**-36


def test_a_prover_who_tries_many_products_finds_none_that_a_draw_lets_pass() -> None:
    left, right, product = factors(4, 4, 4, 5)
    for change in range(1, 60):
        product[change % 4, change // 4 % 4] += change
        of = a_statement(left, right, product)
        assert refused_proof(of, prove(of, left, right), left, right, product) is ProofRefusal.PROOF_WRONG
