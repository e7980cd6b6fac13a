"""What a task reads about where it runs: nothing of the owner, the agent or the house, and nothing that differs between
two agents of a machine but random names."""

import getpass
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import tidemill
from tests.worlds.places import reachable_directory
from tests.worlds.sandboxes.podman import podman_service
from tests.worlds.sandboxes.sandbox_cell import PYTHON, Cell, shown
from tidemill.agent.home.home import Home, prepare
from tidemill.agent.home.place import prepare_place, remove_place
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
from tidemill.agent.sandboxes.engine.sandbox import open_engine

pytestmark = pytest.mark.needs("root", "python3")

LOOK = """
import os, socket
names = ('mountinfo', 'mounts', 'mountstats', 'cgroup', 'uid_map', 'gid_map', 'maps', 'environ', 'cmdline')
etc = ('hosts', 'hostname', 'passwd', 'group', 'resolv.conf')
for file in (*(f'/proc/self/{name}' for name in names), *(f'/etc/{name}' for name in etc)):
    try: print(file, open(file).read(), sep='\\n')
    except OSError as refused: print(file, refused.errno)
print(socket.gethostname(), os.getcwd(), sorted(os.listdir('/')), sorted(os.environ.items()))
"""
RANDOM = (
    (r"tidemill-[0-9a-f]{16}", "PLACE"),
    (r"\b[0-9a-f]{64}\b", "CONTAINER"),
    (r"\b19\d{8}\b", "USER"),
    (r"(?m)^\d+ \d+ (?:0:\d+ )?", "MOUNT "),
    (r"\b[0-9a-f]{8,16}\b(-[0-9a-f]{8,16}\b)?", "ADDRESS"),
)


@pytest.fixture
def homes() -> Iterator[tuple[Home, Home]]:
    """Homes of a house node and of somebody's own."""
    with reachable_directory() as name:
        made = Home(name / "house"), Home(name / "alice")
        for home in made:
            prepare(home)
            prepare_place(home.path)
        yield made
        for home in made:
            remove_place(home.path)


@asynccontextmanager
async def cell_of(home: Home, engine: Path | None) -> AsyncIterator[Cell]:
    sandbox = await (open_bubblewrap(home.runs) if engine is None else open_engine(home.images, engine))
    try:
        yield Cell(sandbox, home.runs, "look")
    finally:
        sandbox.close()


async def read_inside(home: Home, engine: Path | None) -> str:
    home.cache.mkdir()
    (home.cache / "input").write_text("input")
    own = python_runtime().mounts if engine is None else ()  # images have their own Python
    async with cell_of(home, engine) as cell:
        ran = await cell.run(cell.order(PYTHON, "-c", LOOK, inputs=(*own, shown(home.cache / "input", "/input"))))
    assert ran.outcome.succeeded, ran.errors
    assert "/input" in ran.out
    return ran.out


def without_random_parts(text: str) -> list[str]:
    """Its lines without what is random; an engine makes its mounts, and its environment, in any order."""
    text = text.replace("\x00", "\n")
    for pattern, name in RANDOM:
        text = re.sub(pattern, name, text)
    return sorted(text.splitlines())


async def tells_nothing(homes: tuple[Home, Home], engine: Path | None) -> str:
    house, other = [await read_inside(home, engine) for home in homes]
    for home, text in zip(homes, (house, other), strict=True):
        telling = (str(home.path), "house", "alice")
        assert [word for word in telling if word in text] == []
    assert without_random_parts(house) == without_random_parts(other)
    return house


@pytest.mark.needs("bubblewrap")
async def test_a_task_cannot_tell_a_house_node_by_its_paths(homes: tuple[Home, Home]) -> None:
    text = await tells_nothing(homes, None)
    installed = (f"/{getpass.getuser()}/", str(Path.home()), str(Path(tidemill.__file__).parent))
    assert [word for word in installed if word in text] == []


@pytest.mark.needs("podman", "runc")
async def test_neither_can_a_container(homes: tuple[Home, Home]) -> None:
    with podman_service() as engine:
        await tells_nothing(homes, engine)
