"""One process owns the server, others attach; a killed owner leaves an orphan that is adopted or stopped."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.worlds.databases import embedded_owner
from tests.worlds.databases.embedded_server import ask, owner_process, postmaster_pid, running, until_answers
from tests.worlds.places import processes_in
from tidemill.core.faults import AlreadyRunning, NotRunning
from tidemill.store.embedded import EmbeddedServer, attach, binaries, configuration, owner_pid, stop_orphan, tool

pytest_plugins = ("tests.worlds.databases.embedded_homes",)


async def test_a_second_owner_is_refused_with_the_pid_of_the_first(made_home: Path) -> None:
    with owner_process(made_home) as first:
        with pytest.raises(AlreadyRunning, match=rf"process {first.pid}\b.*tidemill down"):
            await EmbeddedServer(made_home).start()
        with pytest.raises(AlreadyRunning):
            await stop_orphan(made_home)
        assert owner_pid(made_home) == first.pid
        assert await ask(attach(made_home).program, "SELECT 1") == 1


async def test_of_owners_that_start_at_once_exactly_one_wins(empty_home: Path) -> None:
    servers = [EmbeddedServer(empty_home) for _ in range(5)]
    outcomes = await asyncio.gather(*(server.start() for server in servers), return_exceptions=True)
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, AlreadyRunning) for outcome in outcomes) == 4
    for server in servers:
        await server.stop()
    assert not processes_in(empty_home)


async def test_looking_for_the_owner_never_stops_one_from_starting(made_home: Path) -> None:
    looking = asyncio.create_task(_look(made_home))
    for _ in range(3):
        async with running(made_home):
            assert owner_pid(made_home) == os.getpid()
        assert owner_pid(made_home) is None
    looking.cancel()


async def _look(home: Path) -> None:
    while True:
        owner_pid(home)
        await asyncio.sleep(0)


async def test_the_orphan_of_a_killed_owner_is_adopted(made_home: Path) -> None:
    with owner_process(made_home) as owner:
        pid = postmaster_pid(made_home)
        owner.kill()
        owner.wait()
    assert owner_pid(made_home) is None
    await ask(attach(made_home).owner, "CREATE TABLE a AS SELECT 1")
    reports: list[str] = []
    async with running(made_home, reports) as server:
        assert postmaster_pid(made_home) == pid
        assert await ask(server.urls.owner, "SELECT count(*) FROM a") == 1
        assert reports == [f"Adopting the database server that is running already (process {pid})."]
    assert not processes_in(made_home)


async def test_an_adopted_server_is_watched_like_any_other(made_home: Path) -> None:
    with owner_process(made_home) as owner:
        owner.kill()
        owner.wait()
    async with running(made_home) as server:
        watching = asyncio.create_task(server.watch())
        first = postmaster_pid(made_home)
        os.kill(first, signal.SIGKILL)
        await until_answers(made_home, other_than=first)
        watching.cancel()


@pytest.mark.parametrize("changed", ["settings", "programs"])
async def test_an_orphan_with_other_settings_or_programs_is_restarted_in_order(
    made_home: Path, changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with owner_process(made_home) as owner:
        pid = postmaster_pid(made_home)
        owner.kill()
        owner.wait()
    if changed == "settings":
        monkeypatch.setitem(configuration.SETTINGS, "max_connections", "50")
    else:
        moved = made_home / "moved"  # as after an installation in another place
        moved.symlink_to(tool("postgres").parents[1])
        monkeypatch.setattr(binaries, "_wheel", lambda: moved)
    reports: list[str] = []
    async with running(made_home, reports) as server:
        assert postmaster_pid(made_home) != pid
        assert await ask(server.urls.program, "SHOW max_connections") == ("50" if changed == "settings" else "60")
    assert reports == ["Restarting the database server: it runs other programs or settings."]


async def test_an_orphan_can_be_stopped_and_is_then_gone(made_home: Path) -> None:
    assert await stop_orphan(made_home / "nowhere") is False
    assert await stop_orphan(made_home) is False
    with owner_process(made_home) as owner:
        owner.kill()
        owner.wait()
    assert await stop_orphan(made_home) is True
    assert not processes_in(made_home)
    assert await stop_orphan(made_home) is False


async def test_without_a_server_attaching_says_how_to_start_one(made_home: Path) -> None:
    no_pool = r"There is no pool in .*/nowhere: start one with `tidemill up`"
    stopped = r"The pool is not running: start it with `tidemill up`\."
    for home, said in ((made_home, stopped), (made_home / "nowhere", no_pool)):
        with pytest.raises(NotRunning, match=said):
            attach(home)
        assert owner_pid(home) is None


@pytest.mark.parametrize("immediate", [False, True])
async def test_stopping_cuts_sessions_and_leaves_no_process_not_even_a_zombie(made_home: Path, immediate: bool) -> None:
    server = EmbeddedServer(made_home)
    await server.start()
    pid = postmaster_pid(made_home)
    session = asyncio.create_task(ask(server.urls.program, "SELECT pg_sleep(600)"))
    await asyncio.sleep(0.2)
    await server.stop(immediate=immediate)
    with pytest.raises(Exception, match=r"terminat|shutdown|closed"):
        await session
    assert not processes_in(made_home)
    assert not psutil.pid_exists(pid)
    assert owner_pid(made_home) is None
    async with running(made_home) as server:
        assert await ask(server.urls.program, "SELECT 1") == 1


async def test_two_who_stop_it_at_once_both_see_it_stopped(made_home: Path) -> None:
    server = EmbeddedServer(made_home)
    await server.start()
    await asyncio.gather(server.stop(), server.stop(immediate=True))
    assert not processes_in(made_home)
    assert owner_pid(made_home) is None


async def test_a_server_that_does_not_react_is_ended_all_the_same(
    made_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.store.embedded.server.IMMEDIATE", ((signal.SIGQUIT, 0.3), (signal.SIGKILL, 5.0)))
    server = EmbeddedServer(made_home)
    await server.start()
    os.kill(postmaster_pid(made_home), signal.SIGSTOP)
    await server.stop(immediate=True)
    assert not processes_in(made_home)


@pytest.mark.needs("root")
async def test_root_without_the_right_to_look_into_processes_still_finds_its_own(made_home: Path) -> None:
    owner = Path(embedded_owner.__file__).read_text()
    script = owner.replace("await server.watch()", "await again(home, server)").replace(
        "async def own", AGAIN + "\nasync def own"
    )
    less = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]
    done = await asyncio.to_thread(
        subprocess.run, [*less, sys.executable, "-c", script, made_home], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not processes_in(made_home)


AGAIN = """
import asyncio, os, signal, subprocess
import asyncpg
from tidemill.core.faults import NotRunning
from tidemill.store.embedded import attach

async def again(home, server):
    connection = await asyncpg.connect(server.urls.program)
    os.kill(connection.get_server_pid(), signal.SIGSTOP)
    os.kill(int((home / "postgres/data/postmaster.pid").read_text().split()[0]), signal.SIGKILL)
    watching = asyncio.create_task(server.watch())
    while True:
        await asyncio.sleep(0.1)
        try:
            attach(home)
            break
        except NotRunning:
            continue
    watching.cancel()
    await server.stop()
"""
