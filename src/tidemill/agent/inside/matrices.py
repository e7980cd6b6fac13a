"""Matrices in files of strangers, mapped into memory once their headers were found to be true."""

import os
from typing import Any

import numpy as np

from tidemill.agent.inside.telling import Unfit
from tidemill.core.matrices.npy import HEADER_MAX_BYTES, Unreadable, read_layout


def mapped(name: str, path: str, element: str, shape: tuple[int, int]) -> Any:
    """The matrix in a file, read when it is used. It must have this type and this shape."""
    with open(path, "rb") as file:
        layout = read_layout(file.read(HEADER_MAX_BYTES), os.fstat(file.fileno()).st_size)
    if isinstance(layout, Unreadable):
        raise Unfit(f"The input {name} cannot be used. {layout.sentence}")
    if (layout.element, layout.rows, layout.columns) != (element, *shape):
        held = f"{layout.rows:,} × {layout.columns:,} of {layout.element}"
        raise Unfit(f"The input {name} is {held}; the task says {shape[0]:,} × {shape[1]:,} of {element}.")
    stored = np.dtype(element).newbyteorder("<")
    return np.memmap(path, dtype=stored, mode="r", offset=layout.begins_at, shape=shape)
