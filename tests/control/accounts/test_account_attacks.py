"""Tries at the door of a pool behind a proxy: guessing, forging, replaying, locking others out, and asking too much."""

import base64
import hashlib
import hmac
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import uuid4

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, PASSWORD, People, Person, bearer, code_of, link_of, log_in, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.notices.mail import LetterKind

API = "/api/v1"
NEW_PASSWORD = "another horse 5 battery"
WRONG = "wrong horse 6 battery"
EVERYWHERE = 12
"""So many failures from all networks lock strangers out. Each takes a tenth of a second, so they are few here."""

_networks = count(1)


def elsewhere() -> dict[str, str]:
    """Another network each time, as the proxy tells it."""
    number = next(_networks)
    return {"X-Forwarded-For": f"10.{number // 250}.{number % 250}.9"}


@dataclass
class Town:
    """A pool that is set up, and its people."""

    running: Running
    people: People

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> httpx2.Response:
        return self.running.post(API + path, json=body, headers=headers or {})

    def is_in(self, headers: dict[str, str]) -> bool:
        return self.running.get(f"{API}/account", headers=headers).status_code == 200

    def wrong(self, person: Person, headers: dict[str, str]) -> str:
        return code_of(log_in(self.running, replace(person, password=WRONG), headers=headers))


@pytest.fixture(scope="module")
def town() -> Iterator[Town]:
    everywhere = {"TIDEMILL_LOGIN_FAILURES_EVERYWHERE_MAX": str(EVERYWHERE)}
    settings = {**MANY, **everywhere, "TIDEMILL_HTTP_TRUSTED_PROXIES": "127.0.0.1"}
    with reachable_directory() as home, pool_in(home, **settings) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            yield Town(running, people)


@pytest.fixture
def ann(town: Town) -> Person:
    return town.people.person()


@pytest.fixture(autouse=True)
def _no_bug(town: Town) -> Iterator[None]:
    before = len(town.running.said())
    yield
    assert '"event": "bug"' not in town.running.said()[before:]


CHANGING = {"x-request-id", "date", "ratelimit-remaining", "ratelimit-reset"}


def words(answer: httpx2.Response) -> tuple[int, Any, dict[str, str]]:
    """All that an answer tells, but for what names the request and counts it."""
    told = {name: value for name, value in answer.json().items() if name != "request_id"}
    return answer.status_code, told, {name: value for name, value in answer.headers.items() if name not in CHANGING}


def asked_of_strangers(address: str) -> dict[str, dict[str, Any]]:
    proof = {"address": address, "code": "00000000"}
    return {
        "/auth/register": {"address": address, "password": PASSWORD},
        "/auth/forgot": {"address": address},
        "/auth/login": {"address": address, "password": WRONG},
        "/auth/confirm": proof,
        "/auth/reset": {**proof, "password": PASSWORD},
    }


def test_no_answer_says_whether_an_address_has_an_account(town: Town, ann: Person) -> None:
    locked = {
        name: [town.post("/auth/login", {"address": name, "password": WRONG}) for _ in range(7)]
        for name in (town.people.person().address, "nobody-at-all@people.example")
    }
    first, second = ([words(answer) for answer in answers] for answers in locked.values())
    assert [answer[:2] for answer in first] == [answer[:2] for answer in second], "also when the door is locked"
    known, unknown = asked_of_strangers(ann.address), asked_of_strangers(f"nobody-{uuid4()}@people.example")
    for path in known:
        where = elsewhere()
        assert words(town.post(path, known[path], where)) == words(town.post(path, unknown[path], where)), path


def test_no_answer_to_a_change_of_address_says_who_has_one(town: Town, ann: Person) -> None:
    session, taken = town.people.session(ann).bearer, town.people.person().address
    free = f"nobody-{uuid4()}@people.example"
    answers = [words(town.post("/account/address", {"address": one}, session)) for one in (taken, free)]
    assert answers[0] == answers[1]
    assert [letter.kind for letter in town.people.letters(taken)] == [LetterKind.ADDRESS_TAKEN]


@pytest.mark.parametrize("path", ["/auth/login", "/auth/register", "/auth/forgot", "/auth/confirm", "/auth/reset"])
def test_no_time_says_whether_an_address_has_an_account(town: Town, path: str) -> None:
    """Known and unknown in turns, so that a busy machine slows both; a real difference would show every time."""
    for _ in range(4):
        times: dict[bool, list[float]] = {True: [], False: []}
        for turn in range(14):
            known = bool(turn % 2)
            address = town.people.person().address if known else f"nobody-{uuid4()}@people.example"
            began = time.perf_counter()
            answer = town.post(path, asked_of_strangers(address)[path], elsewhere())
            times[known].append(time.perf_counter() - began)
            assert answer.status_code in (202, 401, 422)
        if abs(statistics.median(times[True]) - statistics.median(times[False])) < 0.05:
            return
    pytest.fail(f"known and unknown addresses take different times: {times}")


def test_a_token_is_over_with_its_session_password_or_account(town: Town) -> None:
    def end(how: str, person: Person, mine: dict[str, str]) -> httpx2.Response:
        if how == "block":
            return town.post(f"/admin/accounts/{person.id}/block", {"reason": "a test"}, town.running.operator)
        if how in ("/auth/logout", "/account/delete"):
            return town.post(how, headers=mine)
        return town.post(how, {"password": NEW_PASSWORD}, town.people.session(person).bearer)

    for name in ("/auth/logout", "/account/delete", "/account/password", "/account/sessions/end-others", "block"):
        person = town.people.person()
        session = town.people.session(person)
        assert town.is_in(session.bearer), name
        assert end(name, person, session.bearer).is_success, name
        assert code_of(town.running.get(f"{API}/account", headers=session.bearer)) == "session_over", name
        refreshed = town.post("/auth/refresh", {"refresh_token": session.refresh_token})
        assert code_of(refreshed) == "session_over", name


def encoded(part: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()


def forged(town: Town, person: Person) -> dict[str, str]:
    """Tokens that we did not sign, or whose time is over."""
    session, key = town.people.session(person), town.people.signing_key()
    head, claims, signature = session.access_token.split(".")
    other = town.people.session(town.people.person(Role.OPERATOR, second_factor=True))
    stolen = {"sub": str(person.id), "sid": str(other.id), "exp": int(time.time()) + 300}
    kid = {"kid": str(key.id)}
    public = Ed25519PublicKey.from_public_bytes(key.public)
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    mine = Ed25519PrivateKey.generate()
    unsigned = f"{encoded({'alg': 'none', 'typ': 'JWT', **kid})}.{encoded(stolen)}."
    deep = base64.urlsafe_b64encode(b"[" * 2900).decode()
    return {
        "another session's id": f"{head}.{encoded(stolen)}.{signature}",
        "another signature": f"{head}.{claims}.{signature[:-4]}AAAA",
        "no signature": f"{head}.{claims}.",
        "alg none": unsigned,
        "alg None": unsigned.replace(encoded({"alg": "none", "typ": "JWT", **kid}), encoded({"alg": "None", **kid})),
        "the public key as a password": signed_by_password(stolen, kid, key.public),
        "the public key's file as a password": signed_by_password(stolen, kid, pem),
        "a key of one's own": jwt.encode(stolen, mine, "EdDSA", headers=kid),
        "a key of one's own, by its name": jwt.encode(stolen, mine, "EdDSA", headers={"kid": str(uuid4())}),
        "a key that the token brings": jwt.encode(
            stolen, mine, "EdDSA", headers={**kid, "jwk": {"kty": "OKP"}, "jku": "http://127.0.0.1/keys"}
        ),
        "a key of a strange name": f"{encoded({'alg': 'EdDSA', 'kid': ['../../etc/passwd']})}.{claims}.{signature}",
        "no time left": town.people.access_token(session.id, person.id, lasting_s=0),
        "an end long ago": town.people.access_token(session.id, person.id, lasting_s=-3600),
        "no session": town.people.access_token(uuid4(), person.id),
        "a session that is none": town.people.access_token(uuid4(), person.id, sid="' OR 1=1 --"),
        "a header without an end": f"{deep}.{claims}.{signature}",
        "claims without an end": f"{head}.{deep}.{signature}",
        "three dots": "...",
        "a number": "0",
        "a refresh token": session.refresh_token,
    }


def signed_by_password(claims: dict[str, Any], kid: dict[str, str], password: bytes) -> str:
    body = f"{encoded({'alg': 'HS256', 'typ': 'JWT', **kid})}.{encoded(claims)}"
    signature = hmac.digest(password, body.encode(), hashlib.sha256)
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_no_forged_or_stale_token_opens_anything(town: Town, ann: Person) -> None:
    for name, token in forged(town, ann).items():
        for headers in (bearer(token), {"Cookie": f"tidemill_access={token}"}):
            answer = town.running.get(f"{API}/account", headers=headers)
            assert (answer.status_code, code_of(answer) in ("token_unknown", "session_over")) == (401, True), name


def test_a_refresh_token_that_comes_back_ends_its_whole_family(town: Town, ann: Person) -> None:
    session = town.people.session(ann)
    following = town.post("/auth/refresh", {"refresh_token": session.refresh_token}).json()
    assert code_of(town.post("/auth/refresh", {"refresh_token": session.refresh_token})) == "session_over"
    assert code_of(town.post("/auth/refresh", {"refresh_token": following["refresh_token"]})) == "session_over"
    assert not town.is_in(bearer(following["access_token"]))
    assert not town.is_in(session.bearer)


def test_a_code_of_the_authenticator_is_good_once(town: Town) -> None:
    person = town.people.person(second_factor=True)
    code = person.code()
    entered = log_in(town.running, person, code=code)
    assert entered.status_code == 200
    assert code_of(log_in(town.running, person, code=code, headers=elsewhere())) == "login_failed"
    mine = bearer(entered.json()["access_token"])
    assert code_of(town.post("/account/second-factor/remove", {"code": code}, mine)) == "code_wrong"
    assert code_of(town.post("/auth/reauthenticate", {"password": PASSWORD, "code": code}, mine)) == "login_failed"


def test_guessing_codes_at_the_door_locks_it(town: Town) -> None:
    person, thief = town.people.person(second_factor=True), elsewhere()
    for guess in range(5):
        assert code_of(log_in(town.running, person, code=f"{guess:06}", headers=thief)) == "login_failed"
    refused = log_in(town.running, person, code=person.code(), headers=thief)
    assert (refused.status_code, code_of(refused)) == (429, "login_locked")
    assert 1 <= int(refused.headers["retry-after"]) <= 900
    assert log_in(town.running, person, code=person.code(), headers=elsewhere()).status_code == 200, "not the owner"
    assert town.people.letter(person.address, LetterKind.ACCOUNT_LOCKED).parameters["tries"] == 5


def test_guessing_codes_inside_a_session_locks_as_it_does_at_the_door(town: Town) -> None:
    person, thief = town.people.person(second_factor=True), elsewhere()
    stolen = {**town.people.session(person).bearer, **thief}
    for guess in range(5):
        assert code_of(town.post("/account/second-factor/remove", {"code": f"{guess:06}"}, stolen)) == "code_wrong"
    right = town.post("/account/second-factor/remove", {"code": person.code()}, stolen)
    assert (right.status_code, code_of(right)) == (429, "login_locked")
    again = town.post("/auth/reauthenticate", {"password": PASSWORD, "code": person.code()}, stolen)
    assert code_of(again) == "login_locked"


def test_a_stranger_locks_only_their_own_network(town: Town, ann: Person) -> None:
    stranger, owner = elsewhere(), elsewhere()
    assert [town.wrong(ann, stranger) for _ in range(6)] == ["login_failed"] * 5 + ["login_locked"]
    assert code_of(log_in(town.running, ann, headers=stranger)) == "login_locked", "the right password comes too late"
    neighbour = {"X-Forwarded-For": stranger["X-Forwarded-For"].removesuffix("9") + "200"}
    assert town.wrong(ann, neighbour) == "login_locked"
    assert log_in(town.running, ann, headers=owner).status_code == 200


def test_many_networks_at_once_lock_out_only_those_the_account_was_not_used_from(town: Town, ann: Person) -> None:
    owner = elsewhere()
    assert log_in(town.running, ann, headers=owner).status_code == 200
    assert {town.wrong(ann, elsewhere()) for _ in range(EVERYWHERE)} == {"login_failed"}
    assert town.wrong(ann, elsewhere()) == "login_locked"
    assert code_of(log_in(town.running, ann, headers=elsewhere())) == "login_locked"
    assert log_in(town.running, ann, headers=owner).status_code == 200, "the owner's own network is let in"
    locked = [letter for letter in town.people.letters(ann.address) if letter.kind is LetterKind.ACCOUNT_LOCKED]
    assert len(locked) <= 1
    town.post("/auth/forgot", {"address": ann.address}, elsewhere())
    link = link_of(town.people.letter(ann.address, LetterKind.RESET_PASSWORD))
    assert town.post("/auth/reset", {"link": link, "password": NEW_PASSWORD}, elsewhere()).status_code == 204
    renewed = replace(ann, password=NEW_PASSWORD)
    assert log_in(town.running, renewed, headers=elsewhere()).status_code == 200, "mail is the way out"


def test_a_second_factor_lets_the_owner_in_while_many_networks_guess_the_password(town: Town) -> None:
    owner = town.people.person(second_factor=True)
    assert {town.wrong(owner, elsewhere()) for _ in range(EVERYWHERE)} == {"login_failed"}
    assert code_of(log_in(town.running, owner, headers=elsewhere())) == "login_locked", "the password alone does not do"
    guessed = replace(owner, password=WRONG)
    assert code_of(log_in(town.running, guessed, code=owner.code(), headers=elsewhere())) == "login_locked"
    assert log_in(town.running, owner, code=owner.code(), headers=elsewhere()).status_code == 200
    assert town.people.letter(owner.address, LetterKind.GUESSING).parameters["tries"] == EVERYWHERE


def test_behind_a_lock_nobody_learns_more_by_sending_codes(town: Town) -> None:
    owner, plain, nobody = town.people.person(second_factor=True), town.people.person(), "nobody-here@people.example"
    for address in (owner.address, plain.address, nobody):
        for _ in range(EVERYWHERE):
            town.post("/auth/login", {"address": address, "password": WRONG}, elsewhere())
    tries = [(owner.address, PASSWORD), (owner.address, WRONG), (plain.address, PASSWORD), (nobody, PASSWORD)]
    bodies = [{"address": address, "password": password, "code": "000000"} for address, password in tries]
    answers = [words(town.post("/auth/login", body, elsewhere()))[:2] for body in bodies]
    assert answers == [answers[0]] * 4
    assert answers[0][1]["code"] == "login_locked"


def test_codes_guessed_behind_a_lock_count_and_a_recovery_code_still_opens_it(town: Town) -> None:
    owner = town.people.person(second_factor=True)
    for _ in range(EVERYWHERE):
        town.wrong(owner, elsewhere())
    for guess in range(10):
        assert code_of(log_in(town.running, owner, code=f"{guess:06}", headers=elsewhere())) == "login_locked"
    right = log_in(town.running, owner, code=owner.code(), headers=elsewhere())
    assert code_of(right) == "login_locked", "somebody who has the password guesses codes: none is looked at any more"
    recovered = log_in(town.running, owner, code=owner.recovery_codes[0], headers=elsewhere())
    assert recovered.status_code == 200


def test_who_reset_the_password_by_mail_gets_in_although_the_guessing_goes_on(town: Town, ann: Person) -> None:
    owner = elsewhere()
    for _ in range(EVERYWHERE):
        town.wrong(ann, elsewhere())
    town.post("/auth/forgot", {"address": ann.address}, owner)
    link = link_of(town.people.letter(ann.address, LetterKind.RESET_PASSWORD))
    assert town.post("/auth/reset", {"link": link, "password": NEW_PASSWORD}, owner).status_code == 204
    for _ in range(EVERYWHERE):
        town.wrong(ann, elsewhere())
    renewed = replace(ann, password=NEW_PASSWORD)
    assert code_of(log_in(town.running, renewed, headers=elsewhere())) == "login_locked"
    assert log_in(town.running, renewed, headers=owner).status_code == 200


def test_a_reset_opens_the_door_that_ones_own_failures_locked(town: Town, ann: Person) -> None:
    owner = elsewhere()
    assert [town.wrong(ann, owner) for _ in range(6)][-1] == "login_locked"
    town.post("/auth/forgot", {"address": ann.address}, owner)
    link = link_of(town.people.letter(ann.address, LetterKind.RESET_PASSWORD))
    assert town.post("/auth/reset", {"link": link, "password": NEW_PASSWORD}, owner).status_code == 204
    assert log_in(town.running, replace(ann, password=NEW_PASSWORD), headers=owner).status_code == 200


@pytest.mark.parametrize("purpose", ["confirm", "reset"])
def test_codes_in_letters_cannot_be_guessed_and_the_link_still_works(town: Town, purpose: str) -> None:
    if purpose == "confirm":
        address = f"newcomer-{uuid4().hex}@people.example"
        town.post("/auth/register", {"address": address, "password": PASSWORD}, elsewhere())
        letter, more = town.people.letter(address, LetterKind.CONFIRM_ADDRESS), {"password": PASSWORD}
    else:
        address = town.people.person().address
        town.post("/auth/forgot", {"address": address}, elsewhere())
        letter, more = town.people.letter(address, LetterKind.RESET_PASSWORD), {"password": NEW_PASSWORD}
    right = str(letter.parameters["code"])
    guesses = [code for code in (f"{number:08}" for number in range(6)) if code != right][:5]
    for code in (*guesses, right):
        answer = town.post(f"/auth/{purpose}", {"address": address, "code": code, **more}, elsewhere())
        assert (answer.status_code, code_of(answer)) == (422, "mail_token_unknown")
    assert town.post(f"/auth/{purpose}", {"link": link_of(letter), **more}).is_success


def test_a_letters_link_does_only_what_the_letter_says(town: Town, ann: Person) -> None:
    town.post("/auth/forgot", {"address": ann.address})
    link = link_of(town.people.letter(ann.address, LetterKind.RESET_PASSWORD))
    assert code_of(town.post("/auth/confirm", {"link": link})) == "mail_token_unknown"
    other = town.people.person()
    by_code = {"address": other.address, "code": town.people.letters(ann.address)[-1].parameters["code"]}
    assert code_of(town.post("/auth/reset", {**by_code, "password": PASSWORD})) == "mail_token_unknown"
    assert town.post("/auth/reset", {"link": link, "password": NEW_PASSWORD}).status_code == 204


def test_nobody_gets_more_letters_than_a_few_whoever_asks_for_them(town: Town, ann: Person) -> None:
    for turn in range(20):
        address = ann.address.upper() if turn % 2 else ann.address
        assert town.post("/auth/forgot", {"address": address}, elsewhere()).status_code == 202
        asked = {"address": address, "password": PASSWORD}
        assert town.post("/auth/register", asked, elsewhere()).status_code == 202
    kinds = Counter(letter.kind for letter in town.people.letters(ann.address))
    assert kinds == {LetterKind.RESET_PASSWORD: 5, LetterKind.ADDRESS_TAKEN: 1}, "each purpose has its own few"
    victim = f"victim-{uuid4().hex}@people.example"
    for _ in range(10):
        session = town.people.session(town.people.person()).bearer
        assert town.post("/account/address", {"address": victim}, session).status_code == 202
    assert len(town.people.letters(victim)) <= 5
    asked = [town.post("/account/address", {"address": f"{uuid4().hex}@people.example"}, session) for _ in range(10)]
    assert [answer.status_code for answer in asked][-5:] == [429] * 5, "nor do many get letters from one account"


def test_a_proxys_word_is_believed_only_as_far_as_the_proxy_saw(town: Town, ann: Person) -> None:
    key = town.people.key(ann, Role.CUSTOMER, Scope.ACCOUNT_READ, networks=("198.51.100.0/24",))
    path = f"{API}/account"
    seen = {**key.bearer, "X-Forwarded-For": "198.51.100.7"}
    assert town.running.get(path, headers=seen).status_code == 200
    claimed = {**key.bearer, "X-Forwarded-For": "198.51.100.7, 203.0.113.5"}
    assert code_of(town.running.get(path, headers=claimed)) == "key_not_from_here"
    for lie in ("", "198.51.100.7, nonsense", "198.51.100.999", "198.51.100.7/24"):
        answer = town.running.get(path, headers={**key.bearer, "X-Forwarded-For": lie})
        assert code_of(answer) == "key_not_from_here", lie


ORIGINS = [
    ({"Origin": "https://evil.example"}, False),
    ({"Origin": "null"}, False),
    ({"Origin": ""}, False),
    ({"Origin": "{own}.evil.example"}, False),
    ({"Origin": "{own}/"}, False),
    ({"Origin": "{own}"}, True),
    ({"Origin": "{own}", "Sec-Fetch-Site": "cross-site"}, True),
    ({}, False),
    ({"Sec-Fetch-Site": "same-origin"}, True),
    ({"Sec-Fetch-Site": "same-site"}, False),
    ({"Sec-Fetch-Site": "cross-site"}, False),
    ({"Sec-Fetch-Site": "none"}, False),
    ({"Referer": "{own}/account"}, False),
]


@pytest.mark.parametrize(("sent", "let_in"), ORIGINS)
def test_a_page_of_another_site_cannot_use_the_browsers_cookies(
    town: Town, ann: Person, sent: dict[str, str], let_in: bool
) -> None:
    headers = {name: value.format(own=town.running.url) for name, value in sent.items()}
    session = town.people.session(ann)
    access, refresh = f"tidemill_access={session.access_token}", f"tidemill_refresh={session.refresh_token}"
    changed = town.post("/account/language", {"language": "zh"}, {"Cookie": access, **headers})
    assert (changed.status_code, code_of(changed)) == ((204, "") if let_in else (403, "foreign_page"))
    goes_on = town.post("/auth/refresh", {}, {"Cookie": refresh, **headers})
    assert (goes_on.status_code, code_of(goes_on)) == ((200, "") if let_in else (403, "foreign_page"))


def test_a_foreign_page_can_neither_log_in_nor_use_a_token(town: Town, ann: Person) -> None:
    evil = {"Origin": "https://evil.example"}
    assert code_of(log_in(town.running, ann, cookies=True, headers=evil)) == "foreign_page"
    shown = {**town.people.session(ann).bearer, **evil}
    assert code_of(town.post("/account/language", {"language": "zh"}, shown)) == "foreign_page"
    read = town.running.get(f"{API}/account", headers=shown)
    assert "access-control-allow-origin" not in read.headers


HUGE = "h" * 1_000_000
ODD = ["\x00", "a\x00b@example.com", "\ud800", "\udfff\ud800", "\u202e", "\x1b]0;t\x07", "\U0010ffff" * 60, "9" * 5000]


def test_texts_that_nobody_should_send_are_refused_everywhere(town: Town) -> None:
    person = town.people.person(second_factor=True)
    session = {**town.people.session(person).bearer, "Content-Type": "application/json"}
    fields = {
        "/auth/register": ("address", "password", "language"),
        "/auth/login": ("address", "password", "code"),
        "/auth/confirm": ("link", "address", "code"),
        "/auth/reset": ("link", "address", "code", "password"),
        "/auth/refresh": ("refresh_token",),
        "/auth/forgot": ("address",),
        "/auth/reauthenticate": ("password", "code"),
        "/setup": ("token", "address", "password"),
        "/account/password": ("password",),
        "/account/address": ("address",),
        "/account/second-factor/confirm": ("code",),
        "/account/second-factor/remove": ("code",),
        "/account/keys": ("name", "spending_cap", "expires_at"),
    }
    good = {"address": "ann@example.com", "password": PASSWORD, "name": "n", "scopes": ["account:read"], "token": "t"}
    with httpx2.Client(base_url=town.running.url + API, timeout=20) as client:
        for path, names in fields.items():
            for name in names:
                for odd in (*ODD, "h" * 300_000):
                    content = json.dumps({**good, name: odd}).encode()
                    answer = client.post(path, content=content, headers={**session, **elsewhere()})
                    assert answer.status_code in (401, 403, 409, 422, 429), (path, name, odd[:20], answer.text)


@pytest.mark.parametrize(
    ("changed", "statuses"),
    [
        ({"name": HUGE + HUGE}, {413}),
        ({"networks": ["192.0.2.0/24"] * 10_000}, {422}),
        ({"networks": ["1" * 1000]}, {422}),
        ({"scopes": ["account:read"] * 10_000}, {422}),
        ({"scopes": ["account:read", "account:read"]}, {201}),
        ({"expires_at": "9999-12-31T23:59:59-23:59"}, {201, 422}),
        ({"expires_at": "0001-01-01T00:00:00+23:59"}, {422}),
        ({"expires_at": 10**30}, {422}),
        ({"spending_cap": "9" * 40}, {422}),
        ({"spending_cap": "-1"}, {422}),
        ({"spending_cap": "1e400"}, {422}),
        ({"spending_cap": "NaN"}, {422}),
        ({"role": "operator"}, {422}),
        ({"role": "operator", "scopes": ["pool:write"]}, {422}),
        ({"scopes": ["pool:read"]}, {422}),
    ],
)
def test_keys_that_nobody_should_have_are_refused(town: Town, changed: dict[str, Any], statuses: set[int]) -> None:
    session = town.people.session(town.people.person()).bearer
    asked = {"name": "a key", "scopes": ["account:read"], **changed}
    made = town.post("/account/keys", asked, session)
    assert made.status_code in statuses, made.text
    assert town.running.get(f"{API}/account/keys", headers=session).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"address": ' + b"[" * 50_000 + b"]" * 50_000 + b', "password": "p"}',
        b"",
        b"\xff\xfe",
        b'{"address": "\xed\xa0\x80", "password": "p"}',
        b'{"address": 1e999999, "password": NaN}',
        b"9" * 100_000,
        b"null",
        b'"text"',
    ],
)
def test_bodies_that_nobody_can_read_are_the_callers_fault(town: Town, ann: Person, content: bytes) -> None:
    headers = {"Content-Type": "application/json", **town.people.session(ann).bearer}
    for path in ("/auth/login", "/account/keys", "/auth/refresh"):
        answer = town.running.post(API + path, content=content, headers=headers)
        assert answer.status_code in (400, 401, 422), (path, answer.text)


def test_tokens_and_cookies_of_any_length_are_only_wrong(town: Town) -> None:
    for length in (1, 4096, 4097, 30_000):
        for headers in (bearer("a" * length), {"Cookie": f"tidemill_access={'.' * length}"}):
            answer = town.running.get(f"{API}/account", headers=headers)
            assert (answer.status_code, code_of(answer)) == (401, "token_unknown")
        cookie = {"Cookie": f"tidemill_refresh={'a' * length}", "Origin": town.running.url}
        assert code_of(town.post("/auth/refresh", {}, cookie)) == "token_unknown"
    many = {"Cookie": "; ".join(f"tidemill_access=a{number}" for number in range(1000))}
    assert town.running.get(f"{API}/account", headers=many).status_code == 401


def test_other_spellings_of_a_path_lead_nowhere_else(town: Town) -> None:
    url = town.running.url
    for path in (
        "/api/v1/admin/accounts/",
        "//api/v1/admin/accounts",
        "/api/v1//admin/accounts",
        "/api/v1/admin/%61ccounts",
        "/api/v1/./admin/accounts",
        "/api/v1/auth/../admin/accounts",
        "/API/V1/admin/accounts",
        "/api/v1/admin/accounts;a=b",
        "/api/v1/admin/accounts%00",
        "/pages/..%2f..%2fapp.py",
        "/pages/%2e%2e/app.py",
    ):
        answer = httpx2.get(url + path, timeout=10)
        assert answer.status_code in (307, 401, 404), path
    for method in ("HEAD", "OPTIONS", "PUT", "PATCH", "TRACE", "DELETE"):
        assert httpx2.request(method, f"{url}{API}/admin/accounts", timeout=10).status_code == 405


def test_an_answer_is_replayed_only_to_the_account_that_got_it(town: Town) -> None:
    people = [town.people.person(Role.OPERATOR, second_factor=True) for _ in range(2)]
    first, second = (town.people.session(person).bearer for person in people)
    own_key = town.people.key(people[0], Role.OPERATOR, Scope.POOL_WRITE).bearer
    path, body, key = "/admin/switches/placement/stop", {"reason": "a test"}, {"Idempotency-Key": "the-same"}
    stopped = town.post(path, body, {**first, **key})
    assert stopped.status_code == 200
    for shown in (first, own_key):
        again = town.post(path, body, {**shown, **key})
        assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    for shown in (second, town.running.operator):
        other = town.post(path, body, {**shown, **key})
        assert (other.status_code, code_of(other)) == (409, "already_so")
        assert "idempotency-replayed" not in other.headers
    asked = {"roles": ["customer"], "reason": "a test"}
    assert town.post(f"/admin/accounts/{people[0].id}/roles", asked, second).status_code == 200
    demoted = town.post(path, body, {**first, **key})
    assert (demoted.status_code, code_of(demoted)) == (403, "operator_only"), "nor to who may not ask any more"


def test_a_stream_ends_when_its_reader_is_blocked(town: Town, ann: Person) -> None:
    session = town.people.session(ann).bearer
    with (
        httpx2.Client(timeout=20) as client,
        client.stream("GET", f"{town.running.url}{API}/events", headers=session) as stream,
    ):
        lines = stream.iter_lines()
        next(lines)
        blocked = town.post(f"/admin/accounts/{ann.id}/block", {"reason": "a test"}, town.running.operator)
        assert blocked.status_code == 200
        began = time.monotonic()
        assert list(lines) is not None
        assert time.monotonic() - began < 10


def test_what_was_refused_is_in_the_audit_trail(town: Town, ann: Person) -> None:
    shown = town.people.session(ann).bearer
    for _ in range(3):
        town.running.get(f"{API}/admin/accounts", headers=shown)

    def told() -> bool:
        found = [event for event in town.running.events() if event["body"].get("caller") == f"account:{ann.id}"]
        return any(event["body"]["refusal"] == "operator_only" for event in found)

    until(told, "the refusals are written down")
