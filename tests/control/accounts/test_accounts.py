"""The ways through an account's life over HTTP: signing up, coming in, changing what one is, and leaving."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import httpx2
import pyotp
import pytest

from tests.worlds.pools.people import (
    PASSWORD,
    OpenSession,
    People,
    Person,
    bearer,
    code_of,
    link_of,
    log_in,
    people_of,
)
from tests.worlds.pools.pool import OPERATOR_ADDRESS, OPERATOR_PASSWORD, Running, until
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.notices.mail import LetterKind

API = "/api/v1"
NEW_PASSWORD = "another horse 5 battery"
_numbers = itertools.count(1)


@dataclass
class Town:
    """A pool that is set up, and its people."""

    running: Running
    people: People

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> httpx2.Response:
        return self.running.post(API + path, json=body, headers=headers or {})

    def get(self, path: str, headers: dict[str, str]) -> Any:
        answer = self.running.get(API + path, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def is_in(self, session: OpenSession | dict[str, str]) -> bool:
        headers = session if isinstance(session, dict) else session.bearer
        return self.running.get(f"{API}/account", headers=headers).status_code == 200

    def enter(self, person: Person, **asked: Any) -> OpenSession:
        """Log in; with the next code of the authenticator where there is one."""
        code = person.code() if person.totp else None
        answer = log_in(self.running, person, code=code, **asked)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        return OpenSession(body["session_id"], body["access_token"], body["refresh_token"])

    def sign_up(self, address: str, **asked: Any) -> None:
        answer = self.post("/auth/register", {"address": address, "password": PASSWORD, **asked})
        assert answer.status_code == 202, answer.text

    def delete(self, path: str, headers: dict[str, str]) -> httpx2.Response:
        return httpx2.delete(self.running.url + API + path, headers=headers, timeout=10)


@pytest.fixture(scope="module")
def town(shared_pool: Running) -> Iterator[Town]:
    with people_of(shared_pool) as people:
        yield Town(shared_pool, people)


@pytest.fixture
def ann(town: Town) -> Person:
    return town.people.person()


@pytest.fixture
def operator(town: Town) -> dict[str, str]:
    return town.people.session(town.people.person(Role.OPERATOR, second_factor=True)).bearer


def new_address() -> str:
    return f"newcomer-{next(_numbers)}@people.example"


@pytest.mark.parametrize("way", ["link", "code"])
def test_a_newcomer_confirms_by_link_or_code_and_logs_in(town: Town, way: str) -> None:
    address = new_address()
    town.sign_up(address.title(), roles=["provider", "customer"], language="ru")
    assert code_of(log_in(town.running, Person(uuid4(), address))) == "login_failed", "not before it is confirmed"
    letter = town.people.letter(address.title().replace("People.Example", "people.example"), LetterKind.CONFIRM_ADDRESS)
    by_code = {"address": address, "code": letter.parameters["code"]}
    proof = {"link": link_of(letter)} if way == "link" else by_code
    for stranger in (proof, {**proof, "password": "not the one 1"}):
        assert code_of(town.post("/auth/confirm", stranger)) == "registration_password", "who registered knows it"
    confirmed = town.post("/auth/confirm", {**proof, "password": PASSWORD})
    assert confirmed.status_code == 200, confirmed.text
    session = town.enter(Person(confirmed.json()["account_id"], address))
    account = town.get("/account", session.bearer)["account"]
    assert (account["roles"], account["language"], account["kyc"]) == (["customer", "provider"], "ru", "none")
    assert account["id"] == confirmed.json()["account_id"]
    assert "password" not in str(account)
    for again in ({"link": link_of(letter)}, by_code):
        assert code_of(town.post("/auth/confirm", again)) == "mail_token_unknown"


def test_who_signs_up_again_is_told_by_mail_only(town: Town, ann: Person) -> None:
    town.sign_up(ann.address.upper(), roles=["provider"])
    assert [letter.kind for letter in town.people.letters(ann.address)] == [LetterKind.ADDRESS_TAKEN]
    assert town.get("/account", town.enter(ann).bearer)["account"]["roles"] == ["customer"]


def test_two_who_sign_up_with_one_address_become_one_account(town: Town) -> None:
    address = new_address()
    town.sign_up(address)
    town.sign_up(address)
    first, second = (link_of(letter) for letter in town.people.letters(address))
    assert town.post("/auth/confirm", {"link": second, "password": PASSWORD}).status_code == 200
    late = town.post("/auth/confirm", {"link": first, "password": PASSWORD})
    assert (late.status_code, code_of(late)) == (409, "address_in_use")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"address": "nobody", "password": PASSWORD}, "address_malformed"),
        ({"address": "ann@example.com", "password": "short1"}, "password_too_short"),
        ({"address": "ann@example.com", "password": "onlyletters"}, "password_too_simple"),
        ({"address": "ann@example.com", "password": "password1"}, "password_common"),
        ({"address": "ann-long@example.com", "password": "ann-long2024"}, "password_is_address"),
        ({"address": "ann@example.com", "password": PASSWORD, "roles": ["operator"]}, "invalid_request"),
        ({"address": "ann@example.com", "password": PASSWORD, "roles": ["data_centre"]}, "invalid_request"),
        ({"address": "ann@example.com", "password": PASSWORD, "roles": []}, "invalid_request"),
    ],
)
def test_a_sign_up_that_will_not_do_is_told_why(town: Town, body: dict[str, Any], code: str) -> None:
    answer = town.post("/auth/register", body)
    assert (answer.status_code, code_of(answer)) == (422, code)
    assert PASSWORD not in answer.text


def test_a_session_goes_on_by_refreshing_and_ends_by_logging_out(town: Town, ann: Person) -> None:
    session = town.enter(ann, remember=True)
    refreshed = town.post("/auth/refresh", {"refresh_token": session.refresh_token}).json()
    assert refreshed["session_id"] == session.id
    following = OpenSession(refreshed["session_id"], refreshed["access_token"], refreshed["refresh_token"])
    assert town.is_in(session)
    assert town.is_in(following)
    assert town.post("/auth/logout", headers=following.bearer).status_code == 204
    assert not town.is_in(session), "every token of the session is over"
    assert code_of(town.post("/auth/refresh", {"refresh_token": following.refresh_token})) == "session_over"


def test_a_browser_gets_its_tokens_as_cookies_that_scripts_cannot_read(town: Town, ann: Person) -> None:
    origin = {"Origin": town.running.url}
    with httpx2.Client(base_url=town.running.url + API, headers=origin, timeout=10) as browser:
        entered = browser.post("/auth/login", json={"address": ann.address, "password": PASSWORD, "cookies": True})
        assert (entered.json()["access_token"], entered.json()["refresh_token"]) == (None, None)
        cookies = entered.headers.get_list("set-cookie")
        assert len(cookies) == 2
        assert all("HttpOnly" in cookie and "samesite=strict" in cookie.lower() for cookie in cookies)
        assert entered.headers["cache-control"] == "no-store"
        assert browser.get("/account").json()["account"]["address"] == ann.address
        assert browser.post("/auth/refresh", json={}).status_code == 200
        assert browser.post("/auth/logout").status_code == 204
        assert browser.get("/account").status_code == 401
        assert not browser.cookies


def test_a_forgotten_password_is_reset_by_link_or_code_and_every_session_ends(town: Town, ann: Person) -> None:
    session = town.enter(ann)
    assert town.post("/auth/forgot", {"address": ann.address}).status_code == 202
    letter = town.people.letter(ann.address, LetterKind.RESET_PASSWORD)
    weak = town.post("/auth/reset", {"link": link_of(letter), "password": ann.address})
    assert (weak.status_code, code_of(weak)) == (422, "password_is_address")
    by_code = {"address": ann.address, "code": letter.parameters["code"], "password": NEW_PASSWORD}
    assert town.post("/auth/reset", by_code).status_code == 204
    assert not town.is_in(session)
    assert code_of(log_in(town.running, ann)) == "login_failed"
    renewed = town.enter(replace(ann, password=NEW_PASSWORD))
    assert town.is_in(renewed)
    assert town.people.letters(ann.address)[-1].kind is LetterKind.PASSWORD_CHANGED
    assert code_of(town.post("/auth/reset", {"link": link_of(letter), "password": PASSWORD})) == "mail_token_unknown"


def test_a_reset_leaves_the_second_factor_where_it_is(town: Town) -> None:
    person = town.people.person(second_factor=True)
    town.post("/auth/forgot", {"address": person.address})
    link = link_of(town.people.letter(person.address, LetterKind.RESET_PASSWORD))
    assert town.post("/auth/reset", {"link": link, "password": NEW_PASSWORD}).status_code == 204
    renewed = replace(person, password=NEW_PASSWORD)
    assert code_of(log_in(town.running, renewed)) == "second_factor_needed"
    assert town.is_in(town.enter(renewed))


def test_an_unknown_address_that_forgot_is_written_to_in_its_language(town: Town) -> None:
    address = new_address()
    assert town.post("/auth/forgot", {"address": address, "language": "zh"}).status_code == 202
    letter = town.people.letter(address, LetterKind.NO_ACCOUNT)
    assert letter.language == "zh"


def test_a_changed_password_ends_every_other_session_and_stale_letters(town: Town, ann: Person) -> None:
    other, mine = town.enter(ann), town.enter(ann)
    town.post("/auth/forgot", {"address": ann.address})
    stale = link_of(town.people.letter(ann.address, LetterKind.RESET_PASSWORD))
    assert town.post("/account/password", {"password": NEW_PASSWORD}, mine.bearer).status_code == 204
    assert (town.is_in(mine), town.is_in(other)) == (True, False)
    assert code_of(town.post("/auth/reset", {"link": stale, "password": PASSWORD})) == "mail_token_unknown"


def test_what_needs_a_fresh_password_asks_for_it_again(town: Town, ann: Person) -> None:
    stale = town.people.session(ann, age_s=700)
    asked = {"password": NEW_PASSWORD}
    assert code_of(town.post("/account/password", asked, stale.bearer)) == "fresh_login_needed"
    wrong = town.post("/auth/reauthenticate", {"password": "wrong horse 1"}, stale.bearer)
    assert code_of(wrong) == "login_failed"
    assert code_of(town.post("/account/password", asked, stale.bearer)) == "fresh_login_needed"
    assert town.post("/auth/reauthenticate", {"password": PASSWORD}, stale.bearer).status_code == 204
    assert town.post("/account/password", asked, stale.bearer).status_code == 204


def test_an_account_moves_to_an_address_that_was_proved_and_the_old_one_is_told(town: Town, ann: Person) -> None:
    session, moved = town.enter(ann), new_address()
    assert town.post("/account/address", {"address": moved}, session.bearer).status_code == 202
    assert town.get("/account", session.bearer)["account"]["address"] == ann.address, "not before it is confirmed"
    link = link_of(town.people.letter(moved, LetterKind.CONFIRM_NEW_ADDRESS))
    assert town.post("/auth/confirm", {"link": link}).json()["account_id"] == str(ann.id)
    assert town.get("/account", session.bearer)["account"]["address"] == moved
    told = town.people.letter(ann.address, LetterKind.ADDRESS_CHANGED)
    assert moved not in str(told.parameters)
    assert moved.partition("@")[2] in str(told.parameters["new_address"])
    assert code_of(log_in(town.running, ann)) == "login_failed"
    assert town.is_in(town.enter(replace(ann, address=moved)))


def test_an_address_that_was_taken_meanwhile_is_not_moved_to(town: Town, ann: Person) -> None:
    wanted = new_address()
    town.post("/account/address", {"address": wanted}, town.enter(ann).bearer)
    link = link_of(town.people.letter(wanted, LetterKind.CONFIRM_NEW_ADDRESS))
    town.people.person(address=wanted)
    late = town.post("/auth/confirm", {"link": link})
    assert (late.status_code, code_of(late)) == (409, "address_in_use")


def test_a_deleted_account_is_gone_and_its_address_is_free(town: Town, ann: Person) -> None:
    session, key = town.enter(ann), town.people.key(ann, Role.CUSTOMER, Scope.ACCOUNT_READ)
    assert town.is_in(key.bearer)
    assert town.post("/account/delete", headers=session.bearer).status_code == 204
    assert not town.is_in(session)
    assert not town.is_in(key.bearer)
    assert code_of(log_in(town.running, ann)) == "login_failed"
    assert town.people.letters(ann.address)[-1].kind is LetterKind.ACCOUNT_DELETED
    town.sign_up(ann.address)
    link = link_of(town.people.letter(ann.address, LetterKind.CONFIRM_ADDRESS))
    again = town.post("/auth/confirm", {"link": link, "password": PASSWORD}).json()["account_id"]
    assert again != str(ann.id)


def test_the_last_operator_can_neither_leave_nor_be_made_less(town: Town) -> None:
    home, first = town.running.operator, Person(uuid4(), OPERATOR_ADDRESS, OPERATOR_PASSWORD)
    others = town.get("/admin/accounts?role=operator&blocked=false&limit=500", home)["items"]
    chief = next(person["id"] for person in others if person["address"] == OPERATOR_ADDRESS)
    for person in others:
        if person["id"] != chief:
            asked = {"roles": ["customer"], "reason": "a test"}
            assert town.post(f"/admin/accounts/{person['id']}/roles", asked, home).status_code == 200
    session = town.enter(first)
    for path, body in (
        (f"/admin/accounts/{chief}/roles", {"roles": ["customer"], "reason": "a test"}),
        (f"/admin/accounts/{chief}/block", {"reason": "a test"}),
    ):
        assert code_of(town.post(path, body, home)) == "last_operator"
    assert code_of(town.post("/account/delete", headers=session.bearer)) == "last_operator"


def test_a_second_factor_is_switched_on_asked_for_and_removed(town: Town, ann: Person) -> None:
    other, session = town.enter(ann), town.enter(ann)
    begun = town.post("/account/second-factor", headers=session.bearer).json()
    assert begun["qr_svg"].startswith("<svg")
    parsed = pyotp.parse_uri(begun["uri"])
    assert isinstance(parsed, pyotp.TOTP)
    assert (parsed.secret, parsed.name) == (begun["secret"], ann.address)
    person = replace(ann, totp=parsed)
    assert code_of(log_in(town.running, ann)) == "", "it counts only once a code was shown"
    wrong = town.post("/account/second-factor/confirm", {"code": "１２３４５６"}, session.bearer)
    assert (wrong.status_code, code_of(wrong)) == (422, "code_wrong")
    confirmed = town.post("/account/second-factor/confirm", {"code": person.code()}, session.bearer)
    assert confirmed.status_code == 200, confirmed.text
    assert len(set(confirmed.json()["recovery_codes"])) == 10
    assert (town.is_in(session), town.is_in(other)) == (True, False)
    assert code_of(town.post("/account/second-factor", headers=session.bearer)) == "second_factor_on"
    assert code_of(log_in(town.running, ann)) == "second_factor_needed"
    assert code_of(log_in(town.running, ann, code="000000")) == "login_failed"
    second = town.enter(person)
    recovery = confirmed.json()["recovery_codes"][0]
    removed = town.post("/account/second-factor/remove", {"code": recovery}, second.bearer)
    assert removed.status_code == 204, removed.text
    assert not town.is_in(second)
    assert town.is_in(town.enter(ann))
    kinds = [letter.kind for letter in town.people.letters(ann.address)]
    assert kinds == [LetterKind.SECOND_FACTOR_ON, LetterKind.SECOND_FACTOR_OFF]


def test_a_recovery_code_lets_in_once_and_new_ones_replace_the_old(town: Town) -> None:
    person = town.people.person(second_factor=True)
    first, second, *_ = person.recovery_codes
    entered = log_in(town.running, person, code=first.upper().replace("-", " "))
    assert entered.status_code == 200
    assert town.people.letter(person.address, LetterKind.RECOVERY_CODE_USED).parameters["left"] == 9
    assert code_of(log_in(town.running, person, code=first)) == "login_failed"
    session = bearer(entered.json()["access_token"])
    renewed = town.post("/account/second-factor/recovery-codes", headers=session).json()["recovery_codes"]
    assert code_of(log_in(town.running, person, code=second)) == "login_failed"
    assert log_in(town.running, person, code=renewed[0]).status_code == 200


def test_sessions_are_listed_and_ended_one_by_one_or_all_others(town: Town, ann: Person) -> None:
    first, second, third = (town.enter(ann) for _ in range(3))
    listed = town.get("/account/sessions", third.bearer)["items"]
    assert {item["id"] for item in listed} == {first.id, second.id, third.id}
    assert [item["id"] for item in listed if item["current"]] == [third.id]
    assert {item["address"] for item in listed} == {"127.0.0.1"}
    assert town.delete(f"/account/sessions/{first.id}", third.bearer).status_code == 204
    assert town.delete(f"/account/sessions/{first.id}", third.bearer).status_code == 404
    assert (town.is_in(first), town.is_in(second)) == (False, True)
    assert town.post("/account/sessions/end-others", headers=third.bearer).json() == {"ended": 1}
    assert (town.is_in(second), town.is_in(third)) == (False, True)


def test_the_history_tells_every_try_at_the_door_in_pages(town: Town, ann: Person) -> None:
    agent = {"User-Agent": b"Mozilla \x9b31m \xad" + b"x" * 400}
    assert code_of(log_in(town.running, replace(ann, password="wrong horse 1"), headers=agent)) == "login_failed"
    session = town.enter(ann)
    first = town.get("/account/logins?limit=1", session.bearer)
    assert (first["items"][0]["result"], first["has_more"]) == ("ok", True)
    second = town.get(f"/account/logins?limit=1&after={first['after']}", session.bearer)
    (failed,) = second["items"]
    assert (failed["result"], failed["address"], second["has_more"]) == ("failed", "127.0.0.1", False)
    assert failed["user_agent"].isprintable()
    assert len(failed["user_agent"]) <= 300


def test_a_login_from_a_new_device_is_told(town: Town, ann: Person) -> None:
    town.enter(ann)
    town.enter(ann)
    assert town.people.letters(ann.address) == []
    log_in(town.running, ann, headers={"User-Agent": "somebody else's"})
    letter = town.people.letter(ann.address, LetterKind.NEW_LOGIN)
    assert letter.parameters["device"] == "somebody else's"


def test_a_key_is_made_shown_once_rotated_and_revoked(town: Town, ann: Person) -> None:
    session = town.enter(ann)
    scopes = ["events:read", "account:read"]
    asked = {"name": "render farm", "scopes": scopes, "networks": ["127.0.0.0/8"], "spending_cap": "2.5"}
    made = town.post("/account/keys", asked, session.bearer)
    assert made.status_code == 201, made.text
    secret, about = made.json()["key"], made.json()["about"]
    assert secret.startswith(about["prefix"])
    assert town.is_in(bearer(secret))
    (listed,) = town.get("/account/keys", session.bearer)["items"]
    assert secret not in str(listed)
    assert (listed["spending_cap"], listed["spent"], listed["networks"]) == ("2.5", "0", ["127.0.0.0/8"])
    assert listed["scopes"] == about["scopes"] == sorted(scopes)
    assert town.people.letter(ann.address, LetterKind.KEY_MADE).parameters["name"] == "render farm"
    rotated = town.post(f"/account/keys/{about['id']}/rotate", headers=session.bearer).json()
    assert town.is_in(bearer(secret)), "the old one works on for a while"
    assert town.is_in(bearer(rotated["key"]))
    assert code_of(town.post(f"/account/keys/{about['id']}/rotate", headers=session.bearer)) == "key_rotated"
    for key_id in (about["id"], rotated["about"]["id"]):
        assert town.delete(f"/account/keys/{key_id}", session.bearer).status_code == 204
    assert not town.is_in(bearer(secret))
    assert not town.is_in(bearer(rotated["key"]))
    assert town.get("/account/keys", session.bearer)["items"] == []


def test_when_a_key_was_used_is_told(town: Town, ann: Person) -> None:
    session, key = town.enter(ann), town.people.key(ann, Role.CUSTOMER, Scope.ACCOUNT_READ)
    assert town.is_in(key.bearer)
    until(
        lambda: town.get("/account/keys", session.bearer)["items"][0]["last_used_at"] is not None,
        "the use of the key is written down",
        15,
    )


def test_roles_that_are_free_are_taken_and_left_and_keys_go_with_them(town: Town, ann: Person) -> None:
    session, key = town.enter(ann), town.people.key(ann, Role.CUSTOMER, Scope.ACCOUNT_READ)
    both = town.post("/account/roles", {"roles": ["provider", "customer"]}, session.bearer).json()
    assert both["roles"] == ["customer", "provider"]
    assert town.post("/account/roles", {"roles": ["provider"]}, session.bearer).json()["roles"] == ["provider"]
    assert not town.is_in(key.bearer)
    none = town.post("/account/roles", {"roles": []}, session.bearer)
    assert (none.status_code, code_of(none)) == (422, "roles_missing")
    assert code_of(town.post("/account/roles", {"roles": ["operator"]}, session.bearer)) == "invalid_request"


def test_an_operator_gives_roles_and_they_hold_at_once(town: Town, ann: Person, operator: dict[str, str]) -> None:
    session = town.enter(ann)
    asked = {"roles": ["data_centre", "customer"], "reason": "seen their halls"}
    given = town.post(f"/admin/accounts/{ann.id}/roles", asked, operator)
    assert given.json()["roles"] == ["customer", "data_centre"]
    assert town.get("/account", session.bearer)["acting_as"] == ["customer", "data_centre"]
    kept = town.post("/account/roles", {"roles": []}, session.bearer).json()
    assert kept["roles"] == ["data_centre"], "what an operator gave is not left"


def test_a_provider_is_verified_by_an_operator(town: Town, operator: dict[str, str]) -> None:
    person = town.people.person(Role.PROVIDER)
    session, path = town.enter(person), f"/admin/accounts/{person.id}/kyc"
    decision = {"state": "verified", "reason": "papers seen"}
    assert code_of(town.post(path, decision, operator)) == "kyc_state"
    assert town.post("/account/kyc", headers=session.bearer).json()["kyc"] == "submitted"
    assert code_of(town.post("/account/kyc", headers=session.bearer)) == "kyc_state"
    rejected = town.post(path, {"state": "rejected", "reason": "blurred"}, operator).json()
    assert (rejected["kyc"], rejected["kyc_reason"]) == ("rejected", "blurred")
    assert town.post("/account/kyc", headers=session.bearer).json()["kyc"] == "submitted"
    assert town.post(path, decision, operator).json()["kyc"] == "verified"
    assert town.get("/account", session.bearer)["account"]["kyc"] == "verified"


def test_a_blocked_account_is_out_at_once_and_in_again_when_unblocked(
    town: Town, ann: Person, operator: dict[str, str]
) -> None:
    session, key = town.enter(ann), town.people.key(ann, Role.CUSTOMER, Scope.ACCOUNT_READ)
    assert town.is_in(key.bearer)
    path = f"/admin/accounts/{ann.id}"
    blocked = town.post(f"{path}/block", {"reason": "stolen cards"}, operator)
    assert blocked.json()["blocked_reason"] == "stolen cards"
    assert code_of(town.post(f"{path}/block", {"reason": "again"}, operator)) == "already_blocked"
    assert not town.is_in(session)
    assert not town.is_in(key.bearer)
    assert code_of(log_in(town.running, ann)) == "account_blocked"
    assert code_of(log_in(town.running, replace(ann, password="wrong horse 1"))) == "login_failed"
    assert code_of(town.post("/auth/refresh", {"refresh_token": session.refresh_token})) == "session_over"
    assert town.post(f"{path}/unblock", {"reason": "a mistake"}, operator).json()["blocked_reason"] is None
    assert town.is_in(key.bearer)
    assert not town.is_in(session), "what ended stays ended"
    assert town.is_in(town.enter(ann))
    kinds = [letter.kind for letter in town.people.letters(ann.address)]
    assert kinds[:2] == [LetterKind.ACCOUNT_BLOCKED, LetterKind.ACCOUNT_UNBLOCKED]


def test_an_operator_takes_a_lost_second_factor_away_and_the_owner_is_told(
    town: Town, operator: dict[str, str]
) -> None:
    person = town.people.person(Role.OPERATOR, second_factor=True)
    session = town.people.session(person)
    key = town.people.key(person, Role.OPERATOR, Scope.POOL_READ)
    switches = f"{API}/admin/switches"
    assert town.running.get(switches, headers=key.bearer).status_code == 200
    path = f"/admin/accounts/{person.id}/second-factor/remove"
    assert code_of(town.post(path, {"reason": " "}, operator)) == "reason_missing"
    assert town.post(path, {"reason": "seen in person"}, operator).json()["second_factor_on"] is False
    assert not town.is_in(session)
    assert town.running.get(switches, headers=key.bearer).status_code == 401, "an operator's keys rely on two factors"
    assert town.people.letters(person.address)[-1].kind is LetterKind.SECOND_FACTOR_OFF
    assert code_of(town.post(path, {"reason": "again"}, operator)) == "second_factor_off"


def test_operators_find_people_by_address_role_state_and_page(town: Town, operator: dict[str, str]) -> None:
    person = town.people.person(Role.DATA_CENTRE)
    (found,) = town.get(f"/admin/accounts?address={person.address.upper()}", operator)["items"]
    assert (found["id"], found["blocked_reason"]) == (str(person.id), None)
    assert "hash" not in str(found)
    town.people.block(person)
    listed = town.get("/admin/accounts?role=data_centre&blocked=true&kyc=none", operator)["items"]
    assert str(person.id) in {item["id"] for item in listed}
    seen: list[str] = []
    after, more = "", True
    while more:
        page = town.get(f"/admin/accounts?limit=7{after}", operator)
        seen += [item["id"] for item in page["items"]]
        after, more = f"&after={page['after']}", page["has_more"]
    assert len(seen) == len(set(seen))
    assert seen == sorted(seen, reverse=True)
    assert town.get(f"/admin/accounts/{person.id}", operator)["address"] == person.address


def test_what_happened_to_an_account_is_in_its_owners_events(town: Town, ann: Person) -> None:
    session = town.enter(ann)
    town.post("/account/password", {"password": NEW_PASSWORD}, session.bearer)
    headers = {"Accept": "application/json", **session.bearer}

    def kinds() -> list[str]:
        items: list[Any] = []
        after, more = "start", True
        while more:
            page = town.get(f"/events?limit=500&after={after}", headers)
            items, after, more = items + page["items"], page["after"], page["has_more"]
        return [item["kind"] for item in items if item["subject"] == f"account:{ann.id}"]

    until(lambda: "account.password_changed" in kinds(), "the events are there")
    assert kinds()[0] == "account.made"
