"""As root the server runs as a system user: who that is, what it can reach, and what others are told."""

import asyncio
import os
import pwd
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path

import psutil
import pytest

from tests.worlds.databases.embedded_server import ask, postmaster_pid, running
from tests.worlds.places import reachable_directory
from tidemill.core.faults import DatabaseFault
from tidemill.store.embedded import EmbeddedServer, attach, binaries, tool
from tidemill.store.embedded.system_user import find_system_user

pytest_plugins = ("tests.worlds.databases.embedded_homes",)


@pytest.mark.needs("root")
async def test_a_home_behind_a_closed_directory_is_refused_by_name(empty_home: Path) -> None:
    closed = empty_home / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(DatabaseFault, match=rf"may not pass {closed}: choose a TIDEMILL_HOME"):
        await EmbeddedServer(closed / "deeper" / "home").start()


@pytest.mark.needs("root")
async def test_a_home_made_under_a_strict_umask_can_still_be_reached(empty_home: Path) -> None:
    before = os.umask(0o077)
    try:
        async with running(empty_home / "deeper" / "home") as server:
            assert await ask(server.urls.program, "SELECT 1") == 1
    finally:
        os.umask(before)


@pytest.mark.needs("root")
async def test_programs_the_server_cannot_reach_are_copied_once(
    made_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reachable_directory() as hidden:
        shutil.copytree(tool("postgres").parents[1], hidden / "pginstall", symlinks=True)
        hidden.chmod(0o700)
        monkeypatch.setattr(binaries, "_wheel", lambda: hidden / "pginstall")
        async with running(made_home):
            program = Path(psutil.Process(postmaster_pid(made_home)).exe())
            copied_at = os.stat(program).st_ctime_ns
        async with running(made_home):
            assert os.stat(program).st_ctime_ns == copied_at
    assert program.is_relative_to(made_home / "postgres")


@pytest.mark.needs("root")
async def test_a_new_database_is_made_by_programs_that_were_copied(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its maker needs libraries of the package, which the server itself does not."""
    package = tool("postgres").parents[2]
    with reachable_directory() as hidden:
        for folder in (package, package.with_name(binaries.LIBRARIES)):
            shutil.copytree(folder, hidden / folder.name, symlinks=True)
        hidden.chmod(0o700)
        monkeypatch.setattr(binaries, "_wheel", lambda: hidden / package.name / binaries.PROGRAMS)
        async with running(empty_home) as server:
            assert await ask(server.urls.program, "SELECT 1") == 1


@pytest.fixture
def missing_user() -> Iterator[str]:
    """The name of a system user that is not there; whoever got it is removed."""
    name = f"tidemill_{secrets.token_hex(4)}"
    yield name
    subprocess.run(["userdel", name], check=True)


@pytest.mark.needs("root")
async def test_a_missing_system_user_is_created(made_home: Path, missing_user: str) -> None:
    with pytest.raises(DatabaseFault, match="We may not use"):
        await EmbeddedServer(made_home, server_user=missing_user).start()
    assert pwd.getpwnam(missing_user).pw_shell == "/usr/sbin/nologin"


@pytest.mark.needs("root")
def test_pools_that_start_at_once_get_the_same_system_user(missing_user: str) -> None:
    with get_context("fork").Pool(8) as starting:
        found = starting.map(_system_user_as_found, [missing_user] * 8, chunksize=1)
    assert set(found) == {pwd.getpwnam(missing_user).pw_uid}


def _system_user_as_found(name: str) -> int:
    return find_system_user(name, lambda _: None).uid


@pytest.mark.needs("root")
@pytest.mark.parametrize(("name", "words"), [("root", "is root"), ("not/a name", "could not be created")])
async def test_a_system_user_that_cannot_serve_is_refused(empty_home: Path, name: str, words: str) -> None:
    with pytest.raises(DatabaseFault, match=words):
        await EmbeddedServer(empty_home, server_user=name).start()


@pytest.mark.needs("root")
def test_another_user_is_told_whose_pool_it_is(made_home: Path) -> None:
    for question in (attach, lambda home: asyncio.run(EmbeddedServer(home).start())):
        assert "belongs to" in _as_nobody(question, made_home)


def _as_nobody(question: Callable[[Path], object], home: Path) -> str:
    """The fault that a user without rights gets, found out by a child that gives its rights up."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        try:
            os.setuid(65534)
            question(home)
        except DatabaseFault as fault:
            os.write(writing, str(fault).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as answer:
        os.wait()
        return answer.read()
