"""A migrated cluster, made once by each process that runs tests, and copied for every pool that it starts.

Making one takes a processor two seconds. Pools that load the program, as a user's does, make their own.
"""

import asyncio
import secrets
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.worlds.places import reachable_directory
from tidemill import __version__
from tidemill.core.ids import Ids
from tidemill.store.embedded import EmbeddedServer
from tidemill.store.migrate import migrate

_KEPT = ExitStack()


def give_cluster(home: Path) -> None:
    """A home without a server gets a copy; one that has a server keeps it."""
    if not (home / "postgres").exists():
        subprocess.run(["cp", "-a", f"{_made()}/.", home], check=True)


def forget_cluster() -> None:
    """At the end of all tests."""
    _KEPT.close()


@cache
def _made() -> Path:
    home = _KEPT.enter_context(reachable_directory())
    with ThreadPoolExecutor(1) as aside:  # whoever asks may be in a loop of its own
        aside.submit(asyncio.run, _make(home)).result()
    (home / "postgres.lock").unlink()
    return home


async def _make(home: Path) -> None:
    server = EmbeddedServer(home)
    await server.start()
    try:
        await migrate(server.urls, Ids(secrets.randbits), __version__)
    finally:
        await server.stop()
