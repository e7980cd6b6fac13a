"""Whether the openings of a device are right: by its own commitment, and by the arithmetic.

Cheap for the pool: drawn pages are recomputed from the pages shown with them, and all rows together cost one
multiplication of a matrix by a vector. Nothing here looks at a clock; `figures` does.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidemill.core.merkle import is_leaf_of, path_bytes
from tidemill.core.nodes.challenge.memory import ancestors, first_pages, pages_of
from tidemill.core.nodes.challenge.messages import (
    LEAF_BYTES,
    DeviceDraw,
    DeviceOpenings,
    DeviceTask,
    page_opening_bytes,
    row_opening_bytes,
)
from tidemill.core.nodes.challenge.multiplication import left_rows, right_times, row_digests, row_of
from tidemill.core.nodes.challenge.tasks import DIGESTS_IN_LEAF, PAGE_BYTES, MemoryTask, SpeedTask
from tidemill.core.trust.proofs.freivalds import Residues, residues, rows_agree


def is_memory_shown(task: DeviceTask, draw: DeviceDraw, openings: DeviceOpenings) -> bool:
    """Whether every drawn page was opened, was committed to, and follows from its ancestors."""
    memory = task.memory
    opened = [
        _committed_pages(memory, openings.memory_root, position, openings.pages.get(position, b""))
        for position in draw.pages
    ]
    if any(pages is None for pages in opened):
        return False
    first = [(position, pages) for position, pages in zip(draw.pages, opened, strict=True) if position < memory.width]
    later = [(position, pages) for position, pages in zip(draw.pages, opened, strict=True) if position >= memory.width]
    return _are(first, lambda places, _: first_pages(memory, np.array(places, dtype=np.uint64), np)) and _are(
        later, lambda places, pages: pages_of(memory, places, pages[:, 1], pages[:, 2:])
    )


def is_speed_shown(task: DeviceTask, draw: DeviceDraw, openings: DeviceOpenings, random: bytes) -> bool:
    """Whether every drawn row was opened, was committed to, and is right; `random` is eight bytes a column."""
    if not all(
        position in openings.rows and _row_committed(task.speed, openings.speed_root, position, openings.rows[position])
        for position in draw.rows
    ):
        return False
    vector = residues(random)
    right = right_times(task.speed, vector)
    return all(_row_right(task.speed, position, openings.rows[position], right, vector) for position in draw.rows)


def _committed_pages(task: MemoryTask, root: bytes, position: int, opening: bytes) -> Any:
    """A page and its ancestors, one row each, if all of them stand in the tree where they must; else None."""
    if len(opening) != page_opening_bytes(task, position):
        return None
    width = PAGE_BYTES + path_bytes(task.pages)
    leaves = [opening[at : at + width] for at in range(0, len(opening), width)]
    pages = np.stack([np.frombuffer(leaf[:PAGE_BYTES], dtype="<u8") for leaf in leaves])
    positions = [position, *(ancestors(task, position, pages[1]) if position >= task.width else ())]
    committed = all(
        is_leaf_of(root, task.pages, at, leaf[:PAGE_BYTES], leaf[PAGE_BYTES:])
        for at, leaf in zip(positions, leaves, strict=True)
    )
    return pages if committed else None


def _are(opened: Sequence[tuple[int, Any]], derive: Callable[[Sequence[int], Any], Any]) -> bool:
    """Whether all these pages follow from their ancestors: all at once, since one page alone costs as much."""
    if not opened:
        return True
    pages = np.stack([page for _, page in opened])
    return bool(np.array_equal(derive([position for position, _ in opened], pages), pages[:, 0]))


def _row_committed(task: SpeedTask, root: bytes, position: int, opening: bytes) -> bool:
    rows = row_of(task, opening[: task.side * 4])
    if rows is None or len(opening) != row_opening_bytes(task):
        return False
    leaf = opening[task.side * 4 : task.side * 4 + LEAF_BYTES]
    at, within = divmod(position, DIGESTS_IN_LEAF)
    committed = np.frombuffer(leaf, dtype="<u8")[within]
    return bool(row_digests(rows, np)[0] == committed) and is_leaf_of(
        root, task.leaves, at, leaf, opening[task.side * 4 + LEAF_BYTES :]
    )


def _row_right(task: SpeedTask, position: int, opening: bytes, right: Residues, vector: Residues) -> bool:
    number, row = divmod(position, task.side)
    left = left_rows(task, number, row, 1, np)
    return rows_agree(left, right, row_of(task, opening[: task.side * 4]), vector)
