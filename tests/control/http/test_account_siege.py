"""An account without money that has many keys: it is one caller, and what it asks for costs the others nothing."""

import socket
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from typing import Any

import httpx2
import psutil
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, People, bearer, people_of
from tests.worlds.pools.pool import Pool, Running, pool_in, until
from tests.worlds.pools.tus import Client
from tidemill.core.accounts.roles import Role, Scope

MIB = 1024 * 1024
KEYS = 60
ORDER: dict[str, Any] = {
    "kind": "script",
    "parameters": {"program": "print(1)", "arguments": ["{task}"], "seconds": 10},
    "tasks": 1000,
    "expected": ["00" * 32] * 1000,
}
OWN_LIMITS = ("ACCOUNT_PER_MINUTE", "ORDERS_PER_MINUTE", "CREDENTIALS_PER_HOUR")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    settings = {name: value for name, value in MANY.items() if not name.endswith(OWN_LIMITS)}
    with reachable_directory() as home, pool_in(home, **settings) as started:
        started.up().set_up()
        yield started


@pytest.fixture
def up(pool: Pool) -> Running:
    return pool.running[0]


@pytest.fixture(scope="module")
def people(pool: Pool) -> Iterator[People]:
    with people_of(pool.running[0]) as found:
        yield found


@pytest.fixture(scope="module")
def keys(people: People) -> list[str]:
    """Sixty keys of one account that has no money."""
    poor = people.person()
    scopes = (Scope.JOBS_READ, Scope.JOBS_WRITE, Scope.EVENTS_READ, Scope.ACCOUNT_READ)
    return [people.key(poor, Role.CUSTOMER, *scopes).secret for _ in range(KEYS)]


def test_all_keys_of_an_account_together_have_few_event_streams(up: Running, people: People, keys: list[str]) -> None:
    def stream(key: str) -> socket.socket:
        connection = held.enter_context(socket.create_connection(("127.0.0.1", up.port), timeout=10))
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
        connection.sendall(head.encode())
        return connection

    with ExitStack() as held:
        answers = [stream(key).recv(4096).split(b" ", 2)[1] for key in keys]
        assert (answers.count(b"200"), answers.count(b"503")) == (20, KEYS - 20)
        refused = up.get("/api/v1/events", headers=bearer(keys[0]))
        assert refused.json()["code"] == "too_many_streams"
        assert refused.headers["retry-after"] == "1"
        assert b" 200 " in stream(people.session(people.person()).access_token).recv(4096)
    until(lambda: "tidemill_event_readers 0.0" in up.metrics(), "all have left")


def test_quotes_asked_for_with_many_keys_leave_the_pool_idle(up: Running, people: People, keys: list[str]) -> None:
    honest, process = people.session(people.person()).bearer, psutil.Process(up.process.pid)
    turns = cycle(keys)
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(up.post, "/api/v1/marketplace/jobs", json=ORDER, headers=bearer(next(turns)))
            for _ in range(100)
        ]
        waits_s = []
        while not all(one.done() for one in asked):
            at = time.monotonic()
            assert up.get("/api/v1/account", headers=honest).status_code == 200
            waits_s.append(time.monotonic() - at)
            time.sleep(0.02)
    answers = [one.result() for one in asked]
    codes = Counter(answer.json().get("code", answer.status_code) for answer in answers)
    assert codes.keys() == {201, "too_many_orders"}, codes
    assert 6 <= codes[201] <= 8, "of a minute's sixty each takes ten"
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert 1 <= int(refused.headers["retry-after"]) <= 10
    spent_s = sum(process.cpu_times()[:2]) - before
    assert spent_s < 3, f"{spent_s:.1f} s of a processor in {time.monotonic() - began:.1f} s"
    assert sorted(waits_s)[len(waits_s) // 2] < 0.2


def test_a_confirmation_without_money_counts_as_an_order(up: Running, people: People) -> None:
    poor = people.session(people.person()).bearer
    job = up.post("/api/v1/marketplace/jobs", json=ORDER, headers=poor).json()
    answers = [up.post(f"/api/v1/marketplace/jobs/{job['id']}/confirm", headers=poor) for _ in range(6)]
    assert [answer.json()["code"] for answer in answers] == ["insufficient_funds"] * 5 + ["too_many_orders"]


def test_all_keys_of_an_account_draw_from_one_bucket(up: Running, people: People, keys: list[str]) -> None:
    with ThreadPoolExecutor(8) as pool:
        turns = cycle(keys)
        answers = list(
            pool.map(lambda key: up.get("/api/v1/account", headers=bearer(key)), (next(turns) for _ in range(1000)))
        )
    codes = Counter(answer.status_code for answer in answers)
    assert codes[200] <= 700, "ten a second and what was saved up"
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["code"] == "account_rate_limited"
    assert (refused.headers["ratelimit-limit"], refused.headers["retry-after"]) == ("600", "1")
    other = people.session(people.person()).bearer
    assert up.get("/api/v1/account", headers=other).status_code == 200


def test_keys_and_join_tokens_are_made_slowly(up: Running, people: People) -> None:
    provider, tokens = people.session(people.person(Role.PROVIDER)).bearer, "/api/v1/nodes/join-tokens"

    def make() -> httpx2.Response:
        return up.post(tokens, json={"name": "rack", "uses": 1}, headers=provider)

    for _ in range(100):
        made = make()
        assert made.status_code == 201
        assert up.delete(f"{tokens}/{made.json()['about']['id']}", headers=provider).status_code == 204
    refused = [make() for _ in range(2)][-1]  # one more may have come back meanwhile
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_credentials")
    assert 1 <= int(refused.headers["retry-after"]) <= 36


def test_an_account_without_money_keeps_and_reserves_little(up: Running, people: People) -> None:
    person = people.person()
    poor = Client(up, people.session(person).bearer)
    refused = poor.begin(50 * 1024 * MIB)
    assert (refused.status_code, refused.json()["code"]) == (402, "artefact_balance_needed")
    assert "0.998047 credits in your balance" in refused.json()["detail"]
    reserved = [poor.begun(20 * MIB) for _ in range(5)]
    refused = poor.begin(1)
    assert (refused.status_code, refused.json()["code"]) == (402, "artefact_balance_needed"), "reservations count"
    people.deposit(person, 1_000_000)
    assert poor.begin(200 * MIB).status_code == 201
    usage = poor.ask("GET", "/api/v1/artefacts/usage").json()
    assert usage["allowed_bytes"] == 100 * MIB + 50 * 1024 * MIB
    assert usage["reserved_bytes"] == len(reserved) * 20 * MIB + 200 * MIB


def test_answers_to_idempotency_keys_are_kept_up_to_a_bound(up: Running, people: People) -> None:
    bearer_of, texts = people.session(people.person()).bearer, ["x" * 1900] * 500
    order = {"kind": "embed", "parameters": {"texts": texts}}

    def ordered(key: str) -> httpx2.Response:
        return up.post("/api/v1/marketplace/jobs", json=order, headers={**bearer_of, "Idempotency-Key": key})

    first = ordered("0")
    assert first.status_code == 201, first.text
    answers = [ordered(str(number)) for number in range(1, 25)]
    refused = next(answer for answer in answers if answer.status_code != 201)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_answers")
    assert int(refused.headers["retry-after"]) > 60
    assert 10 <= answers.index(refused) <= 20, "of 16 MiB each takes almost one"
    assert ordered("0").content == first.content, "what is kept is answered all the same"
