"""Pictures: equal in every pixel, or not. Where they differ, name the tile that differs most, for people to look at."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.trust.checks.verdict import Verdict, failed, passed

TILE = 64
"""Pixels along a tile's side; tiles at the right and at the bottom may be smaller."""


@dataclass(frozen=True)
class Picture:
    """Pixels as an array of rows, columns and colours, eight bits each."""

    pixels: NDArray[np.uint8]


def check(claim: Picture, evidence: Picture) -> Verdict:
    """Compare a picture with another execution's."""
    claimed, repeated = claim.pixels, evidence.pixels
    if claimed.shape != repeated.shape or claimed.dtype != np.uint8 or claimed.ndim != 3:
        return failed(
            f"The picture is {claimed.dtype} of {claimed.shape}; {repeated.dtype} of {repeated.shape} was asked for."
        )
    differing = (claimed != repeated).any(axis=2)
    if not differing.any():
        return passed()
    row, column, inside = _worst_tile(differing)
    tiles = _tile_sums(differing)
    top, left = row * TILE, column * TILE
    return failed(
        f"The picture differs in {int((tiles > 0).sum())} tiles, most in the one at row {row}, column {column}: "
        f"{inside} pixels from ({left}, {top}) on.",
        tile_row=row,
        tile_column=column,
        pixels_differing=int(differing.sum()),
        largest_difference=int(np.abs(claimed.astype(np.int16) - repeated.astype(np.int16)).max()),
    )


def _worst_tile(differing: NDArray[np.bool_]) -> tuple[int, int, int]:
    """Its row, its column, and how many of its pixels differ."""
    sums = _tile_sums(differing)
    row, column = divmod(int(sums.argmax()), sums.shape[1])
    return row, column, int(sums[row, column])


def _tile_sums(differing: NDArray[np.bool_]) -> NDArray[Any]:
    rows, columns = (range(0, side, TILE) for side in differing.shape)
    return np.add.reduceat(np.add.reduceat(differing.astype(np.int64), rows, axis=0), columns, axis=1)
