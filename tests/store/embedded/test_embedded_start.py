"""A home's first start and every later one: what is made, what it is protected by, what stops it."""

import asyncio
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests.worlds.databases.embedded_server import ask, data_of, postmaster_pid, running, starting_process, until
from tests.worlds.places import processes_in
from tidemill.core.faults import DatabaseFault, NotRunning, WrongVersion
from tidemill.store.address import tool_arguments
from tidemill.store.embedded import EmbeddedServer, attach, tool
from tidemill.store.embedded.layout import ServerLayout

pytest_plugins = ("tests.worlds.databases.embedded_homes",)

SETTINGS_THAT_HOLD = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "256MB",
    "max_wal_size": "512MB",
    "jit": "off",
    "fsync": "on",
    "wal_level": "minimal",
    "logging_collector": "on",
    "idle_in_transaction_session_timeout": "1min",
    "lc_messages": "C",
    "TimeZone": "UTC",
    "password_encryption": "scram-sha-256",
}


async def test_a_new_home_gets_roles_that_can_do_no_more_than_they_should(empty_home: Path) -> None:
    async with running(empty_home) as server:
        await ask(server.urls.owner, "CREATE TABLE a (b int)")
        assert await ask(server.urls.owner, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        assert await ask(server.urls.program, "SELECT current_user || ' ' || current_database()") == "tidemill tidemill"
        for refused in ("CREATE TABLE c (d int)", "CREATE TEMP TABLE c (d int)", "SELECT b FROM a"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await ask(server.urls.program, refused)
        assert await ask(server.superuser_url, "SELECT current_database()") == "postgres"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await ask(server.urls.program.replace("tidemill:", "tidemill:x"), "SELECT 1")


async def test_nobody_else_can_read_what_lies_in_the_home(made_home: Path) -> None:
    async with running(made_home):
        top = made_home / "postgres"
        secrets = (top.parent / "postgres.secrets.json").stat()
        assert stat.S_IMODE(secrets.st_mode) == 0o600
        assert secrets.st_uid == os.geteuid()
        assert stat.S_IMODE(top.stat().st_mode) == 0o700
        assert top.owner() == psutil.Process(postmaster_pid(made_home)).username()
        assert psutil.Process(postmaster_pid(made_home)).username() != "root"


async def test_our_settings_hold_whatever_the_cluster_says(made_home: Path) -> None:
    with (data_of(made_home) / "postgresql.conf").open("a") as file:
        file.write("listen_addresses = '*'\nmax_connections = 7\nfsync = off\n")
    async with running(made_home) as server:
        for name, value in SETTINGS_THAT_HOLD.items():
            assert await ask(server.urls.program, f"SHOW {name}") == value, name
        assert await ask(server.urls.program, "SELECT lower('ÄЖ')") == "äж"
        assert not psutil.Process(postmaster_pid(made_home)).net_connections("inet")


async def test_broken_locales_and_stray_variables_change_nothing(
    empty_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = {"LANG": "xx_YY.UTF-8", "LC_ALL": "nowhere", "LC_CTYPE": "klingon", "TZ": "Mars/Base", "PGPORT": "1"}
    stray |= {"PGHOST": "nowhere", "PGDATA": "/nowhere", "PGUSER": "x", "PGPASSWORD": "x", "TIDEMILL_SECRET": "x"}
    for name, value in stray.items():
        monkeypatch.setenv(name, value)
    async with running(empty_home) as server:
        assert await ask(server.urls.program, "SELECT 1") == 1
        environment = psutil.Process(postmaster_pid(empty_home)).environ()
        assert environment["LC_ALL"] == "C"
        assert not set(stray) & set(environment) - {"LC_ALL"}


@pytest.mark.parametrize("delay_s", [0.0, 0.25, 0.45, 0.6])
async def test_a_first_start_killed_at_any_moment_is_made_good_by_the_next(empty_home: Path, delay_s: float) -> None:
    with starting_process(empty_home):
        await until(lambda: (empty_home / "postgres" / "data.new").exists() or data_of(empty_home).exists())
        await asyncio.sleep(delay_s)
    async with running(empty_home) as server:
        assert await ask(server.urls.program, "SELECT 1") == 1
        assert await ask(server.urls.owner, "SELECT 1") == 1
    assert not (empty_home / "postgres" / "data.new").exists()
    assert not processes_in(empty_home)


async def test_a_start_that_is_cancelled_leaves_no_process_and_no_owner(empty_home: Path) -> None:
    for stage in ("data.new/base", "data", "data/postmaster.pid"):
        start = asyncio.create_task(EmbeddedServer(empty_home).start())
        await until((empty_home / "postgres" / stage).exists)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        await asyncio.sleep(0.1)
        assert not processes_in(empty_home)
    async with running(empty_home) as server:
        assert await ask(server.urls.program, "SELECT 1") == 1


async def test_the_data_may_lie_on_another_disk_behind_a_link(made_home: Path) -> None:
    (made_home / "postgres").rename(made_home / "larger disk")
    (made_home / "postgres").symlink_to(made_home / "larger disk")
    async with running(made_home) as server:
        assert attach(made_home) == server.urls
        assert await ask(server.urls.program, "SELECT 1") == 1


async def test_a_short_command_starts_and_stops_again_and_again(made_home: Path) -> None:
    for _ in range(3):
        async with running(made_home) as server:
            assert await ask(server.urls.program, "SELECT 1") == 1
        assert not processes_in(made_home)
        with pytest.raises(NotRunning):
            attach(made_home)


@pytest.mark.parametrize("name", ["with space", "quo'te\"d", "com,ma", "日本ü", "back\\slash", "l" * 120])
async def test_awkward_and_long_homes_work(made_home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made_home / name
    home.mkdir()
    (made_home / "postgres").rename(home / "postgres")
    async with running(home) as server:
        monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
        monkeypatch.setenv("TMPDIR", "/nowhere")
        assert attach(home) == server.urls
        assert await ask(attach(home).program, "SELECT 1") == 1
        url, password = tool_arguments(server.urls.owner)
        said = await asyncio.to_thread(
            subprocess.run, [tool("psql"), "-Atc", "SELECT 41 + 1", url], env=password, capture_output=True, check=True
        )
        assert said.stdout == b"42\n"


@pytest.mark.parametrize("trap", ["symlink", "open", "file"])
async def test_a_socket_directory_that_someone_else_prepared_is_refused(made_home: Path, trap: str) -> None:
    home = made_home / "a home"
    home.mkdir()
    (made_home / "postgres").rename(home / "postgres")
    async with running(home):
        place = Path((data_of(home) / "postmaster.pid").read_text().splitlines()[4])
        assert place.name == ServerLayout.of(home).cluster_name
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    assert place.name not in os.listdir(place.parent)
    with _trap(place, trap, made_home), pytest.raises(DatabaseFault, match="mode 0700"):
        await EmbeddedServer(home).start()


@contextmanager
def _trap(place: Path, trap: str, elsewhere: Path) -> Iterator[None]:
    if trap == "symlink":
        place.symlink_to(elsewhere)
    elif trap == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)
    try:
        yield
    finally:
        place.rmdir() if trap == "open" else place.unlink()


async def test_data_of_another_major_version_is_refused_with_the_way_to_upgrade(made_home: Path) -> None:
    (data_of(made_home) / "PG_VERSION").write_text("16\n")
    with pytest.raises(WrongVersion, match=r"PostgreSQL 16, .* PostgreSQL 18\.\d+.*db backup.*db restore FILE"):
        await EmbeddedServer(made_home).start()


async def test_a_directory_with_other_things_in_it_is_left_alone(made_home: Path) -> None:
    (data_of(made_home) / "PG_VERSION").unlink()
    with pytest.raises(DatabaseFault, match="holds files but no PostgreSQL database"):
        await EmbeddedServer(made_home).start()


@pytest.mark.parametrize(
    ("break_it", "cause"),
    [
        (lambda data: (data / "postgresql.auto.conf").write_text("work_mem = 'lots'\n"), "invalid value for parameter"),
        (lambda data: shutil.rmtree(data / "pg_wal"), "pg_wal"),
        (lambda data: (data / "global" / "pg_control").write_bytes(b"\0" * 8192), "PG_CONTROL_VERSION"),
    ],
)
async def test_a_failed_start_tells_its_cause_and_leaves_nothing(
    made_home: Path, break_it: Callable[[Path], object], cause: str
) -> None:
    break_it(data_of(made_home))
    with pytest.raises(DatabaseFault, match=rf"(?s)PostgreSQL did not start\. Its last words:.*({cause})"):
        await EmbeddedServer(made_home).start()
    assert not processes_in(made_home)


async def test_lost_passwords_are_replaced_even_under_a_running_server(made_home: Path) -> None:
    secrets = made_home / "postgres.secrets.json"
    async with running(made_home) as server:
        await ask(server.urls.owner, "CREATE TABLE kept AS SELECT 7 AS seven")
    secrets.unlink()
    reports: list[str] = []
    async with running(made_home, reports) as server:
        assert await ask(server.urls.owner, "SELECT seven FROM kept") == 7
        assert await ask(server.urls.program, "SELECT 1") == 1
    assert any("setting new ones" in line for line in reports)
    secrets.write_text("{}")
    with pytest.raises(DatabaseFault, match="damaged"):
        await EmbeddedServer(made_home).start()


async def test_passwords_of_another_cluster_are_refused_instead_of_waiting(made_home: Path) -> None:
    secrets = made_home / "postgres.secrets.json"
    secrets.write_text('{"superuser": "a", "owner": "b", "program": "c"}')
    with pytest.raises(DatabaseFault, match="refuses the passwords"):
        await EmbeddedServer(made_home).start()
    assert not processes_in(made_home)


async def test_logs_older_than_a_week_are_dropped_at_a_start(made_home: Path) -> None:
    old = made_home / "postgres" / "log" / "postgresql-Old.log"
    old.write_text("old")
    week_ago = time.time() - 7 * 24 * 3600
    os.utime(old, (week_ago, week_ago))
    async with running(made_home):
        assert not old.exists()
        assert len(list(old.parent.glob("postgresql-*.log"))) <= 2


async def test_the_server_has_a_session_of_its_own(made_home: Path) -> None:
    async with running(made_home):
        assert os.getsid(postmaster_pid(made_home)) == postmaster_pid(made_home)


async def test_the_server_needs_little_memory_at_rest(made_home: Path) -> None:
    async with running(made_home):
        await asyncio.sleep(1)
        at_rest = sum(process.memory_full_info().pss for process in processes_in(made_home))
    assert at_rest < 30 * 1024**2
