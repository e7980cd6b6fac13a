"""Products of int8, checked after the fact: the node commits to C, then the pool draws vectors and compares.

A·(B·r) = C·r modulo 2^61 − 1 is Freivalds' check. Entries of C beyond the largest sum of K products are refused first,
so the difference of C and A·B is smaller than the modulus, and zero only where they are equal. A wrong C that was fixed
before the vector was drawn passes one vector with a probability of at most 2^-60; several vectors multiply. Small
products are recomputed, which is then cheaper and leaves no chance at all.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from tidemill.core.matrices.products import K_MAX, blocks, multiply_here, product_rows, slabs
from tidemill.core.trust.proofs.freivalds import Integers, Residues, largest, products, residues

VECTORS = 1
RECOMPUTE_MAX_PRODUCTS = 160**3
"""Recomputing up to so many products is cheaper than drawing a vector; measured by bench/proofs.py."""

_LARGEST_PRODUCT = 2**14
_VECTORS = b"tidemill product vectors\0"


def is_right(left: Integers, right: Integers, claimed: Integers, draw: bytes, vectors: int = VECTORS) -> bool:
    """Whether the product is right, in the cheaper way. `draw` was made after all three were committed to."""
    if not is_possible(left, right, claimed):
        return False
    if is_recomputed(claimed.shape[0], left.shape[1], claimed.shape[1]):
        return is_equal(left, right, claimed)
    return each_agrees(right, [(left, claimed)], draw, vectors)[0]


def each_agrees(
    right: Integers, parts: Sequence[tuple[Integers, Integers]], draw: bytes, vectors: int = VECTORS
) -> list[bool]:
    """Freivalds' check of several products that share a right matrix, which is multiplied once for all of them.

    Each wrong one passes as rarely as alone; the probability that any passes is at most the sum of theirs.
    """
    drawn = drawn_vectors(draw, right.shape[1], vectors)
    through = products(right, drawn)
    return [
        is_possible(left, right, claimed) and np.array_equal(products(left, through), products(claimed, drawn))
        for left, claimed in parts
    ]


def is_possible(left: Integers, right: Integers, claimed: Integers) -> bool:
    """Whether these are the types and shapes of a product, and no entry is larger than a sum of K products can be."""
    (m, k), n = left.shape, right.shape[1]
    is_shaped = right.shape[0] == k and claimed.shape == (m, n) and min(m, n, k) > 0 and k <= K_MAX
    is_typed = left.dtype == right.dtype == np.int8 and claimed.dtype == np.int32
    return is_shaped and is_typed and largest(claimed) <= k * _LARGEST_PRODUCT


def is_recomputed(m: int, k: int, n: int) -> bool:
    """Whether recomputing is the cheaper check."""
    return m * n * k <= RECOMPUTE_MAX_PRODUCTS


def is_equal(left: Integers, right: Integers, claimed: Integers) -> bool:
    """Whether the product is right, by recomputing it."""
    rights = [right[block].astype(np.float32) for block in blocks("int8", right.shape[0])]
    return all(
        np.array_equal(
            product_rows(left[rows.start : rows.stop], rights, "int8", multiply_here), claimed[rows.start : rows.stop]
        )
        for rows in slabs(left.shape[0], right.shape[1])
    )


def drawn_vectors(draw: bytes, columns: int, vectors: int) -> Residues:
    """The vectors that follow from a draw, a row each."""
    numbers = residues(hashlib.shake_256(_VECTORS + draw).digest(8 * columns * vectors))
    return numbers.reshape(vectors, columns)
