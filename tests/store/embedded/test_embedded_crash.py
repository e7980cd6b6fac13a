"""What a crash, a full disk or a broken pid file leaves behind is made good, and nobody else's process is touched."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psutil
import pytest

from tests.worlds.databases.embedded_server import (
    ask,
    data_of,
    owner_process,
    postmaster_pid,
    running,
    stranger,
    until,
    until_answers,
)
from tests.worlds.places import processes_in, reachable_directory
from tidemill.core.faults import DiskFull, NotRunning
from tidemill.store.embedded import EmbeddedServer, attach, server, stop_orphan
from tidemill.store.embedded.configuration import server_arguments
from tidemill.store.embedded.layout import SOCKET_NAME
from tidemill.store.embedded.processes import is_alive

pytest_plugins = ("tests.worlds.databases.embedded_homes",)


async def test_a_killed_server_is_started_again_and_keeps_what_was_committed(made_home: Path) -> None:
    reports: list[str] = []
    async with running(made_home, reports) as served, watched(served):
        await ask(served.urls.owner, "CREATE TABLE a AS SELECT generate_series(1, 1000) AS b")
        for _ in range(2):
            before = postmaster_pid(made_home)
            os.kill(before, signal.SIGKILL)
            await until_answers(made_home, other_than=before)
            assert await ask(served.urls.owner, "SELECT count(*) FROM a") == 1000
    assert reports == ["The database server is down: starting it again."] * 2
    assert not processes_in(made_home)


async def test_a_backend_that_lingers_is_ended_and_a_stranger_in_the_directory_is_not(made_home: Path) -> None:
    with stranger(data_of(made_home)):
        async with running(made_home) as served, watched(served):
            connection = await asyncpg.connect(served.urls.program)
            backend = psutil.Process(connection.get_server_pid())
            backend.suspend()  # it will not notice that its postmaster died
            before = postmaster_pid(made_home)
            os.kill(before, signal.SIGKILL)
            await until_answers(made_home, other_than=before)
            assert not is_alive(backend)
            connection.terminate()


async def test_a_zombie_is_a_dead_server(made_home: Path) -> None:
    async with running(made_home):
        process = psutil.Process(postmaster_pid(made_home))
        command, user = process.cmdline(), process.uids().real
    zombie = _started_by_hand(command, user)
    await until_answers(made_home)
    zombie.send_signal(signal.SIGKILL)
    async with running(made_home) as served:
        assert psutil.Process(zombie.pid).status() == psutil.STATUS_ZOMBIE
        assert await ask(served.urls.program, "SELECT 1") == 1
    zombie.wait()


def _started_by_hand(command: list[str], user: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, user=user if user != os.geteuid() else None, cwd="/")


@pytest.mark.parametrize("content", ["", "garbage\n", "-1\n", "99999999999999999999\n", "\0\0\0\0", "{stranger}\n"])
async def test_a_stale_pid_file_stops_nothing_and_harms_nobody(made_home: Path, content: str) -> None:
    with stranger(made_home) as process:
        text = content.format(stranger=process.pid)
        (data_of(made_home) / "postmaster.pid").write_text(text)
        (made_home / "postgres" / "run" / f"{SOCKET_NAME}.lock").write_text(text)
        with pytest.raises(NotRunning):
            attach(made_home)
        async with running(made_home) as served:
            assert await ask(served.urls.program, "SELECT 1") == 1


async def test_a_server_whose_pid_file_was_lost_is_replaced(made_home: Path) -> None:
    async with running(made_home) as served, watched(served):
        before = postmaster_pid(made_home)
        (data_of(made_home) / "postmaster.pid").unlink()
        await until_answers(made_home, other_than=before)
        assert not psutil.pid_exists(before)


async def test_a_server_whose_socket_was_swept_away_is_replaced(made_home: Path) -> None:
    async with running(made_home) as served, watched(served):
        before = postmaster_pid(made_home)
        (made_home / "postgres" / "run" / SOCKET_NAME).unlink()
        await until_answers(made_home, other_than=before)


async def test_a_server_that_cannot_start_is_tried_again_until_it_can(made_home: Path) -> None:
    reports: list[str] = []
    async with running(made_home, reports) as served, watched(served):
        before = postmaster_pid(made_home)
        broken = data_of(made_home) / "postgresql.auto.conf"
        broken.write_text("work_mem = 'lots'\n")
        os.kill(before, signal.SIGKILL)
        await until(lambda: sum("work_mem" in line for line in reports) >= 2)
        broken.write_text("")
        await until_answers(made_home, other_than=before)


async def test_recovery_may_take_as_long_as_it_needs(made_home: Path) -> None:
    await _crash_with_much_to_replay(made_home)
    reports: list[str] = []
    served = EmbeddedServer(made_home, report=reports.append)
    start = asyncio.create_task(served.start())
    recovery = await _startup_process(made_home)
    recovery.suspend()
    await asyncio.sleep(12)
    assert not start.done()
    with pytest.raises(NotRunning, match="still starting"):
        attach(made_home)
    recovery.resume()
    await start
    assert sum("has been starting for" in line for line in reports) >= 3
    assert await ask(served.urls.owner, "SELECT count(*) FROM a") == 300_000
    await served.stop()


async def _crash_with_much_to_replay(home: Path) -> None:
    served = EmbeddedServer(home)
    await served.start()
    await ask(served.urls.owner, "CREATE TABLE a (b int)")
    await ask(served.urls.owner, "INSERT INTO a SELECT generate_series(1, 300000)")
    os.kill(postmaster_pid(home), signal.SIGKILL)
    await served.stop()


async def _startup_process(home: Path) -> psutil.Process:
    while True:
        for process in processes_in(data_of(home)):
            if "startup" in " ".join(process.cmdline()):
                return process
        await asyncio.sleep(0)


@pytest.mark.needs("root")
async def test_a_disk_too_small_for_a_new_database_is_named() -> None:
    with small_disk(mebibytes=24) as home:
        with pytest.raises(
            DiskFull, match=rf"The disk that holds {home}/postgres is full \(\d+\.\d MiB free\): make space"
        ):
            await EmbeddedServer(home).start()
        assert not processes_in(home)


@pytest.mark.needs("root")
@pytest.mark.parametrize("full_before_our_files", [True, False])
async def test_a_full_disk_stops_a_start_and_space_lets_it_go_on(
    monkeypatch: pytest.MonkeyPatch, full_before_our_files: bool
) -> None:
    with small_disk(mebibytes=160) as home:
        async with running(home) as served:
            await ask(served.urls.owner, "CREATE TABLE a AS SELECT 5 AS b")
        if full_before_our_files:
            fill(home)
        else:  # the server is then the first to find no space, and cannot even write why
            monkeypatch.setattr(server, "server_arguments", lambda *given: _when_full(home, given))
        with pytest.raises(DiskFull, match=rf"The disk that holds {home}/postgres is full \(0\.0 MiB free\)"):
            await EmbeddedServer(home).start()
        monkeypatch.undo()
        (home / "ballast").unlink()
        async with running(home) as served:
            assert await ask(served.urls.owner, "SELECT b FROM a") == 5


def _when_full(home: Path, given: tuple[Any, ...]) -> list[str | Path]:
    fill(home)
    return server_arguments(*given)


@pytest.mark.needs("root")
async def test_an_orphan_can_be_stopped_on_a_full_disk() -> None:
    with small_disk(mebibytes=160) as home:
        with owner_process(home) as owner:
            fill(home)
            owner.kill()
            owner.wait()
        assert await stop_orphan(home) is True
        assert not processes_in(home)


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


def fill(place: Path) -> None:
    room = os.statvfs(place)
    with (place / "ballast").open("wb") as ballast:
        os.posix_fallocate(ballast.fileno(), 0, room.f_bavail * room.f_frsize)


@asynccontextmanager
async def watched(server: EmbeddedServer) -> AsyncIterator[None]:
    watching = asyncio.create_task(server.watch())
    try:
        yield
        assert not watching.done()
    finally:
        watching.cancel()
