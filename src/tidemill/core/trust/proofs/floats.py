"""Products of floats: right within the error that their arithmetic may make, which follows from its types and from K.

Honest arithmetic, in whatever order it adds, is off by at most E = ε·(|A|·|B|) + τ in each entry: ε from rounding each
input, each of K sums and the output, τ from numbers that vanish below the smallest one. There are two checks, both
after C is fixed. **Every row** is multiplied by drawn vectors of ±1; for an honest row the sum stays below a bound H
that follows from the lengths of B's rows, except with probability 2^-70. **Some rows**, drawn ones and those above H,
are recomputed in float64, and every entry is compared with E.

So a result within E is accepted for certain: a row fails only by its entries. In a recomputed row, an entry that is off
by more than E and the small error of float64 is found for certain. An entry that is off by more than 2·H makes its row
suspect with a probability of at least 1 − 2^-32, whatever else is wrong with it. Smaller errors are found in drawn rows
only: if a share f of the rows is wrong, with a probability of 1 − (1 − f)^16. That is less than for integers, and
cannot be improved: honest devices differ.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tidemill.core.merkle import drawn_places

VECTORS = 32
ROWS = 16
SUSPECTS_MAX = 64
"""How many rows above the bound are recomputed: those that are furthest off."""

_FLOAT64_ROUNDOFF = 2.0**-53
_SMALLEST_FLOAT32 = 2.0**-126
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
_SPREAD = 10.0
"""For an honest row, a sum of ±1 times its errors exceeds so many times its length with probability 2^-70 at most."""

_SLAB_ENTRIES = 2**17
"""A mebibyte of float64, which stays in the cache of one core."""

_VECTORS = b"tidemill float vectors\0"

Floats: TypeAlias = NDArray[np.floating]
Doubles: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Arithmetic:
    """A device's arithmetic: roundoff of inputs and output, where they vanish, and the largest number.

    Sums are of float32. Every roundoff is that of truncation, twice that of rounding, and of sums two bits more for
    tensor cores, which align several numbers before they add. Numbers below the smallest normal one may be taken as 0.
    """

    inputs: float
    sums: float
    output: float
    input_vanishing: float
    output_vanishing: float
    largest: float

    def error(self, k: int) -> float:
        """ε: by how much of |A|·|B| an entry may be off."""
        added = k * self.sums / (1 - k * self.sums)
        return (1 + self.inputs) ** 2 * (1 + added) * (1 + self.output) - 1

    def vanished(self, k: int) -> float:
        """τ: by how much an entry may be off because products, sums or the output became zero."""
        return 4 * k * _SMALLEST_FLOAT32 + self.output_vanishing


class Precision(Enum):
    """The supported arithmetics. Inputs of float16 and bfloat16 are already rounded."""

    FLOAT32 = Arithmetic(0.0, 2.0**-23, 0.0, _SMALLEST_FLOAT32, 0.0, _LARGEST_FLOAT32)
    TENSOR_FLOAT32 = Arithmetic(2.0**-10, 2.0**-21, 0.0, _SMALLEST_FLOAT32, 0.0, _LARGEST_FLOAT32)
    FLOAT16 = Arithmetic(0.0, 2.0**-21, 2.0**-10, 0.0, 2.0**-24, 65_504.0)
    BFLOAT16 = Arithmetic(0.0, 2.0**-21, 2.0**-7, _SMALLEST_FLOAT32, _SMALLEST_FLOAT32, 2.0**127 * (2 - 2.0**-7))


@dataclass(frozen=True)
class WrongEntry:
    """An entry that no honest arithmetic gives: its position, the claimed and right values, and the allowed error."""

    row: int
    column: int
    claimed: float
    right: float
    bound: float


@dataclass(frozen=True)
class Examination:
    """What was checked, and the worst error. `unsettled` rows might be wrong, and were too many to recompute."""

    wrong: WrongEntry | None
    rows_computed: int
    rows_suspect: int
    rows_unsettled: int
    entries_overflowing: int


def examine(left: Floats, right: Floats, claimed: Floats, precision: Precision, draw: bytes) -> Examination:
    """Check a product that was committed to before the draw. Entries are of at most 32 bits; inputs are finite."""
    assert max(matrix.dtype.itemsize for matrix in (left, right, claimed)) <= 4, "floats of at most 32 bits"
    assert left.shape[1] == right.shape[0], "the inner sides are equal"
    assert claimed.shape == (left.shape[0], right.shape[1]), "the product has the outer sides"
    arithmetic = precision.value
    suspects = _suspects(left, right, claimed, arithmetic, draw)
    rows = sorted({*drawn_places(draw, "rows", left.shape[0], ROWS), *suspects[:SUSPECTS_MAX]})
    wrong, overflowing = _compared(left[rows], right, claimed[rows], arithmetic)
    worst = wrong and replace(wrong, row=rows[wrong.row])
    return Examination(worst, len(rows), len(suspects), max(0, len(suspects) - SUSPECTS_MAX), overflowing)


def signs(draw: bytes, columns: int, vectors: int = VECTORS) -> Doubles:
    """The drawn vectors of ±1, one a column."""
    count = columns * vectors
    bits = np.unpackbits(np.frombuffer(hashlib.shake_256(_VECTORS + draw).digest(-(-count // 8)), dtype=np.uint8))
    drawn: Doubles = 1.0 - 2.0 * bits[:count].reshape(columns, vectors).astype(np.float64)
    return drawn


def _slabs(rows: int, columns: int) -> Iterator[slice]:
    at_once = max(1, _SLAB_ENTRIES // columns)
    return (slice(first, first + at_once) for first in range(0, rows, at_once))


@dataclass(frozen=True)
class _Right:
    """What is needed of B: its rows times the drawn vectors, their lengths and sums, and the sums of its columns."""

    drawn: Doubles
    times_drawn: Doubles
    lengths: Doubles
    sums: Doubles
    column_sums: Doubles


def _suspects(left: Floats, right: Floats, claimed: Floats, arithmetic: Arithmetic, draw: bytes) -> list[int]:
    """The rows whose sums no honest row has, the worst first; not-a-number is the worst."""
    factor = _right(right, signs(draw, right.shape[1]))
    portions = _slabs(left.shape[0], max(left.shape[1], claimed.shape[1]))
    over = np.concatenate([_excess(left[rows], factor, claimed[rows], arithmetic) for rows in portions])
    by_excess = np.argsort(-over, kind="stable")
    return [int(row) for row in by_excess[: int((over > 0).sum())]]


def _right(right: Floats, drawn: Doubles) -> _Right:
    k, n = right.shape
    times_drawn, lengths, sums = np.empty((k, drawn.shape[1])), np.empty(k), np.empty(k)
    column_sums = np.zeros(n)
    for part in _slabs(k, n):
        rows = right[part].astype(np.float64)
        times_drawn[part] = rows @ drawn
        np.abs(rows, out=rows)
        lengths[part] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        sums[part] = rows.sum(axis=1)
        column_sums += rows.sum(axis=0)
    return _Right(drawn, times_drawn, lengths, sums, column_sums)


def _excess(left: Floats, right: _Right, claimed: Floats, arithmetic: Arithmetic) -> Doubles:
    """How much larger a row's largest sum is than H; at most 0 for an honest row, infinite if a sum is no number."""
    lefts, claims = left.astype(np.float64), claimed.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        sums = np.abs(claims @ right.drawn - lefts @ right.times_drawn).max(axis=1)
        over = sums - _bounds(np.abs(lefts), right, np.abs(claims), arithmetic)
    excesses: Doubles = np.where(np.isfinite(over), over, np.inf)
    return excesses


def _bounds(lefts: Doubles, right: _Right, claims: Doubles, arithmetic: Arithmetic) -> Doubles:
    """H, from magnitudes, and the error of the sums of this check itself."""
    (_, k), n = lefts.shape, claims.shape[1]
    flushed = arithmetic.input_vanishing * (n**0.5 * lefts.sum(axis=1) + np.linalg.norm(right.column_sums))
    length = arithmetic.error(k) * (lefts @ right.lengths) + arithmetic.vanished(k) * n**0.5 + flushed
    own = 2 * (n + k + 2) * _FLOAT64_ROUNDOFF * (lefts @ right.sums + claims.sum(axis=1))
    bounds: Doubles = _SPREAD * length + own
    return bounds


def _compared(left: Floats, right: Floats, claimed: Floats, arithmetic: Arithmetic) -> tuple[WrongEntry | None, int]:
    """The worst entry of some rows, if one is wrong; and how many entries are no numbers because they overflowed."""
    k = left.shape[1]
    lefts, claims = left.astype(np.float64), claimed.astype(np.float64)
    exact, magnitudes = np.zeros(claims.shape), np.zeros(claims.shape)
    column_sums = np.zeros(claims.shape[1])
    for part in _slabs(k, right.shape[1]):
        rows = right[part].astype(np.float64)
        exact += lefts[:, part] @ rows
        np.abs(rows, out=rows)
        magnitudes += np.abs(lefts[:, part]) @ rows
        column_sums += rows.sum(axis=0)
    flushed = arithmetic.input_vanishing * (np.abs(lefts).sum(axis=1)[:, None] + column_sums)
    allowed = (arithmetic.error(k) + 4 * k * _FLOAT64_ROUNDOFF) * magnitudes + arithmetic.vanished(k) + flushed
    may_overflow = magnitudes + allowed >= arithmetic.largest
    overflowed = may_overflow & ~np.isfinite(claims)
    with np.errstate(invalid="ignore"):
        over = np.where(overflowed, -np.inf, np.abs(claims - exact) - allowed)
    over[np.isnan(over)] = np.inf
    row, column = divmod(int(over.argmax()), claims.shape[1])
    if over[row, column] <= 0:
        return None, int(overflowed.sum())
    figures = (float(values[row, column]) for values in (claims, exact, allowed))
    return WrongEntry(row, column, *figures), int(overflowed.sum())
