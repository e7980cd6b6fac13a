"""C = A·B, slab by slab: the right matrix stays in memory, the left one and the product pass through."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tidemill.agent.inside.dialogue import ProgressMeter, UnfitInput, carry_out
from tidemill.agent.inside.multipliers import multiplier
from tidemill.core.matrices.npy import HEADER_MAX_BYTES, MatrixLayout, UnreadableFile, header_of, read_layout
from tidemill.core.matrices.products import RESULTS, blocks, product_rows, slabs
from tidemill.core.matrices.seeded_matrices import LEFT, RIGHT, drawn_rows


def matmul(parameters: dict[str, Any], progress: ProgressMeter) -> None:
    work = parameters["work"]
    m, n, k, element = work["m"], work["n"], work["k"], work["element"]
    left = _rows(parameters, "a", LEFT, (m, k))
    right = _rows(parameters, "b", RIGHT, (k, n))
    on = multiplier(work["devices"])
    rights = [on.load(_whole(right, block, n)) for block in blocks(element, k)]
    with open("out/c.npy", "wb") as out:
        out.write(header_of(MatrixLayout(RESULTS[element], m, n)))
        for rows in slabs(m, max(n, k)):
            product = product_rows(left(rows), rights, element, on.multiply)
            out.write(product.astype(np.dtype(product.dtype).newbyteorder("<"), copy=False).data)
            progress.at(rows.stop, m)


def _rows(parameters: dict[str, Any], name: str, number: int, shape: tuple[int, int]) -> Callable[[range], Any]:
    """A function that returns some rows of a factor."""
    work = parameters["work"]
    if (seed := work.get("seed")) is not None:
        return lambda rows: drawn_rows(seed, number, work["element"], shape[1], rows)
    entries = _mapped(name, parameters["inputs"][name], work["element"], shape)
    return lambda rows: entries[rows.start : rows.stop]


def _mapped(name: str, path: str, element: str, shape: tuple[int, int]) -> Any:
    """The matrix in an untrusted file, read when it is used. Its header must say this type and this shape."""
    with open(path, "rb") as file:
        layout = read_layout(file.read(HEADER_MAX_BYTES), os.fstat(file.fileno()).st_size)
    if isinstance(layout, UnreadableFile):
        raise UnfitInput(f"The input {name} cannot be used. {layout.sentence}")
    if (layout.element, layout.rows, layout.columns) != (element, *shape):
        found_layout = f"{layout.rows:,} × {layout.columns:,} of {layout.element}"
        raise UnfitInput(f"The input {name} is {found_layout}; the task says {shape[0]:,} × {shape[1]:,} of {element}.")
    stored = np.dtype(element).newbyteorder("<")
    return np.memmap(path, dtype=stored, mode="r", offset=layout.begins_at, shape=shape)


def _whole(right: Callable[[range], Any], block: slice, columns: int) -> Any:
    """A block of the right matrix as float32, filled slab by slab."""
    rows = block.stop - block.start
    entries = np.empty((rows, columns), dtype=np.float32)
    for some in slabs(rows, columns):
        entries[some.start : some.stop] = right(range(block.start + some.start, block.start + some.stop))
    return entries


if __name__ == "__main__":
    carry_out(matmul)
