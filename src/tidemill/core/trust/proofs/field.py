"""The field of a non-interactive proof: pairs of residues modulo p = 2^61 − 1, as complex numbers a + b·i.

−1 has no root modulo p, so these form a field, of p² or nearly 2^122 elements: so many that trying 2^80 hashes still
finds no draw that suits a lie. One element is a pair of Python's integers; many are an array of two rows.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidemill.core.trust.proofs.freivalds import MODULUS, MODULUS_BITS

FieldElement: TypeAlias = tuple[int, int]
Elements: TypeAlias = NDArray[np.int64]
"""Two rows: the real parts, and those of i."""

ELEMENT_BYTES = 16

_HALF_BITS = 31
_HALF = 2**_HALF_BITS - 1
_UPPER_BITS = MODULUS_BITS - _HALF_BITS


def plus(left: FieldElement, right: FieldElement) -> FieldElement:
    return (left[0] + right[0]) % MODULUS, (left[1] + right[1]) % MODULUS


def minus(left: FieldElement, right: FieldElement) -> FieldElement:
    return (left[0] - right[0]) % MODULUS, (left[1] - right[1]) % MODULUS


def times(left: FieldElement, right: FieldElement) -> FieldElement:
    (a, b), (c, d) = left, right
    return (a * c - b * d) % MODULUS, (a * d + b * c) % MODULUS


def element_bytes(element: FieldElement) -> bytes:
    return element[0].to_bytes(8, "big") + element[1].to_bytes(8, "big")


def read_element(encoded: bytes) -> FieldElement | None:
    """The inverse; None for bytes that `element_bytes` does not write."""
    real, imaginary = int.from_bytes(encoded[:8], "big"), int.from_bytes(encoded[8:], "big")
    return (real, imaginary) if len(encoded) == ELEMENT_BYTES and max(real, imaginary) < MODULUS else None


def all_times(lefts: Elements, rights: Elements) -> Elements:
    """Products, entry by entry."""
    (a, b), (c, d) = lefts, rights
    return np.stack(((_times(a, c) - _times(b, d)) % MODULUS, (_times(a, d) + _times(b, c)) % MODULUS))


def scaled(elements: Elements, element: FieldElement) -> Elements:
    """Each times the same element."""
    return all_times(elements, np.array(element, dtype=np.int64)[:, None])


def summed(elements: Elements) -> FieldElement:
    """The sum of all of them. Halves of 31 bits are added, so that no sum of up to 2^32 overflows."""
    low, high = (elements & _HALF).sum(axis=1), (elements >> _HALF_BITS).sum(axis=1)
    real, imaginary = (
        (int(upper) * 2**_HALF_BITS + int(lower)) % MODULUS for lower, upper in zip(low, high, strict=True)
    )
    return real, imaginary


def weights(point: Sequence[FieldElement], count: int) -> Elements:
    """The weight of each of the first `count` corners of a cube at a point; the first coordinate is the highest bit."""
    corners = np.array([[1], [0]], dtype=np.int64)
    for coordinate in point:
        upper = scaled(corners, coordinate)
        corners = np.stack(((corners - upper) % MODULUS, upper), axis=2).reshape(2, -1)
    return corners[:, :count]


def _times(lefts: NDArray[np.int64], rights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Residues times residues. 2^61 is 1, so bits above the 61st are added below it."""
    low, high = lefts & _HALF, lefts >> _HALF_BITS
    other_low, other_high = rights & _HALF, rights >> _HALF_BITS
    middle = high * other_low + low * other_high
    wrapped = 2 * high * other_high + (middle >> _UPPER_BITS)
    below = ((middle & (2**_UPPER_BITS - 1)) << _HALF_BITS) + (low * other_low) % MODULUS
    residues: NDArray[np.int64] = (wrapped + below) % MODULUS
    return residues
