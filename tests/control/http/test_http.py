"""The control API as its callers meet it: answers, problems, keys, streams, and clients that misbehave."""

import asyncio
import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.core.events.log import SwitchThrown
from tidemill.core.ids import Ids
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.events import events

SETTINGS = {
    "TIDEMILL_HTTP_HEADER_DEADLINE_S": "1",
    "TIDEMILL_HTTP_BODY_DEADLINE_S": "2",
    "TIDEMILL_HTTP_WRITE_DEADLINE_S": "1",
    "TIDEMILL_HTTP_EVENT_HEARTBEAT_S": "1",
    "TIDEMILL_EVENTS_KEEP_IN_MEMORY": "10",
    "TIDEMILL_EVENTS_BATCH_MAX": "5",
    "TIDEMILL_LOOPS_POLL_S": "10s",  # so that what arrives sooner was announced
}


@pytest.fixture(scope="module")
def up() -> Iterator[Running]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as pool:
        running = pool.up()
        running.set_up()
        yield running


def throw(up: Running, switch: str, action: str, reason: str = "why", **headers: str | bytes) -> httpx2.Response:
    path = f"/api/v1/admin/switches/{switch}/{action}"
    return up.post(path, json={"reason": reason}, headers={**up.operator, **headers})


def test_health_readiness_and_metrics_answer(up: Running) -> None:
    assert up.get("/healthz").json()["alive"] is True
    ready = up.get("/readyz").json()
    assert ready["ready"]
    assert set(ready["checks"].values()) == {"ok"}
    up.events()
    metrics = up.metrics()
    assert 'method="GET",route="/api/v1/events",status="200"' in metrics
    assert 'tidemill_http_request_seconds_count{method="GET",route="/readyz",status="200"}' in metrics
    assert 'tidemill_loop_tick_seconds_count{loop="heartbeat",outcome="done"}' in metrics
    assert "tidemill_links 0.0" in metrics
    assert "tidemill_clock_trusted 1.0" in metrics


def test_the_api_describes_itself(up: Running) -> None:
    described = up.get("/api/v1/openapi.json").json()
    assert described["info"]["title"] == "Tidemill"
    assert "/api/v1/events" in described["paths"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation.get("summary"), f"{method} {path} has no summary"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/v1/nothing", 404, "not_found"),
        ("DELETE", "/healthz", 405, "method_not_allowed"),
        ("GET", "/api/v1/admin/switches", 401, "unauthenticated"),
        ("GET", "/api/v1/events?after=rubbish", 400, "cursor_malformed"),
        ("GET", "/api/v1/events?limit=0", 422, "invalid_request"),
        ("POST", "/api/v1/admin/switches/placement/stop", 401, "unauthenticated"),
    ],
)
def test_every_no_is_a_problem_with_a_code_and_a_sentence(
    up: Running, method: str, path: str, status: int, code: str
) -> None:
    body = {"reason": "why"} if method == "POST" else None
    answer = httpx2.request(method, up.url + path, json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["status"]) == (status, code, status)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == problem["request_id"]
    assert problem["detail"].endswith(".")


def test_a_wrong_token_is_refused_and_never_treated_as_a_stranger(up: Running) -> None:
    unknown, wrong = "token_unknown", "token_wrong"
    for header, code in (("Bearer wrong", unknown), ("Basic abc", wrong), ("Bearer", unknown), ("Bearer é", unknown)):
        answer = up.get("/api/v1/events", headers={"Authorization": header.encode()})
        assert (answer.status_code, answer.json()["code"]) == (401, code)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_a_switch_needs_a_reason_and_a_known_name(up: Running) -> None:
    for reason, code in (("", "reason_missing"), ("   ", "reason_missing"), ("x" * 501, "invalid_request")):
        assert throw(up, "payouts", "stop", reason).json()["code"] == code
    assert throw(up, "nothing", "stop").json()["code"] == "invalid_request"
    assert throw(up, "payouts", "start").json()["code"] == "already_so"


def test_the_same_key_gives_the_same_answer_and_one_effect(up: Running) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: throw(up, "placement", "stop", **{"Idempotency-Key": "k1"}), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 7
    assert throw(up, "placement", "stop").json()["code"] == "already_so"
    other_body = throw(up, "placement", "stop", "another", **{"Idempotency-Key": "k1"})
    assert (other_body.status_code, other_body.json()["code"]) == (422, "idempotency_key_reused")
    other_route = throw(up, "placement", "start", **{"Idempotency-Key": "k1"})
    assert other_route.status_code == 200
    thrown = [event["body"] for event in up.events() if event["kind"] == "pool.switch_thrown"]
    assert [(one["switch"], one["stopped"]) for one in thrown] == [("placement", True), ("placement", False)]


def test_a_refused_request_leaves_its_key_free(up: Running) -> None:
    key = {"Idempotency-Key": "k2"}
    assert throw(up, "payouts", "start", **key).status_code == 409
    assert throw(up, "payouts", "start", **key).status_code == 409
    assert throw(up, "payouts", "start", **{"Idempotency-Key": "é".encode()}).status_code == 400
    assert throw(up, "payouts", "start", **{"Idempotency-Key": "k" * 256}).json()["code"] == "idempotency_key_malformed"


def test_request_ids_are_taken_over_only_when_decent(up: Running) -> None:
    assert up.get("/healthz", headers={"X-Request-ID": "mine-1.2_3"}).headers["x-request-id"] == "mine-1.2_3"
    for hostile in ("a b", "x" * 129, "<script>", '"}{'):
        assert up.get("/healthz", headers={"X-Request-ID": hostile}).headers["x-request-id"] != hostile


def test_lists_come_in_pages(up: Running) -> None:
    headers = {"Accept": "application/json", **up.operator}
    whole = up.events()
    paged: list[Any] = []
    after, more = "start", True
    while more:
        page = up.get(f"/api/v1/events?limit=2&after={after}", headers=headers).json()
        assert len(page["items"]) <= 2
        paged += page["items"]
        after, more = page["after"], page["has_more"]
    assert paged == whole


def test_strangers_see_only_what_is_public(up: Running) -> None:
    mine = {event["kind"] for event in up.events()}
    public = {
        event["kind"] for event in up.get("/api/v1/events", headers={"Accept": "application/json"}).json()["items"]
    }
    assert "process.started" in mine
    assert public
    assert all(kind.startswith("pool.") or kind == "audit.head_published" for kind in public)
    assert not public & {"pool.backup_made", "pool.clock_alarm", "process.started"}


def read_stream(up: Running, want: int, **headers: str) -> list[dict[str, Any]]:
    """So many events from the stream, then hang up."""
    found: list[dict[str, Any]] = []
    with (
        httpx2.Client(timeout=10) as client,
        client.stream("GET", up.url + "/api/v1/events?after=start", headers={**up.operator, **headers}) as stream,
    ):
        for line in stream.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line[6:]))
                if len(found) == want:
                    return found
    raise AssertionError("the stream ended early")


def test_a_stream_goes_on_where_it_broke(up: Running) -> None:
    for number in range(15):
        assert throw(up, "payouts", "stop", f"{number}").status_code == 200
        assert throw(up, "payouts", "start", f"{number}").status_code == 200
    whole = up.events()
    assert len(whole) > 30, "more than memory keeps, so the beginning comes from the database"
    collected = read_stream(up, 3)
    while len(collected) < len(whole):
        collected += read_stream(up, min(7, len(whole) - len(collected)), **{"Last-Event-ID": collected[-1]["cursor"]})
    assert collected == whole


def test_a_live_stream_hears_at_once_and_stays_awake_in_silence(up: Running) -> None:
    heard: list[tuple[float, str]] = []

    def listen() -> None:
        with httpx2.Client(timeout=10) as client, client.stream("GET", up.url + "/api/v1/events") as stream:
            for line in stream.iter_lines():
                heard.append((time.monotonic(), line))
                if "live" in line:
                    return

    listener = threading.Thread(target=listen)
    listener.start()
    until(lambda: any(line.startswith(": still here") for _, line in heard), "a heartbeat comes")
    sent = time.monotonic()
    assert throw(up, "payouts", "stop", "live").status_code == 200
    listener.join(30)
    assert heard[-1][0] - sent < 3, "the commit was announced, not found by polling"
    assert throw(up, "payouts", "start", "live over").status_code == 200


def test_bodies_and_headers_have_limits(up: Running) -> None:
    large = up.post("/api/v1/admin/switches/all/stop", content=b"x" * (1 << 20 | 1), headers=up.operator)
    assert (large.status_code, large.json()["code"]) == (413, "body_too_large")
    unannounced = up.post("/api/v1/admin/switches/all/stop", content=iter([b"x" * 70_000] * 20), headers=up.operator)
    assert unannounced.status_code == 413
    with socket.create_connection(("127.0.0.1", up.port)) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises(ConnectionError):
            for _ in range(5_000):
                raw.sendall(b"X-Filler: " + b"y" * 1000 + b"\r\n")
                time.sleep(0.002)


def raw_request(up: Running, data: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", up.port), timeout=10)
    connection.sendall(data)
    return connection


def test_a_client_that_is_slow_with_headers_or_body_is_cut_off(up: Running) -> None:
    began = time.monotonic()
    half = raw_request(up, b"GET /healthz HTTP/1.1\r\nHost:")
    silent = socket.create_connection(("127.0.0.1", up.port), timeout=10)
    assert b" 408 " in half.recv(100)
    assert b" 408 " in silent.recv(100)
    assert 0.8 < time.monotonic() - began < 9
    token = up.operator["Authorization"]
    head = f"POST /api/v1/admin/switches/all/stop HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n"
    began = time.monotonic()
    body = raw_request(up, head.encode() + b'Content-Length: 99\r\n\r\n{"rea')
    assert body.recv(100) == b""
    assert 1.5 < time.monotonic() - began < 9


def test_a_second_request_on_a_connection_has_a_deadline_too(up: Running) -> None:
    connection = raw_request(up, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = b""
    while not answer.endswith(b"}"):
        answer += connection.recv(4096)
    assert b" 200 " in answer
    connection.sendall(b"GET /healthz HTT")
    began = time.monotonic()
    assert b" 408 " in connection.recv(4096)
    assert time.monotonic() - began < 9


def test_five_hundred_half_open_requests_do_not_keep_others_out(up: Running) -> None:
    half_open = [raw_request(up, b"POST /x HTTP/1.1\r\nHost: localhost\r\nX-A: ") for _ in range(500)]
    began = time.monotonic()
    assert up.get("/healthz").status_code == 200
    assert time.monotonic() - began < 1
    for connection in half_open:
        connection.close()


async def fill_log(home: Path, count: int) -> None:
    connection = await connect(attach(home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        filler = [SwitchThrown("all", stopped=True, reason="r" * 500, by="ann")] * count
        await events.append(connection, filler, Ids(secrets.randbits), now)
    await connection.close()


def test_a_reader_that_does_not_read_is_cut_off(up: Running) -> None:
    asyncio.run(fill_log(up.home, 20_000))
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", up.port))
    before = _streams(up)
    connection.sendall(b"GET /api/v1/events?after=start HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: _streams(up) == before + 1, "the stream is open")
    until(lambda: _streams(up) == before, "the server gives the deaf reader up")
    connection.close()


def _streams(up: Running) -> float:
    line = next(line for line in up.metrics().splitlines() if line.startswith("tidemill_event_readers "))
    return float(line.split()[1])


def test_garbage_on_the_socket_is_survived(up: Running) -> None:
    for garbage in (
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"GET /%zz HTTP/1.1\r\n\r\n",
        b"\r\n" * 50,
    ):
        with raw_request(up, garbage) as connection:
            connection.settimeout(3)
            with suppress(TimeoutError):
                connection.recv(100)
    assert up.get("/healthz").status_code == 200
