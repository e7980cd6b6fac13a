"""Renders a tile of a picture, some pixels at a time, and writes it when the last is done."""

from typing import Any

import numpy as np

from tidemill.agent.inside.dialogue import ProgressMeter, carry_out
from tidemill.agent.inside.tracer import Dice, TracedScene, Vectors, camera_rays, light_along
from tidemill.core.pictures import png_of

PIXELS_AT_ONCE = 16_384


def render(parameters: dict[str, Any], progress: ProgressMeter) -> None:
    work = parameters["work"]
    tile = work.get("tile") or {"x": 0, "y": 0, "width": work["width"], "height": work["height"]}
    scene, count = TracedScene(work["scene"]), tile["width"] * tile["height"]
    parts = []
    for first in range(0, count, PIXELS_AT_ONCE):
        indices = np.arange(first, min(first + PIXELS_AT_ONCE, count))
        columns, rows = tile["x"] + indices % tile["width"], tile["y"] + indices // tile["width"]
        parts.append(pixels(work, scene, columns, rows))
        progress.at(first + len(indices), count)
    with open("out/picture.png", "wb") as out:
        out.write(png_of(tile["width"], tile["height"], b"".join(parts)))


def pixels(work: dict[str, Any], scene: TracedScene, columns: Any, rows: Any) -> bytes:
    """Three bytes for each pixel at these columns and rows of the whole picture."""
    size = (work["width"], work["height"])
    totals: Vectors = (0.0, 0.0, 0.0)
    for sample in range(work["samples"]):
        dice = Dice(work["seed"], (rows * size[0] + columns).astype(np.uint64), sample)
        rays = camera_rays(scene, columns, rows, size, dice)
        light = light_along(scene, rays, dice, work["bounces"])
        totals = tuple(total + part for total, part in zip(totals, light, strict=True))
    return np.stack([_byte(total / work["samples"]) for total in totals], axis=1).tobytes()


def _byte(light: Any) -> Any:
    """Brightness as a screen shows it: the square root, in 256 steps."""
    brightness = np.sqrt(np.minimum(np.maximum(light, 0.0), 1.0))
    return np.floor(brightness * 255.0 + 0.5).astype(np.uint8)


if __name__ == "__main__":
    carry_out(render)
