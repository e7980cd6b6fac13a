"""Real embedded servers, and a real owner process to kill."""

import asyncio
import os
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryFile

import asyncpg

from tests.worlds.forks import NOTHING, Waited, module
from tidemill.core.faults import NotRunning
from tidemill.store.embedded import EmbeddedServer, attach


@asynccontextmanager
async def running(home: Path, reports: list[str] | None = None) -> AsyncIterator[EmbeddedServer]:
    """A started server, stopped at the end."""
    heard: list[str] = [] if reports is None else reports
    server = EmbeddedServer(home, report=heard.append)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@contextmanager
def owner_process(home: Path) -> Iterator[Waited]:
    """Another process that has started the server and watches it."""
    with TemporaryFile() as said, _started(home, said.fileno()) as process:
        while not os.fstat(said.fileno()).st_size:
            assert process.poll() is None, "it could not start the server"
            time.sleep(0.01)
        yield process


@contextmanager
def starting_process(home: Path) -> Iterator[Waited]:
    """Another process that is about to start the server. It is killed at the end, the server is not."""
    with _started(home, NOTHING) as process:
        yield process


@contextmanager
def _started(home: Path, said: int) -> Iterator[Waited]:
    process = Waited(module("tests.worlds.databases.embedded_owner", str(home), said=said))
    try:
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
        answered = await _answers(home, other_than)
        while not answered:
            await asyncio.sleep(0.05)
            answered = await _answers(home, other_than)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        met = condition()
        while not met:
            await asyncio.sleep(0.005)
            met = condition()


@contextmanager
def stranger(directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with the server, and must outlive whatever the server goes through."""
    process = subprocess.Popen(["sleep", "60"], cwd=directory)
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


async def _answers(home: Path, other_than: int | None) -> bool:
    try:
        return await ask(attach(home).program, "SELECT 1") == 1 and postmaster_pid(home) != other_than
    except (NotRunning, OSError, asyncpg.PostgresError):
        return False


def data_of(home: Path) -> Path:
    return home / "postgres" / "data"


def postmaster_pid(home: Path) -> int:
    return int((data_of(home) / "postmaster.pid").read_text().split()[0])
