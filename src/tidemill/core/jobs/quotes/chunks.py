"""How work is divided into tasks: texts by number, pictures by bands, and repeated work by repetition.

Each kind of work has a fewest and a most number of tasks; within these bounds a job gets as many as make a task about
a minute of one processor. Together the parts are exactly the work. A seeded matrix product can be ordered several
times, each with the next seed; a program or an image that is ordered several times finds its number where `{task}`
stands in its arguments.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

from tidemill.core.jobs.kinds import container, embed, matmul, render, script
from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.kind import TaskKind, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs

Parameters = Mapping[str, object]

TASK_OPERATIONS = 60 * OPERATIONS_PER_CORE_S
INLINE_MAX_BYTES = 40 * 1024
"""The most bytes of texts in one task, so that the task with all its other fields fits into an Offer message."""

NUMBER, COUNT = "{task}", "{tasks}"


@dataclass(frozen=True)
class Division:
    """How a kind of work is divided: the needs of all of it, the fewest and the most tasks, the parts for a count."""

    whole: Callable[[Any, Parameters], Needs]
    bounds: Callable[[Any, Parameters], tuple[int, int]]
    parts: Callable[[Any, Parameters, int], Sequence[Parameters]]


def read_whole(kind: TaskKind[Any], parameters: Parameters) -> Any | TaskObjection:
    """The work that parameters describe. A picture may be larger than one task can be."""
    if kind is render.KIND and "tile" not in parameters:
        read = kind.read({**parameters, "tile": {"x": 0, "y": 0, "width": 1, "height": 1}})
        return read if isinstance(read, TaskObjection) else _untiled(read)
    return kind.read(parameters)


def usual_count(kind: str, work: Any, parameters: Parameters) -> int:
    """As many tasks as make each about a minute of one processor."""
    divided = DIVIDED[kind]
    fewest, most = divided.bounds(work, parameters)
    if kind not in _BY_SIZE:
        return 1
    return max(fewest, min(most, ceil(divided.whole(work, parameters).operations / TASK_OPERATIONS)))


def _untiled(work: render.Render) -> render.Render:
    return render.Render(work.scene, work.width, work.height, None, work.samples, work.bounces, work.seed)


def _bands(work: render.Render, parameters: Parameters, count: int) -> Sequence[Parameters]:
    if work.tile is not None:
        return [parameters]
    edges = [work.height * number // count for number in range(count + 1)]
    return [
        {**parameters, "tile": {"x": 0, "y": top, "width": work.width, "height": bottom - top}}
        for top, bottom in pairwise(edges)
    ]


def _band_bounds(work: render.Render, _: Parameters) -> tuple[int, int]:
    if work.tile is not None:
        return 1, 1
    most_pixels = min(render.TILE_MAX_PIXELS, render.RAYS_MAX // work.samples)
    rows = max(1, most_pixels // work.width - 1)
    return ceil(work.height / rows), work.height


def _whole_picture(work: render.Render, parameters: Parameters) -> Needs:
    """The needs of a band, with the operations of the entire picture."""
    if work.tile is not None:
        return render.needs(work)
    fewest, _ = _band_bounds(work, parameters)
    tile = render.Tile(0, 0, work.width, ceil(work.height / fewest))
    band = render.needs(render.Render(work.scene, work.width, work.height, tile, work.samples, work.bounces))
    operations = band.operations / tile.height * work.height
    return Needs(band.memory_mib, band.disk_mib, operations)


def _text_blocks(work: embed.Embed, parameters: Parameters, count: int) -> Sequence[Parameters]:
    if work.count is not None:
        return [parameters]
    most = ceil(len(work.texts) / count)
    blocks: list[list[str]] = [[]]
    size_bytes = 0
    for text in work.texts:
        text_bytes = len(json.dumps(text, ensure_ascii=False).encode()) + 1
        if blocks[-1] and (len(blocks[-1]) == most or size_bytes + text_bytes > INLINE_MAX_BYTES):
            blocks.append([])
            size_bytes = 0
        blocks[-1].append(text)
        size_bytes += text_bytes
    return [{"texts": block} for block in blocks]


def _text_bounds(work: embed.Embed, parameters: Parameters) -> tuple[int, int]:
    if work.count is not None:
        return 1, 1
    return len(_text_blocks(work, parameters, 1)), len(work.texts)


def _seeds(work: matmul.Matmul, parameters: Parameters, count: int) -> Sequence[Parameters]:
    if work.seed is None:
        return [parameters]
    return [{**parameters, "seed": work.seed + number} for number in range(count)]


def _seed_bounds(work: matmul.Matmul, _: Parameters) -> tuple[int, int]:
    return 1, 1 if work.seed is None else min(2**31, matmul.SEED_MAX - work.seed + 1)


def _numbered(field: str) -> Callable[[Any, Parameters, int], Sequence[Parameters]]:
    def parts(work: Any, parameters: Parameters, count: int) -> Sequence[Parameters]:
        texts: Sequence[str] = getattr(work, field)
        if count == 1 and not any(NUMBER in text for text in texts):
            return [parameters]
        return [{**parameters, field: [_put(text, number, count) for text in texts]} for number in range(count)]

    return parts


def _number_bounds(field: str) -> Callable[[Any, Parameters], tuple[int, int]]:
    return lambda work, _: (1, 2**31 if any(NUMBER in text for text in getattr(work, field)) else 1)


def _put(text: str, number: int, count: int) -> str:
    return text.replace(NUMBER, str(number)).replace(COUNT, str(count))


def _needs(kind: TaskKind[Any]) -> Callable[[Any, Parameters], Needs]:
    return lambda work, _: kind.needs(work)


_BY_SIZE = frozenset({embed.KIND.name, render.KIND.name})
"""Kinds whose work is divided; every task of the other kinds is a complete work of its own."""

DIVIDED: Mapping[str, Division] = {
    matmul.KIND.name: Division(_needs(matmul.KIND), _seed_bounds, _seeds),
    embed.KIND.name: Division(_needs(embed.KIND), _text_bounds, _text_blocks),
    render.KIND.name: Division(_whole_picture, _band_bounds, _bands),
    script.KIND.name: Division(_needs(script.KIND), _number_bounds("arguments"), _numbered("arguments")),
    container.KIND.name: Division(_needs(container.KIND), _number_bounds("command"), _numbered("command")),
}


def is_divided(kind: str) -> bool:
    return kind in _BY_SIZE
