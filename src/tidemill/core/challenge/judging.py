"""Whether what a device shows holds: against its own commitment, and against the arithmetic.

Cheap for the pool: a page is made once more of the pages shown beside it, and rows cost one multiplication of a matrix
by a vector for all of them together. Nothing here looks at a clock; `verdict` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemill.core.challenge.memory import (
    PAGE_BYTES,
    MemoryTask,
    ancestors,
    first_pages,
    page_of,
)
from tidemill.core.challenge.merkle import path_bytes, shows
from tidemill.core.challenge.messages import (
    LEAF_BYTES,
    DeviceDraw,
    DeviceTask,
    page_opening_bytes,
    row_opening_bytes,
)
from tidemill.core.challenge.multiplication import (
    DIGESTS_IN_LEAF,
    SpeedTask,
    left_rows,
    right_times,
    row_digests,
    row_of,
)
from tidemill.core.freivalds import Residues, residues, rows_agree


@dataclass(frozen=True)
class Shown:
    """What a device said: its two commitments, and what it opened, by place."""

    speed_root: bytes
    memory_root: bytes
    pages: Mapping[int, bytes]
    rows: Mapping[int, bytes]


def memory_holds(task: DeviceTask, draw: DeviceDraw, shown: Shown) -> bool:
    """Whether every drawn page was opened, was committed to, and is what its ancestors make it."""
    return all(
        place in shown.pages and _page_holds(task.memory, shown.memory_root, place, shown.pages[place])
        for place in draw.pages
    )


def speed_holds(task: DeviceTask, draw: DeviceDraw, shown: Shown, random: bytes) -> bool:
    """Whether every drawn row was opened, was committed to, and is right; `random` is eight bytes a column."""
    if not all(
        place in shown.rows and _row_committed(task.speed, shown.speed_root, place, shown.rows[place])
        for place in draw.rows
    ):
        return False
    vector = residues(random)
    right = right_times(task.speed, vector)
    return all(_row_right(task.speed, place, shown.rows[place], right, vector) for place in draw.rows)


def _page_holds(task: MemoryTask, root: bytes, place: int, opening: bytes) -> bool:
    if len(opening) != page_opening_bytes(task, place):
        return False
    width = PAGE_BYTES + path_bytes(task.pages)
    leaves = [opening[at : at + width] for at in range(0, len(opening), width)]
    pages = [_words(leaf[:PAGE_BYTES]) for leaf in leaves]
    places = [place, *(ancestors(task, place, pages[1]) if place >= task.width else ())]
    if not all(
        shows(root, task.pages, at, leaf[:PAGE_BYTES], leaf[PAGE_BYTES:])
        for at, leaf in zip(places, leaves, strict=True)
    ):
        return False
    if place < task.width:
        made = first_pages(task, np.array([place], dtype=np.uint64), np)[0]
    else:
        made = page_of(task, place, pages[1], pages[2:])
    return bool(np.array_equal(made, pages[0]))


def _row_committed(task: SpeedTask, root: bytes, place: int, opening: bytes) -> bool:
    rows = row_of(task, opening[: task.side * 4])
    if rows is None or len(opening) != row_opening_bytes(task):
        return False
    leaf = opening[task.side * 4 : task.side * 4 + LEAF_BYTES]
    at, within = divmod(place, DIGESTS_IN_LEAF)
    committed = np.frombuffer(leaf, dtype="<u8")[within]
    return bool(row_digests(rows, np)[0] == committed) and shows(
        root, task.leaves, at, leaf, opening[task.side * 4 + LEAF_BYTES :]
    )


def _row_right(task: SpeedTask, place: int, opening: bytes, right: Residues, vector: Residues) -> bool:
    number, row = divmod(place, task.side)
    left = left_rows(task, number, row, 1, np)
    return rows_agree(left, right, row_of(task, opening[: task.side * 4]), vector)


def _words(page: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(page, dtype="<u8")
