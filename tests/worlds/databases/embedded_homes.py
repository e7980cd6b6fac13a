"""Fixtures: homes for embedded servers. A cluster is made once and copied for each test that needs one."""

import asyncio
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.worlds.places import reachable_directory
from tidemill.store.embedded import EmbeddedServer, stop_orphan


async def _start_and_stop(home: Path) -> None:
    server = EmbeddedServer(home)
    await server.start()
    await server.stop()


@pytest.fixture(scope="session")
def made_once() -> Iterator[Path]:
    """A home with a cluster in it, stopped. Only to be copied."""
    with reachable_directory() as home:
        with ThreadPoolExecutor(1) as aside:  # a loop of its own: this fixture outlives the loops of the tests
            aside.submit(asyncio.run, _start_and_stop(home)).result()
        yield home


@pytest.fixture
def empty_home() -> Iterator[Path]:
    """A home with nothing in it."""
    with reachable_directory() as home:
        yield home
        asyncio.run(stop_orphan(home))  # in order, so that no shared memory stays behind


@pytest.fixture
def made_home(made_once: Path, empty_home: Path) -> Path:
    """A home whose cluster is made, with no server running."""
    subprocess.run(["cp", "-a", f"{made_once}/.", empty_home], check=True)
    return empty_home
