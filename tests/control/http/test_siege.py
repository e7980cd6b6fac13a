"""A pool whose door is besieged: half-sent requests, stalled bodies, heads that are too large. Others are served."""

import json
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest

from tests.worlds.agents.link_ends import opening
from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, People, people_of
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tests.worlds.pools.tus import BYTES, UPLOADS, VERSION, Client

MIB = 1024 * 1024
HALF = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nX-Rest: "
PROBE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
STREAM = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"

SETTINGS = {**MANY, "TIDEMILL_LIMITS_NODE_PER_MINUTE": "1000000", "TIDEMILL_ARTEFACTS_FREE_BYTES": "2GiB"}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with reachable_directory() as home, pool_in(home, **SETTINGS) as started:
        started.up().set_up()
        yield started
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def up(pool: Pool) -> Running:
    return pool.running[0]


@pytest.fixture(scope="module")
def people(pool: Pool) -> Iterator[People]:
    with people_of(pool.running[0]) as found:
        yield found


def customer(up: Running, people: People) -> Client:
    return Client(up, people.session(people.person()).bearer)


def connected(up: Running, address: str = "127.0.0.1", first: bytes = b"") -> socket.socket:
    """A connection from one of this machine's own addresses."""
    connection = socket.socket()
    connection.settimeout(10)
    connection.bind((address, 0))
    connection.connect(("127.0.0.1", up.port))
    with suppress(ConnectionError):
        connection.sendall(first)
    return connection


def answer(connection: socket.socket) -> bytes:
    """Everything that comes until the connection is closed, or nothing comes for a second."""
    connection.settimeout(1)
    received = b""
    with suppress(ConnectionError, TimeoutError):
        while piece := connection.recv(65536):
            received += piece
    return received


def asked(up: Running, request: bytes, address: str = "127.0.0.1") -> bytes:
    with connected(up, address, request) as connection:
        return connection.recv(65536)


def problem(answered: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answered.partition(b"\r\n\r\n")[2])
    return found


def status(answered: bytes) -> int:
    return int(answered.split(b" ", 2)[1])


@contextmanager
def besieged(up: Running, addresses: list[str], each: int) -> Iterator[list[socket.socket]]:
    held = [connected(up, address, HALF) for _ in range(each) for address in addresses]
    try:
        yield held
    finally:
        for connection in held:
            connection.close()


def everybody_is_served(up: Running, people: People, elsewhere: str) -> None:
    client = customer(up, people)
    began = time.monotonic()
    for address in ("127.0.0.1", elsewhere):
        assert status(asked(up, PROBE, address)) == 200
        assert b" 101 " in asked(up, opening().replace(b"Host: pool", b"Host: localhost"), address)
    assert up.get("/api/v1/admin/switches", headers=up.operator).status_code == 200
    assert client.ask("GET", "/api/v1/account").status_code == 200
    assert up.get("/api/v1/events", headers={"Accept": "application/json"}).status_code == 200
    assert time.monotonic() - began < 5


def test_one_address_with_half_sent_requests_keeps_nobody_out(up: Running, people: People) -> None:
    with besieged(up, ["127.0.0.9"], 2300):
        everybody_is_served(up, people, elsewhere="127.0.0.10")


def test_one_address_with_half_sent_requests_does_not_keep_its_neighbours_out(up: Running, people: People) -> None:
    with besieged(up, ["127.0.0.1"], 2300):
        everybody_is_served(up, people, elsewhere="127.0.0.10")


def test_twenty_addresses_with_half_sent_requests_keep_nobody_out(up: Running, people: People) -> None:
    with besieged(up, [f"127.0.1.{number}" for number in range(1, 21)], 120):
        everybody_is_served(up, people, elsewhere="127.0.0.10")


def test_whoever_waited_longest_is_told_why_they_had_to_go(up: Running) -> None:
    with besieged(up, ["127.0.0.11"], 100) as held:
        until(lambda: "tidemill_http_connections_waiting 100.0" in up.metrics(), "all of them are in")
        held.append(connected(up, "127.0.0.11", HALF))
        displaced = answer(held[0])
        assert (status(displaced), problem(displaced)["code"]) == (503, "connection_displaced")
        assert b"retry-after: 1\r\n" in displaced
        assert not answer(held[100]), "the others stay"


def test_uploads_that_stall_take_little_memory_and_others_go_on(up: Running, people: People) -> None:
    hostile, honest = customer(up, people), customer(up, people)
    paths = [hostile.begun(5 * MIB) for _ in range(200)]
    before = psutil.Process(up.process.pid).memory_info().rss
    stalled = [connected(up, first=_patch(hostile, path, 5 * MIB) + bytes(4 * MIB)) for path in paths[:100]]
    stalled += [connected(up, first=_patch(hostile, path, 5 * MIB) + bytes(100_000)) for path in paths[100:]]
    assert psutil.Process(up.process.pid).memory_info().rss - before < 100 * MIB
    refused = [problem(answered)["code"] for one in stalled if (answered := _at_hand(one))]
    assert refused
    assert set(refused) <= {"too_many_bodies", "connection_displaced"}
    honest.put(bytes(3 * MIB))
    for connection in stalled:
        connection.close()
    until(lambda: "tidemill_http_body_bytes 0.0" in up.metrics(), "the memory is given back")
    assert hostile.add(paths[0], int(hostile.look(paths[0]).headers["upload-offset"]), b"").status_code == 204


def test_bodies_of_strangers_are_bounded_by_their_address(up: Running, people: People) -> None:
    head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    stalled = [connected(up, "127.0.0.12", head + b"Content-Length: 1048576\r\n\r\n" + bytes(10)) for _ in range(60)]
    until(lambda: any(_at_hand(one) for one in stalled), "the last are refused")
    refused = [problem(answered)["code"] for one in stalled if (answered := _at_hand(one))]
    assert set(refused) == {"too_many_bodies"}
    assert 20 <= len(stalled) - len(refused) <= 30, "an eighth of what is free"
    elsewhere = asked(up, head + b"Content-Length: 2\r\n\r\n{}", "127.0.0.13")
    assert status(elsewhere) == 422
    assert customer(up, people).ask("GET", "/api/v1/account").status_code == 200
    for connection in stalled:
        connection.close()


@pytest.mark.parametrize(
    ("lines", "expected", "code"),
    [
        ([b"Host: localhost", b"X: " + b"y" * 70_000], 431, "headers_too_large"),
        ([b"Host: localhost", *[b"X: y"] * 100], 431, "headers_too_large"),
        ([b"Host: localhost", b"Host: localhost"], 400, "host_unclear"),
        ([b"Host: localhost", b"Host: evil.example"], 400, "host_unclear"),
        ([b"X: y"], 400, "host_unclear"),
        ([b"Host : localhost"], 400, "request_malformed"),
    ],
)
def test_a_head_that_is_too_large_or_unclear_is_refused_also_in_one_packet(
    up: Running, lines: list[bytes], expected: int, code: str
) -> None:
    answered = asked(up, b"\r\n".join([b"GET /healthz HTTP/1.1", *lines, b"", b""]))
    assert (status(answered), problem(answered)["code"]) == (expected, code)
    assert problem(answered)["detail"].endswith(".")


def test_an_older_request_needs_no_host(up: Running) -> None:
    assert status(asked(up, b"GET /healthz HTTP/1.0\r\n\r\n")) == 421, "it is read; only this machine's names are ours"


def test_requests_sent_ahead_without_end_take_no_memory(up: Running) -> None:
    before = psutil.Process(up.process.pid).memory_info().rss
    ahead = [connected(up, "127.0.0.14", STREAM + 9000 * PROBE) for _ in range(30)]
    until(lambda: all(_is_over(one) for one in ahead), "they are cut off")
    assert psutil.Process(up.process.pid).memory_info().rss - before < 60 * MIB


@pytest.mark.parametrize("sent", [0, 1000, 4 * MIB])
def test_a_stream_that_is_left_with_a_request_behind_it_ends_soon_and_is_no_error(up: Running, sent: int) -> None:
    connection = connected(up, first=STREAM)
    until(lambda: _readers(up) == 1, "the stream is open")
    behind = f"PATCH {UPLOADS}/1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: {4 * MIB}\r\n\r\n".encode()
    connection.setblocking(False)
    with suppress(BlockingIOError):
        connection.send(behind + bytes(sent))
    time.sleep(0.1)
    connection.close()
    until(lambda: _readers(up) == 0, "the stream has ended", within_s=4)
    assert "Traceback" not in up.said()
    assert '"bug"' not in up.said()


def test_a_proxy_is_not_bounded_but_those_it_speaks_for_are(pool: Pool) -> None:
    behind = pool.control("--behind-proxy", "127.0.0.1", TIDEMILL_HTTP_CONNECTIONS_PER_CALLER_MAX="3")
    behind.until_ready()

    def streams(number: int, address: str) -> list[socket.socket]:
        request = STREAM.replace(b"\r\n\r\n", b"\r\nX-Forwarded-For: %s\r\n\r\n" % address.encode())
        return [connected(behind, first=request) for _ in range(number)]

    first = streams(5, "203.0.113.9")
    answers = [_begun(one) for one in first]
    assert sorted(map(status, answers)) == [200, 200, 200, 503, 503]
    assert {problem(one)["code"] for one in answers if status(one) == 503} == {"too_many_connections"}
    second = streams(3, "203.0.113.10")
    assert [status(one.recv(65536)) for one in second] == [200, 200, 200]
    for connection in (*first, *second):
        connection.close()
    assert behind.end() == 0


def _patch(client: Client, path: str, length: int) -> bytes:
    headers = {**client.shown, **VERSION, **BYTES, "Upload-Offset": "0", "Content-Length": str(length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"PATCH {path} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n".encode()


def _at_hand(connection: socket.socket) -> bytes:
    """The problem that has arrived already, if it is whole."""
    connection.setblocking(False)
    try:
        received = connection.recv(65536, socket.MSG_PEEK)
    except (BlockingIOError, ConnectionError):
        return b""
    return received if received.endswith(b"}") else b""


def _is_over(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def _begun(connection: socket.socket) -> bytes:
    """The beginning of a stream, or a whole problem: its head and its body may come apart."""
    received = connection.recv(65536)
    while status(received) != 200 and not received.endswith(b"}"):
        received += connection.recv(65536)
    return received


def _readers(up: Running) -> float:
    lines = up.metrics().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("tidemill_event_readers "))
