"""Bodies made to be dear, and readers who do not read: each is refused or bounded, and others are served meanwhile."""

import gzip
import json
import socket
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.control.http.test_siege import MIB, answer, connected, problem, status
from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tests.worlds.pools.tus import Client

SETTINGS = {"TIDEMILL_ARTEFACTS_FREE_BYTES": "1GiB", "TIDEMILL_LIMITS_ACCOUNT_PER_MINUTE": "10000"}
ORDER, LOGIN = "/api/v1/marketplace/jobs", "/api/v1/auth/login"
SMALL = {"kind": "matmul", "parameters": {"m": 8, "n": 8, "k": 8, "element": "int8", "seed": 1}}

NUMBERS = {"int": "9" * 5_000, "exponent": "1e999999999", "fraction": "0." + "3" * 100_000, "nan": "NaN"}
DEEP = b"[" * 100_000 + b"]" * 100_000
BODIES = {
    "deep list": DEEP,
    "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep value": b'{"kind": "matmul", "parameters": ' + DEEP + b"}",
    "many keys": json.dumps({f"k{number}": number for number in range(50_000)}).encode(),
    "half a pair": rb'{"kind": "\ud800"}',
    "no text": b"\xff\xfe\x00" * 1_000,
    **{
        f"budget {name}": b'{"kind": "matmul", "max_budget": ' + number.encode() + b"}"
        for name, number in NUMBERS.items()
    },
    **{
        f"size {name}": b'{"kind": "matmul", "parameters": {"m": ' + number.encode() + b', "n": 8, "k": 8}}'
        for name, number in NUMBERS.items()
    },
}


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as pool:
        running = pool.up()
        running.set_up()
        yield running
        assert '"bug"' not in running.said()


@pytest.fixture(scope="module")
def people(up: Running) -> Iterator[People]:
    with people_of(up) as found:
        yield found


def request(path: str, body: bytes, **headers: str) -> bytes:
    told = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Connection": "close", **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode() + body


def answered(up: Running, sent: bytes) -> bytes:
    with connected(up, first=sent) as connection:
        return answer(connection)


@pytest.mark.parametrize("what", BODIES)
def test_a_body_that_is_dear_to_read_is_refused_at_once(up: Running, people: People, what: str) -> None:
    client = Client(up, people.session(people.person()).bearer)
    for path, headers in ((ORDER, client.shown), (LOGIN, {})):
        before = psutil.Process(up.process.pid).cpu_times().user
        found = answered(up, request(path, BODIES[what], **headers))
        assert 400 <= status(found) < 500, found[:300]
        assert problem(found)["code"], "it says what is wrong"
        assert psutil.Process(up.process.pid).cpu_times().user - before < 1


def test_a_compressed_body_is_not_unpacked(up: Running, people: People) -> None:
    client = Client(up, people.session(people.person()).bearer)
    bomb = gzip.compress(bytes(64 * MIB))
    before = psutil.Process(up.process.pid).memory_info().rss
    for encoding in ("gzip", "deflate", "br"):
        found = answered(up, request(ORDER, bomb, **client.shown, **{"Content-Encoding": encoding}))
        assert 400 <= status(found) < 500, found[:300]
    assert psutil.Process(up.process.pid).memory_info().rss - before < 32 * MIB


def unread(up: Running, count: int, path: str, headers: dict[str, str]) -> list[socket.socket]:
    """Connections whose answers nobody reads."""
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    sent = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode()
    return [connected(up, first=sent) for _ in range(count)]


@pytest.mark.parametrize("what", ["download", "stream"])
def test_readers_who_do_not_read_take_little_memory_and_others_are_served(
    up: Running, people: People, what: str
) -> None:
    hostile, honest = (Client(up, people.session(people.person()).bearer) for _ in range(2))
    if what == "download":
        path = f"/api/v1/artefacts/{hostile.put(bytes(48 * MIB))}/content"
        headers = hostile.shown
    else:
        path, headers = "/api/v1/events", {**hostile.shown, "Accept": "text/event-stream"}
    before = psutil.Process(up.process.pid).memory_info().rss
    held = unread(up, 20, path, headers)
    try:
        for number in range(20):
            began = time.monotonic()
            honest.put(bytes(1_000 + number))
            assert up.get("/healthz").status_code == 200
            assert time.monotonic() - began < 3
        assert psutil.Process(up.process.pid).memory_info().rss - before < 64 * MIB
    finally:
        for connection in held:
            connection.close()
    until(lambda: up.get("/readyz").status_code == 200, "the pool goes on")


def test_many_who_ask_for_explanations_and_events_at_once_keep_nobody_waiting(up: Running, people: People) -> None:
    hostile, honest = (Client(up, people.session(people.person()).bearer) for _ in range(2))
    ordered = hostile.ask("POST", ORDER, json=SMALL)
    assert ordered.status_code == 201, ordered.text
    paths = (f"{ORDER}/{ordered.json()['id']}/explanation", "/api/v1/events?limit=1000")
    for path in paths:
        for connection in unread(up, 40, path, {**hostile.shown, "Connection": "close"}):
            connection.close()
        began = time.monotonic()
        assert honest.ask("GET", "/api/v1/account").status_code == 200
        assert time.monotonic() - began < 3
