"""Freivalds' check, exact: whether a product of integer matrices is right, at the cost of a few vectors.

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
_SLAB_ENTRIES = 2**17
"""A mebibyte of float64, which stays in the cache of one core."""

Integers: TypeAlias = NDArray[np.integer] | NDArray[np.floating]
"""Whole numbers, possibly stored as floats."""

Residues: TypeAlias = NDArray[np.int64]
"""Numbers from 0 to the modulus, exclusive."""


def residues(random: bytes) -> Residues:
    """A vector from random bytes, eight for each number; a number deviates from an even draw by less than 2^-60."""
    assert len(random) % 8 == 0, "a number is made of eight bytes"
    words = np.frombuffer(random, dtype="<u8")
    numbers: Residues = (words >> np.uint64(3)).astype(np.int64) % MODULUS
    return numbers


def product(matrix: Integers, vector: Residues) -> Residues:
    """The matrix times the vector, modulo the prime."""
    numbers: Residues = products(matrix, vector[None, :])[0]
    return numbers


def products(matrix: Integers, vectors: Residues) -> Residues:
    """The matrix times each of the vectors, a row for each. It becomes floats slab by slab, in the cache."""
    rows, columns = matrix.shape
    assert vectors.shape[1:] == (columns,), "a matrix has as many columns as a vector has numbers"
    piece_bits = _EXACT_BITS - largest(matrix).bit_length() - (columns - 1).bit_length()
    assert piece_bits > 0, "the matrix is too wide to be multiplied exactly"
    lows = range(0, MODULUS_BITS, piece_bits)
    pieces = [((vector >> low) & (2**piece_bits - 1)).astype(np.float64) for vector in vectors for low in lows]
    sums = np.empty((len(pieces), rows))
    at_once = max(1, _SLAB_ENTRIES // columns)
    slab = np.empty((min(rows, at_once), columns))
    for first in range(0, rows, at_once):
        rows_in_slab = slab[: min(at_once, rows - first)]
        np.copyto(rows_in_slab, matrix[first : first + at_once])
        for piece, sum_ in zip(pieces, sums, strict=True):
            np.dot(rows_in_slab, piece, out=sum_[first : first + at_once])
    return _joined(sums.reshape(len(vectors), len(lows), rows), lows)


def largest(matrix: Integers) -> int:
    """The largest magnitude among the entries, or a bound of it where the type has a small one."""
    if matrix.dtype.itemsize == 1:
        return 2**8 - 1
    most = max(abs(int(matrix.max())), abs(int(matrix.min())))
    assert most.bit_length() <= _ENTRY_BITS_MAX, "entries have at most 32 bits"
    return most


def rows_agree(left: Integers, right_times_vector: Residues, claimed: Integers, vector: Residues) -> bool:
    """Whether some rows of a product are right, as far as this vector tells. The right matrix is already multiplied."""
    return bool(np.array_equal(product(left, right_times_vector), product(claimed, vector)))


def _joined(sums: NDArray[np.float64], lows: range) -> Residues:
    """The sums of the pieces, combined."""
    total = np.zeros((sums.shape[0], sums.shape[2]), dtype=np.int64)
    for index, low in enumerate(lows):
        total = (total + _shifted(sums[:, index].astype(np.int64) % MODULUS, low)) % MODULUS
    return total


def _shifted(numbers: Residues, bits: int) -> Residues:
    """Times 2^bits: modulo 2^61 − 1 that turns the 61 bits around."""
    return ((numbers << bits) & MODULUS) | (numbers >> (MODULUS_BITS - bits)) if bits else numbers
