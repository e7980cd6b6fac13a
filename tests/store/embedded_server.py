"""Real embedded servers, a real owner process to kill, and ways to look at what lives.

Homes lie where any system user can reach them, because as root the server runs as another user; whatever a test leaves
running in its home is ended with it.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest

from tidemill.core.faults import NotRunning
from tidemill.store.embedded import EmbeddedServer, attach

IS_ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not IS_ROOT, reason="only root can mount, and only root lends its rights to a user")

OWNER = """
import asyncio, sys
from pathlib import Path
import uvloop
from tidemill.store.embedded import EmbeddedServer

async def own(home):
    server = EmbeddedServer(home)
    await server.start()
    print("up", flush=True)
    await server.watch()

uvloop.run(own(Path(sys.argv[1])))
"""


@contextmanager
def reachable_directory() -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(prefix="tm-", dir=_quick_parent())).resolve()
    place.chmod(0o711)
    try:
        yield place
    finally:
        for process in processes_in(place):
            process.kill()
        shutil.rmtree(place)


def _quick_parent() -> str | None:
    """Memory, where there is plenty: copying a cluster takes a tenth of the time."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2 * 1024**3 else None


@asynccontextmanager
async def running(home: Path, reports: list[str] | None = None) -> AsyncIterator[EmbeddedServer]:
    """A started server, stopped at the end."""
    server = EmbeddedServer(home, report=[].append if reports is None else reports.append)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextmanager
def owner_process(home: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has started the server and watches it."""
    process = subprocess.Popen([sys.executable, "-c", OWNER, home], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
    finally:
        process.kill()
        process.wait()


async def ask(url: str, statement: str) -> object:
    """One value from a connection of its own."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def until_answers(home: Path, other_than: int | None = None) -> None:
    async with asyncio.timeout(30):
        while not await _answers(home, other_than):
            await asyncio.sleep(0.05)


async def _answers(home: Path, other_than: int | None) -> bool:
    try:
        return await ask(attach(home).program, "SELECT 1") == 1 and postmaster_pid(home) != other_than
    except (NotRunning, OSError, asyncpg.PostgresError):
        return False


def data_of(home: Path) -> Path:
    return home / "postgres" / "data"


def postmaster_pid(home: Path) -> int:
    return int((data_of(home) / "postmaster.pid").read_text().split()[0])


def processes_in(place: Path) -> list[psutil.Process]:
    """Live processes whose working directory is in this place. Root may look everywhere, others at their own."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(place) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found
