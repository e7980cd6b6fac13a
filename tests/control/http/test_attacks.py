"""Tries to get in, to get more than one's share, and to get at an operator's terminal. Each was once successful."""

import os
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tidemill.core.events.log import SwitchThrown
from tidemill.core.ids import Ids
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.events import events

SETTINGS = {
    "TIDEMILL_HTTP_HEADER_DEADLINE_S": "1",
    "TIDEMILL_HTTP_KEEP_ALIVE_S": "1",
    "TIDEMILL_HTTP_EVENT_STREAMS_PER_CALLER_MAX": "3",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as started:
        started.up().set_up()
        yield started


@pytest.fixture
def up(pool: Pool) -> Running:
    return pool.running[0]


def opened(up: Running, first: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", up.port), timeout=10)
    connection.sendall(first)
    return connection


def test_trailers_without_end_cost_no_memory(up: Running) -> None:
    process = psutil.Process(up.process.pid)
    before = process.memory_info().rss
    connection = opened(up, b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    with pytest.raises(ConnectionError):
        for _ in range(2000):
            connection.sendall(b"X-Filler: " + b"y" * 60_000 + b"\r\n")
    assert process.memory_info().rss - before < 20 * 2**20
    assert up.get("/healthz").status_code == 200


def test_tiny_chunks_of_an_honest_client_are_let_through(up: Running) -> None:
    body = b'{"reason": "' + b"r" * 200 + b'"}'
    answer = up.post("/api/v1/admin/switches/all/start", content=(bytes([byte]) for byte in body), headers=up.operator)
    assert answer.json()["code"] in ("invalid_request", "already_so")


def test_an_empty_line_after_an_answer_does_not_keep_a_connection_for_ever(up: Running) -> None:
    connection = opened(up, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while not connection.recv(4096).endswith(b"}"):
        continue
    connection.sendall(b"\r\n")
    connection.settimeout(5)
    answer = connection.recv(4096)
    assert answer == b"" or b" 408 " in answer


def test_a_stranger_has_few_streams_and_operators_are_let_in_beyond(up: Running) -> None:
    with httpx2.Client(timeout=5) as client:
        streams = [client.send(client.build_request("GET", up.url + "/api/v1/events"), stream=True) for _ in range(3)]
        assert {stream.status_code for stream in streams} == {200}
        refused = client.get(up.url + "/api/v1/events")
        assert (refused.status_code, refused.json()["code"]) == (503, "too_many_streams")
        operators = client.build_request("GET", up.url + "/api/v1/events", headers=up.operator)
        mine = client.send(operators, stream=True)
        assert mine.status_code == 200
        for stream in (mine, *streams):
            stream.close()
    until(lambda: up.metrics().count("tidemill_event_readers 0.0") == 1, "all have left")


def test_strangers_who_come_at_once_get_no_more_streams_than_one_after_another(up: Running) -> None:
    asked = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    connections = [opened(up, b"") for _ in range(30)]
    for connection in connections:
        connection.sendall(asked)
    answers = [connection.recv(4096).split(b" ", 2)[1] for connection in connections]
    assert (answers.count(b"200"), answers.count(b"503")) == (3, 27)
    for connection in connections:
        connection.close()
    until(lambda: up.metrics().count("tidemill_event_readers 0.0") == 1, "all have left")


def test_requests_that_take_every_connection_do_not_stop_the_loops(up: Running) -> None:
    began = time.monotonic()
    half = [
        opened(up, b"GET /api/v1/events?after=start HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n")
        for _ in range(200)
    ]
    assert up.get("/readyz").json()["checks"]["loops"] == "ok"
    assert time.monotonic() - began < 10
    for connection in half:
        connection.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8420", "127.0.0.1.evil.example", ""])
def test_another_name_for_this_machine_is_refused(up: Running, host: str) -> None:
    answer = up.get("/metrics", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (421, "wrong_host")


def test_a_web_page_of_another_site_can_neither_post_nor_read(up: Running) -> None:
    origin = {"Origin": "https://evil.example"}
    posted = up.post("/api/v1/admin/switches/all/stop", json={"reason": "x"}, headers=origin)
    assert (posted.status_code, posted.json()["code"]) == (403, "foreign_page")
    assert (
        "access-control-allow-origin"
        not in up.get("/api/v1/events", headers={"Accept": "application/json", **origin}).headers
    )


@pytest.mark.parametrize("reason", ["a\u0000b", "\u001b]0;title\u0007", "\ud800", "\u009b31m", "line\nline"])
def test_a_reason_that_cannot_be_shown_is_refused_and_logs_no_bug(up: Running, reason: str) -> None:
    body = ('{"reason": "' + "".join(f"\\u{ord(c):04x}" for c in reason) + '"}').encode()
    headers = {"Content-Type": "application/json", **up.operator}
    answer = up.post("/api/v1/admin/switches/all/stop", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert '"bug"' not in up.said()


async def test_text_in_the_database_cannot_drive_a_terminal(pool: Pool) -> None:
    connection = await connect(attach(pool.home).program)
    async with connection.transaction():
        hostile = SwitchThrown("all", stopped=True, reason="\x1b]0;owned\x07\x9b31m", by="ann")
        await events.append(connection, [hostile], Ids(secrets.randbits), await read_clock(connection))
    await connection.close()
    for arguments in (["events"], ["events", "--json"]):
        shown = pool.run(*arguments).stdout
        assert "owned" in shown
        assert not any(character in shown for character in "\x1b\x07\x9b")


def test_a_path_cannot_drive_a_terminal_through_the_log(place: Path) -> None:
    with pool_in(place, TIDEMILL_LOG_FORMAT="console") as pool:
        up = pool.up()
        up.until_ready()
        up.get("/%1b]0;owned%07")
        until(lambda: "owned" in up.said(), "the request is logged")
        assert "\x1b" not in up.said()


def test_nobody_else_can_read_what_the_pool_keeps(pool: Pool) -> None:
    pool.json("db", "backup")
    private = [pool.home / "operator.token", pool.home / "postgres.secrets.json", pool.home / "postgres"]
    private += [pool.home / "backups", *(pool.home / "backups").iterdir()]
    for path in private:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_an_empty_token_opens_nothing(place: Path) -> None:
    (place / "operator.token").touch()
    with pool_in(place) as pool:
        refused = pool.run("up")
        assert refused.returncode == 5
        assert "operator.token" in refused.stderr


def test_a_backup_overwrites_and_deletes_nothing(pool: Pool, place: Path) -> None:
    for name in ("notes.partial", "precious.txt"):
        (place / name).write_text("mine")
    refused = pool.run("db", "backup", str(place / "precious.txt"))
    assert (refused.returncode, "already" in refused.stderr) == (1, True)
    assert pool.run("db", "backup", str(place / "nowhere" / "x")).returncode == 1
    assert pool.run("db", "backup", str(place)).returncode == 1
    assert pool.run("db", "backup", str(place / "notes.dump")).returncode == 0
    assert stat.S_IMODE((place / "notes.dump").stat().st_mode) == 0o600
    assert (place / "notes.partial").read_text() == (place / "precious.txt").read_text() == "mine"


@pytest.mark.needs("root")
def test_root_does_not_work_in_a_home_that_others_can_change(place: Path) -> None:
    for owner, mode in ((65534, 0o755), (0, 0o777)):
        home = place / f"home-{owner}-{mode}"
        home.mkdir()
        os.chown(home, owner, -1)
        home.chmod(mode)
        with pool_in(home) as pool:
            refused = pool.run("up")
            assert refused.returncode == 5
            assert "Others than root" in refused.stderr
        with suppress(FileNotFoundError):
            assert list(home.iterdir()) == []


@pytest.mark.needs("root")
def test_root_gives_no_foreign_directory_away(place: Path) -> None:
    precious = place / "precious"
    precious.mkdir(mode=0o755)
    (precious / "file").write_text("mine")
    home = place / "home"
    home.mkdir(mode=0o711)
    (home / "postgres").symlink_to(precious)
    with pool_in(home) as pool:
        assert pool.run("up").returncode == 5
    assert (precious.stat().st_uid, stat.S_IMODE(precious.stat().st_mode)) == (0, 0o755)
