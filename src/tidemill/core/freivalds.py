"""Freivalds' check, exact: whether a product of integer matrices is right, for the price of a few vectors.

To check A·B = C one draws a vector r after C is fixed, and compares A·(B·r) with C·r modulo the prime 2^61 − 1. A wrong
row of C agrees by chance once in 2^61 draws. Entries are integers of at most 32 bits. A vector is cut into pieces so
small that every sum fits into the 53 bits of a float64, so that the fast multiplication of floats stays exact.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

MODULUS_BITS = 61
MODULUS = 2**MODULUS_BITS - 1

_EXACT_BITS = 53
_ENTRY_BITS_MAX = 32

Integers: TypeAlias = NDArray[np.integer] | NDArray[np.floating]
"""Whole numbers, also where they are kept as floats."""

Residues: TypeAlias = NDArray[np.int64]
"""Numbers from 0 to the modulus, exclusive."""


def residues(random: bytes) -> Residues:
    """A vector from random bytes, eight for each number; a number is off an even draw by less than 2^-60."""
    assert len(random) % 8 == 0, "a number is made of eight bytes"
    words = np.frombuffer(random, dtype="<u8")
    numbers: Residues = (words >> np.uint64(3)).astype(np.int64) % MODULUS
    return numbers


def product(matrix: Integers, vector: Residues) -> Residues:
    """The matrix times the vector, modulo the prime."""
    columns = matrix.shape[1]
    assert vector.shape == (columns,), "a matrix has as many columns as the vector has numbers"
    floats = matrix.astype(np.float64)
    most = int(max(abs(floats.max(initial=0)), abs(floats.min(initial=0))))
    assert most.bit_length() <= _ENTRY_BITS_MAX, "entries have at most 32 bits"
    piece_bits = _EXACT_BITS - most.bit_length() - columns.bit_length()
    assert piece_bits > 0, "the matrix is too wide to be multiplied exactly"
    total = np.zeros(matrix.shape[0], dtype=np.int64)
    for low in range(0, MODULUS_BITS, piece_bits):
        pieces = (vector >> low) & (2**piece_bits - 1)
        sums = (floats @ pieces.astype(np.float64)).astype(np.int64) % MODULUS
        total = (total + _shifted(sums, low)) % MODULUS
    return total


def agrees(left: Integers, right: Integers, claimed: Integers, vector: Residues) -> bool:
    """Whether left · right = claimed, as far as this vector tells."""
    return rows_agree(left, product(right, vector), claimed, vector)


def rows_agree(left: Integers, right_times_vector: Residues, claimed: Integers, vector: Residues) -> bool:
    """The same for some rows of a product, whose right matrix was multiplied by the vector already."""
    return bool(np.array_equal(product(left, right_times_vector), product(claimed, vector)))


def _shifted(numbers: Residues, bits: int) -> Residues:
    """Times 2^bits: modulo 2^61 − 1 that turns the 61 bits around."""
    return ((numbers << bits) & MODULUS) | (numbers >> (MODULUS_BITS - bits)) if bits else numbers
