"""The timed multiplication: products of small integers, exact in float32, each row held by a digest.

Every product is A·B with one B and an A of its own, drawn from the seed. A row's digest is not linear in the row, so
C·r, which is cheap to compute as A·(B·r), does not help: whoever has the digest of a row has computed each of its
numbers. Digests are committed to before rows are drawn; a drawn row is shown in full, must have its committed digest,
and must agree with A·(B·r) by Freivalds' check. Entries are from −8 to 7, so sums stay far below a float32's 24 bits.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from tidemill.core.nodes.challenge.memory import scrambled
from tidemill.core.nodes.challenge.tasks import SpeedTask
from tidemill.core.trust.proofs.freivalds import Residues, product

_SLAB_ROWS = 512
_GOLDEN = 0x9E3779B97F4A7C15
_ODD_32 = 0x9E3779B1
_OTHER_ODD_32 = 0x85EBCA6B
_RIGHT = 2**32 - 1
"""The number of B among the matrices; no product has it."""


def digests(task: SpeedTask, xp: Any, each: Callable[..., Iterable[Any]] = map) -> Iterable[Any]:
    """The digests of each product's rows, product by product. This is the work that is timed. Products do not need each
    other, so `each`, which is called as `map` is, may have several cores multiply at once."""
    return each(partial(_product_digests, task, right_matrix(task, xp), xp), range(task.products))


def right_matrix(task: SpeedTask, xp: Any) -> Any:
    return left_rows(task, _RIGHT, 0, task.side, xp)


def left_rows(task: SpeedTask, number: int, first: int, count: int, xp: Any) -> Any:
    """Rows of the left matrix of a product, as float32. Sixteen entries come from one word."""
    width = task.side // 16
    places = xp.arange(first * width, (first + count) * width, dtype=xp.uint64)
    seed = (task.seed + number * _GOLDEN) % 2**64
    words = scrambled((places + xp.uint64(1)) * xp.uint64(_GOLDEN) ^ xp.uint64(seed), xp)
    words = scrambled(words + xp.uint64(seed), xp)
    halves = words.view(xp.uint8).reshape(count, task.side // 2)
    entries = xp.empty((count, task.side), dtype=xp.float32)
    entries[:, 0::2] = halves & xp.uint8(15)
    entries[:, 1::2] = halves >> xp.uint8(4)
    entries -= xp.float32(8)
    return entries


def row_digests(rows: Any, xp: Any) -> Any:
    """One number for each row; every entry counts, by its position."""
    keys = xp.arange(1, rows.shape[1] + 1, dtype=xp.uint32) * xp.uint32(_ODD_32)
    mixed = rows.astype(xp.int32).view(xp.uint32) ^ keys[None, :]
    mixed *= xp.uint32(_OTHER_ODD_32)
    mixed ^= mixed >> xp.uint32(15)
    mixed *= xp.uint32(_ODD_32)
    mixed ^= mixed >> xp.uint32(13)
    return mixed.sum(axis=1, dtype=xp.uint64)


def shown_row(task: SpeedTask, position: int, xp: Any) -> bytes:
    """A row of all products together, as it is shown: 32-bit integers, little end first."""
    number, row = divmod(position, task.side)
    row_product = left_rows(task, number, row, 1, xp) @ right_matrix(task, xp)
    return bytes(row_product.astype(xp.int32).tobytes())


def row_of(task: SpeedTask, encoded: bytes) -> Any:
    """The inverse, as a matrix of one row; None if the bytes are no row of this task."""
    if len(encoded) != task.side * 4:
        return None
    rows = np.frombuffer(encoded, dtype="<i4")[None, :]
    return rows if np.abs(rows.astype(np.int64)).max() <= 64 * task.side else None


def right_times(task: SpeedTask, vector: Residues) -> Residues:
    """B·r, drawn and multiplied slab by slab, so that B is never in memory as a whole."""
    slabs = range(0, task.side, _SLAB_ROWS)
    parts = [product(left_rows(task, _RIGHT, first, min(_SLAB_ROWS, task.side - first), np), vector) for first in slabs]
    return np.concatenate(parts)


def _product_digests(task: SpeedTask, right: Any, xp: Any, number: int) -> Any:
    return row_digests(left_rows(task, number, 0, task.side, xp) @ right, xp)
