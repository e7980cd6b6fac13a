"""A pool as it comes: its own limits, no proxy, two processes; its set-up link, and demonstrations."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import PASSWORD, People, Person, bearer, code_of, log_in, people_of
from tests.worlds.pools.pool import OPERATOR_ADDRESS, OPERATOR_PASSWORD, Running, pool_in
from tidemill.core.accounts.roles import Role, Scope

API = "/api/v1"
WITHIN_S = 1.5
"""How soon another process must know; a second, and some for a busy machine."""


@dataclass
class Pair:
    """Two processes of one pool."""

    here: Running
    there: Running
    people: People

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> httpx2.Response:
        return self.here.post(API + path, json=body, headers=headers or {})


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with reachable_directory() as home, pool_in(home) as pool:
        here = pool.up()
        here.set_up()
        there = pool.control()
        there.until_ready()
        here.verify = there.verify = True  # as slow as a person's program: the default limits hold for these tests, too
        with people_of(here) as people:
            yield Pair(here, there, people)


def refused_soon(running: Running, path: str, headers: dict[str, str]) -> float:
    """How long a process still lets somebody in."""
    began = time.monotonic()
    while running.get(path, headers=headers).status_code == 200:
        assert time.monotonic() - began < WITHIN_S, "still let in"
        time.sleep(0.15)  # all tests here share an address, and its strangers have 300 requests a minute
    return time.monotonic() - began


def test_five_hundred_half_open_logins_keep_nobody_out(pair: Pair) -> None:
    half = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 90\r\n"
    connections = []
    for number in range(500):
        connection = socket.create_connection(("127.0.0.1", pair.here.port), timeout=10)
        connection.sendall(half + (b"\r\n{" if number % 2 else b""))
        connections.append(connection)
    try:
        person = pair.people.person()
        began = time.monotonic()
        assert pair.here.get(f"{API}/account", headers=pair.people.session(person).bearer).status_code == 200
        assert log_in(pair.here, person).status_code == 200
        assert time.monotonic() - began < 5
    finally:
        for connection in connections:
            connection.close()


def test_a_revoked_key_is_refused_at_once_here_and_within_a_second_elsewhere(pair: Pair) -> None:
    person = pair.people.person()
    session = pair.people.session(person).bearer
    path = f"{API}/account"
    for _ in range(3):
        key = pair.people.key(person, Role.CUSTOMER, Scope.ACCOUNT_READ)
        assert {running.get(path, headers=key.bearer).status_code for running in (pair.here, pair.there)} == {200}
        revoked = httpx2.delete(f"{pair.here.url}{API}/account/keys/{key.id}", headers=session, timeout=10)
        assert revoked.status_code == 204
        assert code_of(pair.here.get(path, headers=key.bearer)) == "key_unknown"
        refused_soon(pair.there, path, key.bearer)


def test_a_demoted_operator_has_lost_the_role_at_once_in_every_process(pair: Pair) -> None:
    person = pair.people.person(Role.OPERATOR, Role.CUSTOMER, second_factor=True)
    session = pair.people.session(person).bearer
    key = pair.people.key(person, Role.OPERATOR, *Scope)
    path = f"{API}/admin/switches"
    for running in (pair.here, pair.there):
        assert {running.get(path, headers=shown).status_code for shown in (session, key.bearer)} == {200}
    asked = {"roles": ["customer"], "reason": "left us"}
    assert pair.post(f"/admin/accounts/{person.id}/roles", asked, pair.here.operator).status_code == 200
    assert code_of(pair.here.get(path, headers=session)) == "operator_only"
    assert code_of(pair.here.get(path, headers=key.bearer)) == "key_unknown"
    refused_soon(pair.there, path, session)
    refused_soon(pair.there, path, key.bearer)
    assert pair.there.get(f"{API}/account", headers=session).json()["acting_as"] == ["customer"]


def test_what_ends_a_session_here_ends_it_elsewhere_too(pair: Pair) -> None:
    path = f"{API}/account"
    for how in ("/auth/logout", "/account/delete", "block"):
        person = pair.people.person()
        session = pair.people.session(person).bearer
        assert pair.there.get(path, headers=session).status_code == 200
        where = f"/admin/accounts/{person.id}/block" if how == "block" else how
        shown = pair.here.operator if how == "block" else session
        assert pair.post(where, {"reason": "a test"}, shown).is_success
        refused_soon(pair.there, path, session)


def test_a_token_of_one_process_is_good_in_the_other(pair: Pair) -> None:
    person = pair.people.person()
    entered = log_in(pair.here, person).json()
    assert pair.there.get(f"{API}/account", headers=bearer(entered["access_token"])).status_code == 200
    went_on = pair.there.post(f"{API}/auth/refresh", json={"refresh_token": entered["refresh_token"]})
    assert pair.here.get(f"{API}/account", headers=bearer(went_on.json()["access_token"])).status_code == 200
    again = pair.here.post(f"{API}/auth/refresh", json={"refresh_token": entered["refresh_token"]})
    assert code_of(again) == "session_over"


def test_no_operators_key_is_made_with_one_factor(pair: Pair) -> None:
    person = pair.people.person(Role.OPERATOR, Role.CUSTOMER)
    session = pair.people.session(person).bearer
    for asked in ({"role": "operator", "scopes": ["pool:read"]}, {"role": "operator", "scopes": ["account:read"]}):
        refused = pair.post("/account/keys", {"name": "a key", **asked}, session)
        assert (refused.status_code, code_of(refused)) == (422, "key_role_missing")
    smuggled = pair.post("/account/keys", {"name": "a key", "role": "customer", "scopes": ["pool:write"]}, session)
    assert code_of(smuggled) == "key_scopes_missing"
    with_two = pair.people.person(Role.OPERATOR, second_factor=True)
    made = pair.post(
        "/account/keys",
        {"name": "a key", "role": "operator", "scopes": ["pool:read"]},
        pair.people.session(with_two).bearer,
    )
    assert made.status_code == 201, made.text
    keys_own = pair.post("/account/keys", {"name": "another", "scopes": ["account:read"]}, bearer(made.json()["key"]))
    assert code_of(keys_own) == "session_needed", "a key makes no keys"


def patiently(running: Running, path: str, headers: dict[str, str]) -> Any:
    """An answer, asked for as slowly as the limits for this address want it after all that came from there."""
    for _ in range(5):
        answer = running.get(path, headers=headers)
        if answer.status_code != 429:
            break
        time.sleep(int(answer.headers["retry-after"]))
    assert answer.status_code == 200, answer.text
    return answer.json()


def rest(pair: Pair) -> None:
    """Wait until what earlier tests tried from this address is forgiven."""
    patiently(pair.here, f"{API}/account", pair.people.session(pair.people.person()).bearer)


def test_a_header_that_no_proxy_wrote_changes_nothing(pair: Pair) -> None:
    rest(pair)
    person = pair.people.person()
    claimed = {"X-Forwarded-For": "198.51.100.7", "X-Real-Ip": "198.51.100.7", "Forwarded": "for=198.51.100.7"}
    key = pair.people.key(person, Role.CUSTOMER, Scope.ACCOUNT_READ, networks=("198.51.100.0/24",))
    assert code_of(pair.here.get(f"{API}/account", headers={**key.bearer, **claimed})) == "key_not_from_here"
    answers = [
        log_in(pair.here, replace(person, password="wrong horse 1"), headers={"X-Forwarded-For": f"10.0.{number}.1"})
        for number in range(12)
    ]
    assert answers[-1].status_code == 429, "all of them came from here"
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 900
    attempts = patiently(pair.here, f"{API}/account/logins", pair.people.session(person).bearer)["items"]
    assert {attempt["address"] for attempt in attempts} == {"127.0.0.1"}
    assert len(attempts) <= 7, "tries beyond the limit are not even looked at"


def test_one_address_tries_a_few_times_a_minute_and_others_are_not_bothered(pair: Pair) -> None:
    rest(pair)
    codes = Counter(pair.post("/auth/confirm", {"link": f"guess-{number}"}).status_code for number in range(15))
    assert codes[429] >= 9
    assert pair.here.get(f"{API}/account", headers=pair.people.session(pair.people.person()).bearer).status_code == 200


@pytest.fixture
def home() -> Iterator[Path]:
    with reachable_directory() as directory:
        yield directory


def test_the_set_up_link_is_used_once_and_the_pool_is_no_demonstration_then(home: Path) -> None:
    with pool_in(home) as pool:
        running = pool.up()
        running.until_ready()
        guessed = {"token": "a guess", "address": OPERATOR_ADDRESS, "password": OPERATOR_PASSWORD}
        assert code_of(running.post(f"{API}/setup", json=guessed)) == "set_up_link_wrong"
        assert code_of(running.post(f"{API}/auth/register", json=guessed)) == "pool_not_set_up"
        token = running.said().partition("/setup#")[2].partition('"')[0]
        gate = threading.Barrier(4)

        def use(number: int) -> httpx2.Response:
            gate.wait()
            asked = {"token": token, "address": f"first-{number}@pool.example", "password": PASSWORD}
            return running.post(f"{API}/setup", json=asked)

        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(use, range(4)))
        assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 3}
        assert {code_of(answer) for answer in answers} == {"", "set_up_already"}
        (made,) = (number for number, answer in enumerate(answers) if answer.status_code == 201)
        first = Person(UUID(answers[made].json()["account_id"]), f"first-{made}@pool.example")
        session = bearer(log_in(running, first).json()["access_token"])
        assert code_of(running.get(f"{API}/admin/switches", headers=session)) == "second_factor_required"
        assert [event["kind"] for event in running.events()].count("pool.set_up") == 1
        assert running.end() == 0
        refused = pool.run("up", "--demo")
        assert (refused.returncode != 0, "in use" in refused.stderr) == (True, True)
        again = pool.up()
        again.until_ready()
        assert "/setup#" not in again.said(), "a pool that is set up shows no link"


def test_a_new_start_shows_a_new_link_and_the_old_one_is_no_good(home: Path) -> None:
    with pool_in(home) as pool:
        first = pool.up()
        first.until_ready()
        old = first.said().partition("/setup#")[2].partition('"')[0]
        assert first.end() == 0
        second = pool.up()
        second.until_ready()
        asked = {"token": old, "address": OPERATOR_ADDRESS, "password": OPERATOR_PASSWORD}
        refused = second.post(f"{API}/setup", json=asked)
        assert (refused.status_code, code_of(refused)) == (403, "set_up_link_wrong")
        second.set_up()


def test_a_demonstration_is_for_this_machine_only_and_for_ever(home: Path) -> None:
    with pool_in(home) as pool:
        beyond = pool.run("up", "--demo", "--behind-proxy", "127.0.0.1")
        assert (beyond.returncode != 0, "this machine only" in beyond.stderr) == (True, True)
        running = pool.up("--demo")
        running.until_ready()
        secrets = {file.name: file.read_text().strip() for file in (home / "demonstration").iterdir()}
        assert {file.stat().st_mode & 0o777 for file in (home / "demonstration").iterdir()} == {0o600}
        for name in ("operator", "customer", "ada"):
            person = Person(UUID(int=0), f"{name}@demo.example", secrets[f"{name}.password"])
            expected = "second_factor_needed" if name == "operator" else ""
            assert code_of(log_in(running, person)) == expected
            assert running.get(f"{API}/account", headers=bearer(secrets[f"{name}.key"])).status_code == 200
        assert running.end() == 0
        for arguments in (["up", "--behind-proxy", "127.0.0.1"], ["up", "--demo", "--behind-proxy", "127.0.0.1"]):
            refused = pool.run(*arguments)
            assert (refused.returncode != 0, "this machine only" in refused.stderr) == (True, True)
        again = pool.up("--demo")
        again.until_ready()
        assert {file.name: file.read_text().strip() for file in (home / "demonstration").iterdir()} == secrets
        assert not [one for one in secrets.values() if one in again.said()], "secrets are in files, not in logs"
