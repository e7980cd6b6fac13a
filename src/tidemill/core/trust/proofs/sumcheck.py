"""A non-interactive proof of C = A·B: a sumcheck whose draws are hashes of the transcript so far.

Each matrix stands for the one polynomial that is linear in every bit of a row's and a column's number. At a drawn point
(x, y), C's polynomial must be the sum over all z of A's at (x, z) times B's at (z, y). A round for each bit of z halves
that sum, with a quadratic polynomial that must agree with the claim; what remains is one value of each matrix, which
anybody with the matrices computes at the cost of two vectors each.

Soundness: for a wrong C each draw saves the liar with a probability of at most 32 ÷ 2^121 (the first, of at most 32
coordinates) or 2 ÷ 2^121 (each round). Trying 2^80 hashes succeeds with a probability below 2^-36. The proof hides
nothing: it is not zero-knowledge. Without the matrices it is only self-consistent, which anybody can achieve.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidemill.core.trust.proofs.field import (
    ELEMENT_BYTES,
    Elements,
    FieldElement,
    all_times,
    element_bytes,
    minus,
    plus,
    read_element,
    scaled,
    summed,
    times,
    weights,
)
from tidemill.core.trust.proofs.freivalds import MODULUS, Integers, products
from tidemill.core.trust.proofs.integers import is_possible
from tidemill.core.trust.proofs.refusals import ProofRefusal
from tidemill.core.trust.proofs.statement import Statement, is_about, statement_bytes

_VERSION = b"\x01"
_PURPOSE = b"tidemill sumcheck 1\0"


@dataclass(frozen=True)
class ProofValues:
    """What a proof reduces to: one value of each matrix, at points that nobody chose."""

    rows: tuple[FieldElement, ...]
    columns: tuple[FieldElement, ...]
    inner: tuple[FieldElement, ...]
    left: FieldElement
    right: FieldElement
    product: FieldElement


class _Transcript:
    """All messages so far, as a hash that determines the draws."""

    def __init__(self, statement: Statement) -> None:
        self._state = hashlib.sha256(_PURPOSE + statement_bytes(statement)).digest()

    def add(self, *elements: FieldElement) -> None:
        self._state = hashlib.sha256(self._state + b"said" + b"".join(map(element_bytes, elements))).digest()

    def drawn(self, count: int) -> tuple[FieldElement, ...]:
        """Elements from 16 bytes a part, so that none is likelier than another by more than 2^-66 of its chance."""
        random = hashlib.shake_256(self._state + b"drawn").digest(2 * ELEMENT_BYTES * count)
        parts = [int.from_bytes(random[at : at + 16], "big") % MODULUS for at in range(0, len(random), 16)]
        return tuple(zip(parts[::2], parts[1::2], strict=True))


def prove(statement: Statement, left: Integers, right: Integers) -> bytes:
    """A proof of a true statement. Whoever made the statement has computed the product and hashed the matrices."""
    transcript = _Transcript(statement)
    rows, columns = _points(transcript, statement)
    lefts = products(left.T, weights(rows, statement.m))
    rights = products(right, weights(columns, statement.n))
    sum_ = summed(all_times(lefts, rights))
    transcript.add(sum_)
    messages = [sum_]
    for _ in range(_bits(statement.k)):
        (lefts, left_step), (rights, right_step) = _halves(lefts), _halves(rights)
        round_ = summed(all_times(lefts, rights)), summed(all_times(left_step, right_step))
        transcript.add(*round_)
        messages += round_
        (drawn,) = transcript.drawn(1)
        lefts, rights = _folded(lefts, left_step, drawn), _folded(rights, right_step, drawn)
    messages += summed(lefts), summed(rights)
    return _VERSION + b"".join(map(element_bytes, messages))


def replay(statement: Statement, proof: bytes) -> ProofValues | ProofRefusal:
    """What the proof reduces to, if it agrees with itself and with the statement."""
    messages = _read(proof, _bits(statement.k))
    if messages is None:
        return ProofRefusal.PROOF_MALFORMED
    product, *rounds, left, right = messages
    transcript = _Transcript(statement)
    rows, columns = _points(transcript, statement)
    transcript.add(product)
    sum_, inner = product, []
    for at_zero, square in zip(rounds[::2], rounds[1::2], strict=True):
        transcript.add(at_zero, square)
        (drawn,) = transcript.drawn(1)
        sum_ = _at(sum_, at_zero, square, drawn)
        inner.append(drawn)
    if sum_ != times(left, right):
        return ProofRefusal.PROOF_INCONSISTENT
    return ProofValues(rows, columns, tuple(inner), left, right, product)


def refused_proof(
    statement: Statement, proof: bytes, left: Integers, right: Integers, product: Integers
) -> ProofRefusal | None:
    """Why the proof does not show that this is the product; None if it does."""
    values = replay(statement, proof)
    if isinstance(values, ProofRefusal):
        return values
    if not is_about(statement, left, right, product):
        return ProofRefusal.PROOF_OF_OTHER_MATRICES
    is_right = (
        is_possible(left, right, product)
        and value_at(left, values.rows, values.inner) == values.left
        and value_at(right, values.inner, values.columns) == values.right
        and value_at(product, values.rows, values.columns) == values.product
    )
    return None if is_right else ProofRefusal.PROOF_WRONG


def value_at(matrix: Integers, rows: Sequence[FieldElement], columns: Sequence[FieldElement]) -> FieldElement:
    """The value of a matrix's polynomial."""
    across = products(matrix, weights(columns, matrix.shape[1]))
    return summed(all_times(across, weights(rows, matrix.shape[0])))


def _points(transcript: _Transcript, statement: Statement) -> tuple[tuple[FieldElement, ...], tuple[FieldElement, ...]]:
    """The drawn point of C: its row's coordinates, and its column's."""
    drawn = transcript.drawn(_bits(statement.m) + _bits(statement.n))
    return drawn[: _bits(statement.m)], drawn[_bits(statement.m) :]


def _halves(elements: Elements) -> tuple[Elements, Elements]:
    """The half whose highest bit is 0, and its difference to the other half; a missing entry is zero."""
    half = 2 ** (_bits(elements.shape[1]) - 1)
    upper = np.zeros((2, half), dtype=np.int64)
    upper[:, : elements.shape[1] - half] = elements[:, half:]
    return elements[:, :half], (upper - elements[:, :half]) % MODULUS


def _folded(elements: Elements, step: Elements, drawn: FieldElement) -> Elements:
    folded: Elements = (elements + scaled(step, drawn)) % MODULUS
    return folded


def _at(sum_: FieldElement, at_zero: FieldElement, square: FieldElement, drawn: FieldElement) -> FieldElement:
    """The value of the quadratic polynomial whose values at 0 and 1 have this sum."""
    slope = minus(minus(sum_, plus(at_zero, at_zero)), square)
    return plus(at_zero, times(drawn, plus(slope, times(drawn, square))))


def _read(proof: bytes, rounds: int) -> list[FieldElement] | None:
    """The elements of a proof; None for bytes that are no proof with so many rounds."""
    body = proof[len(_VERSION) :]
    if proof[: len(_VERSION)] != _VERSION or len(body) != ELEMENT_BYTES * (2 * rounds + 3):
        return None
    read = [read_element(body[at : at + ELEMENT_BYTES]) for at in range(0, len(body), ELEMENT_BYTES)]
    return None if None in read else [element for element in read if element is not None]


def _bits(count: int) -> int:
    """How many bits the numbers below a count have."""
    return (count - 1).bit_length()
