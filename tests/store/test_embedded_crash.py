"""What a crash, a full disk or a broken pid file leaves behind is made good, and nobody else's process is touched."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest
from embedded_server import (
    ask,
    data_of,
    needs_root,
    postmaster_pid,
    processes_in,
    reachable_directory,
    running,
    until_answers,
)

from tidemill.core.faults import DiskFull, NotRunning
from tidemill.store.embedded import EmbeddedServer, attach
from tidemill.store.embedded.layout import SOCKET_NAME

pytest_plugins = ("embedded_homes",)


async def test_a_killed_server_is_started_again_and_keeps_what_was_committed(made_home: Path) -> None:
    reports: list[str] = []
    async with running(made_home, reports) as server, watched(server):
        await ask(server.urls.owner, "CREATE TABLE a AS SELECT generate_series(1, 1000) AS b")
        for _ in range(2):
            before = postmaster_pid(made_home)
            os.kill(before, signal.SIGKILL)
            await until_answers(made_home, other_than=before)
            assert await ask(server.urls.owner, "SELECT count(*) FROM a") == 1000
    assert reports == ["The database server is down: starting it again."] * 2
    assert not processes_in(made_home)


async def test_a_backend_that_lingers_is_ended_and_a_stranger_in_the_directory_is_not(made_home: Path) -> None:
    stranger = subprocess.Popen(["sleep", "60"], cwd=data_of(made_home))
    try:
        async with running(made_home) as server, watched(server):
            connection = await asyncpg.connect(server.urls.program)
            backend = psutil.Process(connection.get_server_pid())
            backend.suspend()  # it will not notice that its postmaster died
            before = postmaster_pid(made_home)
            os.kill(before, signal.SIGKILL)
            await until_answers(made_home, other_than=before)
            assert not backend.is_running()
            connection.terminate()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_zombie_is_a_dead_server(made_home: Path) -> None:
    async with running(made_home):
        process = psutil.Process(postmaster_pid(made_home))
        command, user = process.cmdline(), process.uids().real
    zombie = subprocess.Popen(command, user=user if user != os.geteuid() else None, cwd="/")
    await until_answers(made_home)
    zombie.send_signal(signal.SIGKILL)
    async with running(made_home) as server:
        assert psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE
        assert await ask(server.urls.program, "SELECT 1") == 1
    zombie.wait()


@pytest.mark.parametrize("content", ["", "garbage\n", "-1\n", "99999999999999999999\n", "\0\0\0\0", "{stranger}\n"])
async def test_a_stale_pid_file_stops_nothing_and_harms_nobody(made_home: Path, content: str) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        text = content.format(stranger=stranger.pid)
        (data_of(made_home) / "postmaster.pid").write_text(text)
        (made_home / "postgres" / "run" / f"{SOCKET_NAME}.lock").write_text(text)
        with pytest.raises(NotRunning):
            attach(made_home)
        async with running(made_home) as server:
            assert await ask(server.urls.program, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_server_whose_pid_file_was_lost_is_replaced(made_home: Path) -> None:
    async with running(made_home) as server, watched(server):
        before = postmaster_pid(made_home)
        (data_of(made_home) / "postmaster.pid").unlink()
        await until_answers(made_home, other_than=before)
        assert not psutil.pid_exists(before)


async def test_a_server_whose_socket_was_swept_away_is_replaced(made_home: Path) -> None:
    async with running(made_home) as server, watched(server):
        before = postmaster_pid(made_home)
        (made_home / "postgres" / "run" / SOCKET_NAME).unlink()
        await until_answers(made_home, other_than=before)


async def test_a_server_that_cannot_start_is_tried_again_until_it_can(made_home: Path) -> None:
    reports: list[str] = []
    async with running(made_home, reports) as server, watched(server):
        before = postmaster_pid(made_home)
        broken = data_of(made_home) / "postgresql.auto.conf"
        broken.write_text("work_mem = 'lots'\n")
        os.kill(before, signal.SIGKILL)
        while sum("work_mem" in line for line in reports) < 2:
            await asyncio.sleep(0.05)
        broken.write_text("")
        await until_answers(made_home, other_than=before)


async def test_recovery_may_take_as_long_as_it_needs(made_home: Path) -> None:
    await _crash_with_much_to_replay(made_home)
    reports: list[str] = []
    server = EmbeddedServer(made_home, report=reports.append)
    start = asyncio.create_task(server.start())
    recovery = await _startup_process(made_home)
    recovery.suspend()
    await asyncio.sleep(12)
    assert not start.done()
    with pytest.raises(NotRunning, match="still starting"):
        attach(made_home)
    recovery.resume()
    await start
    assert sum("has been starting for" in line for line in reports) >= 3
    assert await ask(server.urls.owner, "SELECT count(*) FROM a") == 300_000
    await server.stop()


async def _crash_with_much_to_replay(home: Path) -> None:
    server = EmbeddedServer(home)
    await server.start()
    await ask(server.urls.owner, "CREATE TABLE a (b int)")
    await ask(server.urls.owner, "INSERT INTO a SELECT generate_series(1, 300000)")
    os.kill(postmaster_pid(home), signal.SIGKILL)
    await server.stop()


async def _startup_process(home: Path) -> psutil.Process:
    while True:
        for process in processes_in(data_of(home)):
            if "startup" in " ".join(process.cmdline()):
                return process
        await asyncio.sleep(0)


@needs_root
async def test_a_disk_too_small_for_a_new_database_is_named() -> None:
    with small_disk(mebibytes=24) as home:
        with pytest.raises(DiskFull, match=rf"The disk that holds {home} is full \(\d+\.\d MiB free\): make space"):
            await EmbeddedServer(home).start()
        assert not processes_in(home)


@needs_root
async def test_a_full_disk_stops_a_start_and_space_lets_it_go_on() -> None:
    with small_disk(mebibytes=160) as home:
        async with running(home) as server:
            await ask(server.urls.owner, "CREATE TABLE a AS SELECT 5 AS b")
        for fill_to_the_last_byte in (False, True):
            fill(home / "ballast", keep_free=0 if fill_to_the_last_byte else 8192)
            with pytest.raises(DiskFull, match=rf"The disk that holds {home} is full"):
                await EmbeddedServer(home).start()
            (home / "ballast").unlink()
        async with running(home) as server:
            assert await ask(server.urls.owner, "SELECT b FROM a") == 5


@contextmanager
def small_disk(mebibytes: int) -> Iterator[Path]:
    with reachable_directory() as place:
        disk = place / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=0711", "tmpfs", disk], check=True)
        try:
            yield disk
        finally:
            for process in processes_in(disk):
                process.kill()
            subprocess.run(["umount", disk], check=True)


def fill(file: Path, keep_free: int) -> None:
    room = os.statvfs(file.parent)
    with file.open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, room.f_bavail * room.f_frsize - keep_free)


@asynccontextmanager
async def watched(server: EmbeddedServer) -> AsyncIterator[None]:
    watching = asyncio.create_task(server.watch())
    try:
        yield
        assert not watching.done()
    finally:
        watching.cancel()
