"""An image is in the engine for as long as somebody uses it, however many come and go at the same moment."""

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.worlds.sandboxes.engine_stand_in import EngineStandIn
from tidemill.agent.sandboxes.engine.api import EngineApi
from tidemill.agent.sandboxes.engine.images import Images
from tidemill.core.jobs.sandboxes import Image

REMOVES_S = 0.05


class SlowEngine(EngineStandIn):
    """Keeps names of images, and takes its time to remove one."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.removed = 0

    async def answer(self, method: str, target: str) -> tuple[int, object]:
        asked = urlsplit(target)
        if method == "POST":
            self.names.add(":".join(parse_qs(asked.query)[part][0] for part in ("repo", "tag")))
            return 200, {}
        name = unquote(asked.path.removesuffix("/json").rpartition("/")[2])
        if method == "DELETE":
            await asyncio.sleep(REMOVES_S)
            self.names.discard(name)
            self.removed += 1
            return 200, {}
        return (200, {"Size": 1}) if name in self.names else (404, {"message": "no such image"})


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SlowEngine]:
    engine = SlowEngine()
    async with engine.serving(tmp_path / "engine.sock"):
        yield engine


@pytest.fixture
async def images(engine: SlowEngine, tmp_path: Path) -> AsyncIterator[Images]:
    api = EngineApi(tmp_path / "engine.sock")
    yield Images(api, "mark", tmp_path, tmp_path, is_podman=False)
    await api.close()


@pytest.fixture
def image(tmp_path: Path) -> Image:
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("hello"), io.BytesIO())
    return Image(tarball=PurePosixPath(tmp_path / "root.tar"))


async def test_runs_that_end_together_remove_their_image_once(engine: SlowEngine, images: Images, image: Image) -> None:
    both = asyncio.Barrier(2)

    async def use() -> None:
        async with images.used(image, 10):
            await both.wait()

    await asyncio.gather(use(), use())
    assert (engine.names, engine.removed) == (set(), 1)
    await asyncio.gather(use(), use())
    assert (engine.names, engine.removed) == (set(), 2)


async def test_whoever_comes_while_others_leave_has_the_image(engine: SlowEngine, images: Images, image: Image) -> None:
    """At whichever moment of the others' leaving it comes."""
    for part in range(8):
        both = asyncio.Barrier(2)

        async def leave(together: asyncio.Barrier = both) -> None:
            async with images.used(image, 10):
                await together.wait()

        async def come(after_s: float = part * REMOVES_S / 3) -> None:
            await asyncio.sleep(after_s)
            async with images.used(image, 10) as brought:
                await asyncio.sleep(3 * REMOVES_S)
                assert brought.name in engine.names

        await asyncio.gather(leave(), leave(), come())
        assert engine.names == set()
