"""Products of matrices, slab by slab; exact for int8.

Floating-point units are the fastest multipliers, and exact as long as no sum needs more bits than they have. A product
of two int8 is at most 2^14, so 1,024 of them add up to at most 2^24, which float32 holds exactly, in whatever order a
library adds and whether or not it fuses. So K is cut into blocks of 1,024, each multiplied in float32 and added up in
int32, which is enough for K below 2^17. Products of float32 are as exact as the library.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BLOCK = 1024
"""2^24 ÷ (2^7 · 2^7)."""

K_MAX = 2**16
SLAB_BYTES = 32 * 2**20
RESULTS = {"int8": "int32", "float32": "float32"}
"""The element type of a product, by the type of its factors."""

Multiply = Callable[[Any, Any], Any]
"""Two float32 matrices, the right one as `held` made it, to a numpy array of float32."""


def slabs(rows: int, columns: int) -> Iterator[range]:
    """Rows in portions whose entries fit in a slab's memory as float32."""
    at_once = max(1, SLAB_BYTES // (4 * max(1, columns)))
    return (range(first, min(first + at_once, rows)) for first in range(0, rows, at_once))


def blocks(element: str, k: int) -> list[slice]:
    """The portions of K that are multiplied at once."""
    step = BLOCK if element == "int8" else max(1, k)
    return [slice(first, min(first + step, k)) for first in range(0, k, step)]


def product_rows(left: Any, rights: list[Any], element: str, multiply: Multiply) -> Any:
    """Rows of the product: `left` as it was read, and the right matrix as float32, in the blocks that K has."""
    total: Any = None
    for block, right in zip(blocks(element, left.shape[1]), rights, strict=True):
        part = multiply(left[:, block].astype(np.float32), right).astype(RESULTS[element], copy=False)
        if total is None:
            total = part
        else:
            total += part
    return total


def multiply_here(left: Any, right: Any) -> Any:
    """On this machine's processors."""
    return left @ right
