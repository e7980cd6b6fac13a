"""Pictures: the same bits in every tile, on every run, and as plain Python computes them."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.worlds.sandboxes.runner_tasks import run, task_of
from tests.worlds.sandboxes.sandbox_cell import Cell
from tests.worlds.sandboxes.scenes import SCENE, colour, vector
from tests.worlds.sandboxes.tracer_model import model_pixel
from tidemill.agent.inside.render import pixels
from tidemill.agent.inside.tracer import TracedScene
from tidemill.agent.runners import RUNNERS, ResultFiles
from tidemill.core.bounded_json import json_bytes
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.pictures import pixels_of, png_of

sandboxed = pytest.mark.needs("bubblewrap", "python3")
WIDTH, HEIGHT = 24, 16
PINNED = "dd4cd308ad0f7e5bc4baa84e2fb28560b6cfe174bec02707667fefbfeb799c22"
ORDER: dict[str, Any] = {"scene": SCENE, "width": WIDTH, "height": HEIGHT, "samples": 3, "bounces": 3, "seed": 11}


def work_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """The work as the program in the sandbox is told it."""
    read = KINDS["render"].read(parameters)
    assert not isinstance(read, TaskObjection), read.sentence
    told: dict[str, Any] = json.loads(json_bytes(read))
    return told


def picture(work: dict[str, Any], x: int = 0, y: int = 0, width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    places = np.arange(width * height)
    made = pixels(work, TracedScene(work["scene"]), x + places % width, y + places // width)
    return np.frombuffer(made, dtype=np.uint8).reshape(height, width, 3)


def test_the_scene_on_the_page_can_be_rendered() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/order-a-job.md").read_text("utf-8")
    scene = yaml.safe_load(page[page.index("camera:") : page.index("```", page.index("camera:"))])
    read = KINDS["render"].read({"scene": scene, "width": 8, "height": 8, "samples": 1})
    assert not isinstance(read, TaskObjection), read


def test_every_pixel_is_the_one_of_plain_arithmetic() -> None:
    work = work_of(ORDER)
    made = picture(work)
    assert made.reshape(-1, 3).tolist() == [
        list(model_pixel(work, column, row)) for row in range(HEIGHT) for column in range(WIDTH)
    ]
    assert len(np.unique(made)) > 50


PLACES = st.builds(vector, *[st.integers(-4000, 4000)] * 3)
COLOURS = st.builds(colour, *[st.integers(0, 1000)] * 3)
SURFACES = st.fixed_dictionaries(
    {"colour": COLOURS, "mirror": st.sampled_from([0, 500, 1000]), "glow": st.integers(0, 2000)}
)
SCENES = st.fixed_dictionaries(
    {
        "camera": st.fixed_dictionaries({"at": PLACES, "towards": PLACES, "view": st.integers(1, 4000)}),
        "spheres": st.lists(
            st.fixed_dictionaries({"centre": PLACES, "radius": st.integers(1, 3000), "surface": SURFACES}), max_size=4
        ),
        "planes": st.lists(st.fixed_dictionaries({"point": PLACES, "normal": PLACES, "surface": SURFACES}), max_size=2),
        "lights": st.lists(
            st.fixed_dictionaries({"at": PLACES, "colour": COLOURS, "brightness": st.integers(0, 90_000)}), max_size=2
        ),
        "sky": COLOURS,
    }
)


@given(SCENES, st.integers(0, 2**53 - 1), st.integers(0, 4))
@settings(max_examples=40, deadline=None)
def test_any_scene_is_what_plain_arithmetic_makes_of_it(scene: dict[str, Any], seed: int, bounces: int) -> None:
    parameters = {"scene": scene, "width": 5, "height": 4, "samples": 2, "bounces": bounces, "seed": seed}
    if not isinstance(KINDS["render"].read(parameters), TaskObjection):
        work = work_of(parameters)
        expected = [list(model_pixel(work, column, row)) for row in range(4) for column in range(5)]
        assert picture(work, width=5, height=4).reshape(-1, 3).tolist() == expected


@given(st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1), st.data())
@settings(max_examples=30, deadline=None)
def test_a_tile_is_that_part_of_the_whole(x: int, y: int, draw: st.DataObject) -> None:
    work = work_of(ORDER)
    width, height = draw.draw(st.integers(1, WIDTH - x)), draw.draw(st.integers(1, HEIGHT - y))
    whole = picture(work)
    assert np.array_equal(picture(work, x, y, width, height), whole[y : y + height, x : x + width])


def test_a_picture_means_the_same_for_ever() -> None:
    """A node of today and one of next year must agree; whoever changes this changes the kind's name."""
    assert sha256(picture(work_of(ORDER)).tobytes()).hexdigest() == PINNED


def test_another_seed_is_another_picture_and_an_empty_scene_is_sky() -> None:
    assert not np.array_equal(picture(work_of(ORDER)), picture(work_of({**ORDER, "seed": 12})))
    empty = {"camera": SCENE["camera"], "sky": colour(1000, 0, 250)}
    made = picture(work_of({**ORDER, "scene": empty}))
    assert (made == [255, 0, 128]).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "scene",
    [
        {"camera": {"at": vector(0, 0, -(10**9)), "towards": vector(0, 0, 10**9), "view": 1}},
        {"camera": {"at": vector(0, 0, 0), "towards": vector(1, 0, 0), "view": 100_000}},
        {"spheres": [{"centre": vector(0, 0, 0), "radius": 10**9, "surface": {"colour": colour(1, 1, 1)}}] * 200},
        {"lights": [{"at": vector(0, 0, 0), "colour": colour(1000, 0, 0), "brightness": 10**9}] * 32},
        {"planes": [{"point": vector(0, 0, 0), "normal": vector(0, -1, 0), "surface": {"colour": colour(9, 9, 9)}}]},
        {"spheres": [{"centre": vector(0, 0, 0), "radius": 1, "surface": {"colour": colour(1, 1, 1), "glow": 10**9}}]},
    ],
    ids=lambda scene: next(iter(scene)),
)
def test_scenes_at_the_edge_of_what_may_be_are_drawn_without_complaint(scene: dict[str, Any]) -> None:
    work = work_of({**ORDER, "scene": {**SCENE, **scene}, "bounces": 16})
    assert picture(work, width=6, height=4).shape == (4, 6, 3)


@sandboxed
async def test_tiles_made_in_sandboxes_fit_together(cell: Cell) -> None:
    halves = []
    for x, width in ((0, 10), (10, WIDTH - 10)):
        tile = {"x": x, "y": 3, "width": width, "height": 9}
        done = await run(cell, task_of("render", {**ORDER, "tile": tile}))
        assert done.outcome.succeeded, done.errors
        assert isinstance(done.checked, ResultFiles)
        found = pixels_of(done.files["picture.png"], width, 9)
        assert found is not None
        halves.append(np.frombuffer(found, dtype=np.uint8).reshape(9, width, 3))
    assert np.array_equal(np.concatenate(halves, axis=1), picture(work_of(ORDER))[3:12])


@pytest.mark.parametrize("wrong", ["turned", "short", "no picture"])
def test_a_picture_of_another_size_is_refused(tmp_path: Path, wrong: str) -> None:
    task = task_of("render", ORDER)
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "picture.png"
    right = png_of(WIDTH, HEIGHT, bytes(3 * WIDTH * HEIGHT))
    file.write_bytes(right)
    assert isinstance(RUNNERS["render"].check(task, tmp_path), ResultFiles)
    turned = png_of(HEIGHT, WIDTH, bytes(3 * WIDTH * HEIGHT))
    file.write_bytes({"turned": turned, "short": right[:-1], "no picture": bytes(len(right))}[wrong])
    assert not isinstance(RUNNERS["render"].check(task, tmp_path), ResultFiles)
