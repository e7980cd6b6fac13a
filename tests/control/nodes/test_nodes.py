"""Nodes and join tokens over HTTP and by command: who sees what, who may change what, and what a stranger can spoil."""

import json
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import People, Person, bearer, code_of, people_of
from tests.worlds.pools.pool import TRUST, Running, until
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.ids import short_id
from tidemill.core.nodes.join_tokens import JoinTokenParts, read_token
from tidemill.core.notices.mail import LetterKind

NOBODY = UUID("0190a000-0000-7000-8000-000000000000")


@dataclass
class Town:
    """A pool, its people, and how to ask it."""

    running: Running
    people: People

    def ask(self, method: str, path: str, shown: dict[str, str], **options: Any) -> httpx2.Response:
        url = f"{self.running.url}/api/v1/nodes{path}"
        return httpx2.request(method, url, headers=shown, timeout=10, verify=TRUST, **options)

    def owner(self, *roles: Role) -> tuple[Person, dict[str, str]]:
        person = self.people.person(*(roles or (Role.PROVIDER,)))
        return person, self.people.session(person).bearer

    def operator(self) -> dict[str, str]:
        return self.people.session(self.people.person(Role.OPERATOR, second_factor=True)).bearer


@pytest.fixture(scope="module")
def town(shared_pool: Running) -> Iterator[Town]:
    with people_of(shared_pool) as people:
        yield Town(shared_pool, people)


@pytest.fixture
def desk(town: Town, tmp_path: Path) -> Desk:
    return Desk(town.running.home, town.running.port, tmp_path)


def test_a_token_is_shown_once_and_carries_the_pools_fingerprint(town: Town) -> None:
    _, shown = town.owner()
    made = town.ask("POST", "/join-tokens", shown, json={"name": "rack 7", "uses": 3, "labels": ["rack=7"]})
    assert made.status_code == 201, made.text
    token = read_token(made.json()["token"])
    assert isinstance(token, JoinTokenParts)
    other = read_token(town.ask("POST", "/join-tokens", shown, json={"name": "rack 8"}).json()["token"])
    assert isinstance(other, JoinTokenParts)
    assert other.fingerprint == token.fingerprint
    listed = town.ask("GET", "/join-tokens", shown)
    assert token.secret_part not in listed.text
    assert [(item["name"], item["uses"], item["uses_max"]) for item in listed.json()["items"]] == [
        ("rack 8", 0, 1),
        ("rack 7", 0, 3),
    ]
    for item in listed.json()["items"]:
        assert town.ask("DELETE", f"/join-tokens/{item['id']}", shown).status_code == 204
    assert town.ask("GET", "/join-tokens", shown).json()["items"] == []


def test_only_who_provides_makes_tokens_and_only_operators_those_of_the_house(town: Town) -> None:
    def made(shown: dict[str, str], house: bool) -> tuple[int, str]:
        answer = town.ask("POST", "/join-tokens", shown, json={"name": "rack", "house": house})
        return answer.status_code, code_of(answer)

    _, customer = town.owner(Role.CUSTOMER)
    _, provider = town.owner()
    one_factor = town.people.session(town.people.person(Role.OPERATOR)).bearer
    assert made(customer, False) == (403, "join_token_not_provider")
    assert made(provider, True) == (403, "join_token_not_house")
    assert made(one_factor, True) == (403, "join_token_not_house")
    assert made(town.operator(), True) == (201, "")
    assert made(town.running.operator, True) == (403, "session_needed"), "whoever joins machines has an account"


@pytest.mark.parametrize(
    "changed",
    [
        {"name": ""},
        {"name": "a\x00b"},
        {"name": "\x1b[2J"},
        {"uses": 0},
        {"uses": 10_001},
        {"lifetime_s": 0},
        {"lifetime_s": 31 * 86_400},
        {"labels": ["no equals sign"]},
        {"labels": ["rack=\x1b[31m"]},
        {"labels": ["rack=1", "rack=2"]},
        {"labels": [f"k{number}=v" for number in range(21)]},
        {"labels": ["k=" + "x" * 100]},
    ],
)
def test_a_token_that_may_not_be_is_refused(town: Town, changed: dict[str, Any]) -> None:
    _, shown = town.owner()
    assert town.ask("POST", "/join-tokens", shown, json={"name": "rack", **changed}).status_code == 422


def test_a_token_is_its_owners(town: Town) -> None:
    _, ann = town.owner()
    _, ben = town.owner()
    about = town.ask("POST", "/join-tokens", ann, json={"name": "rack"}).json()["about"]
    for shown in (ben, town.operator()):
        answer = town.ask("DELETE", f"/join-tokens/{about['id']}", shown)
        assert (answer.status_code, code_of(answer)) == (404, "unknown_join_token")
    assert len(town.ask("GET", "/join-tokens", ann).json()["items"]) == 1


def test_an_owner_sees_and_changes_their_node_and_is_written_to_when_it_joins(town: Town) -> None:
    person, shown = town.owner()
    node_id = town.people.node(person)
    assert town.people.letter(person.address, LetterKind.NODE_JOINED).parameters["address"] == "198.51.100.7"
    (listed,) = town.ask("GET", "", shown).json()["items"]
    assert (listed["id"], listed["life"], listed["conditions"]) == (str(node_id), "registered", ["online"])
    found = town.ask("GET", f"/{node_id}", shown).json()
    assert found["rules"]["labels"]["value"] == ["rack=7"]
    assert "not_active" in [reason["code"] for reason in found["no_work"]]
    assert town.ask("PATCH", f"/{node_id}", shown, json={"name": " attic "}).json()["name"] == "attic"
    assert [node["id"] for node in town.ask("GET", "?name=attic", shown).json()["items"]] == [str(node_id)]
    priced = town.ask("PUT", f"/{node_id}/rules", shown, json={"price": 1.25, "power_limit_w": 300}).json()
    assert (priced["rules"]["price"]["value"], priced["rules"]["power_limit_w"]["value"]) == ("1.25", 300)
    for what, conditions in (
        ("drain", ["online", "draining"]),
        ("pause", ["online", "paused"]),
        ("resume", ["online"]),
    ):
        assert town.ask("POST", f"/{node_id}/{what}", shown).json()["conditions"] == conditions
    gone = town.ask("DELETE", f"/{node_id}", shown)
    assert (gone.status_code, gone.json()["life"]) == (200, "deregistered")
    assert town.ask("POST", f"/{node_id}/drain", shown).status_code == 410
    assert town.ask("GET", "", shown).json()["items"] == []
    assert [node["id"] for node in town.ask("GET", "?removed=true", shown).json()["items"]] == [str(node_id)]
    kinds = [event["kind"] for event in town.ask("GET", f"/{node_id}/history", shown).json()["items"]]
    assert (kinds[0], kinds[-1], "node.renamed" in kinds) == ("node.removed", "node.joined", True)


def test_anothers_node_is_a_missing_node(town: Town) -> None:
    person, _ = town.owner()
    node_id = town.people.node(person)
    one_factor = town.people.session(town.people.person(Role.OPERATOR)).bearer
    key = town.people.key(town.people.person(Role.PROVIDER), Role.PROVIDER, Scope.NODES_READ, Scope.NODES_WRITE).bearer
    for shown in (town.owner()[1], one_factor, key):
        assert town.ask("GET", f"?owner={person.id}", shown).json()["items"] == []
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/history", None),
            ("PATCH", "", {"name": "mine"}),
            ("PUT", "/rules", {"price": "0"}),
            ("POST", "/drain", None),
            ("POST", "/pause", None),
            ("POST", "/resume", None),
            ("DELETE", "?reason=mine", None),
        ):
            answers = [town.ask(method, f"/{one}{path}", shown, json=body) for one in (node_id, NOBODY)]
            assert [(one.status_code, code_of(one)) for one in answers] == [(404, "unknown_node")] * 2, path
    assert town.ask("GET", f"/{node_id}", town.operator()).json()["life"] == "registered"


def test_operators_see_all_nodes_and_say_why_they_act(town: Town) -> None:
    person, own = town.owner()
    node_id = town.people.node(person)
    for shown in (town.operator(), town.running.operator):
        assert [one["id"] for one in town.ask("GET", f"?owner={person.id}", shown).json()["items"]] == [str(node_id)]
    shown = town.operator()
    assert code_of(town.ask("POST", f"/{node_id}/suspend", own, json={"reason": "x"})) == "operator_only"
    suspended = town.ask("POST", f"/{node_id}/suspend", shown, json={"reason": "looks odd"}).json()
    assert suspended["suspended_reason"] == "looks odd"
    assert town.ask("GET", f"/{node_id}", own).json()["no_work"][0]["code"] == "suspended"
    assert code_of(town.ask("POST", f"/{node_id}/suspend", shown, json={"reason": "again"})) == "node_suspended"
    assert town.ask("POST", f"/{node_id}/unsuspend", shown, json={"reason": "fine"}).status_code == 200
    assert code_of(town.ask("DELETE", f"/{node_id}", shown)) == "reason_missing"
    removed = town.ask("DELETE", f"/{node_id}?reason=stolen", town.running.operator)
    assert removed.json()["removed_reason"] == "stolen"


def test_keys_do_what_their_scopes_say(town: Town) -> None:
    person, _ = town.owner()
    node_id = town.people.node(person)
    reads = town.people.key(person, Role.PROVIDER, Scope.NODES_READ).bearer
    writes = town.people.key(person, Role.PROVIDER, Scope.NODES_WRITE).bearer
    assert town.ask("GET", f"/{node_id}", reads).status_code == 200
    assert code_of(town.ask("POST", f"/{node_id}/drain", reads)) == "scope_missing"
    assert town.ask("POST", f"/{node_id}/drain", writes).status_code == 200
    assert code_of(town.ask("GET", f"/{node_id}", writes)) == "scope_missing"
    assert town.ask("POST", "/join-tokens", writes, json={"name": "rack"}).status_code == 201


@pytest.mark.parametrize(
    "rules",
    [
        {"price": "-1"},
        {"price": "much"},
        {"colour": "red"},
        {"work": "sleep"},
        {"windows": [{"from": "25:00", "until": "08:00"}]},
        {"power_limit_w": 1.5},
        {"labels": ["rack=\x00"]},
        {"region": "\x1b[2J"},
        {f"rule{number}": 1 for number in range(30)},
    ],
)
def test_rules_that_may_not_be_are_refused_and_change_nothing(town: Town, rules: dict[str, Any]) -> None:
    person, shown = town.owner()
    node_id = town.people.node(person)
    answer = town.ask("PUT", f"/{node_id}/rules", shown, json={"temperature_limit_c": 70, **rules})
    assert answer.status_code == 422, answer.text
    assert "temperature_limit_c" not in town.ask("GET", f"/{node_id}", shown).json()["rules"]


@pytest.mark.parametrize("name", ["", "\x00", "a\nb", "x" * 101, "\u202ename"])
def test_a_name_that_cannot_be_shown_is_refused(town: Town, name: str) -> None:
    person, shown = town.owner()
    node_id = town.people.node(person)
    assert town.ask("PATCH", f"/{node_id}", shown, json={"name": name}).status_code == 422
    assert town.ask("GET", "", shown, params={"name": name}).status_code == 422


def test_an_account_with_nodes_is_kept_until_they_are_removed(town: Town) -> None:
    person, shown = town.owner()
    node_id = town.people.node(person)
    assert code_of(town.running.post("/api/v1/account/delete", headers=shown)) == "nodes_left"
    town.ask("DELETE", f"/{node_id}", shown)
    assert town.running.post("/api/v1/account/delete", headers=shown).status_code in (200, 204)


def test_commands_list_show_change_and_remove_a_node(town: Town, desk: Desk) -> None:
    person = town.people.person(Role.PROVIDER)
    desk.keep(person, town.people.session(person))
    node_id = str(town.people.node(person))
    assert desk.run("nodes", "rename", node_id, "attic").returncode == 0
    listed = desk.run("nodes", "list").stdout
    assert ("attic" in listed, node_id in listed) == (True, False), "its name says which is meant"
    shown = desk.run("nodes", "show", "attic").stdout
    for words in (node_id, "registered online", "needs a passed challenge", "labels  rack=7"):
        assert words in shown, shown
    changed = desk.json("nodes", "rules", "attic", "price=2", "power_limit_w=300", 'labels=["rack=8"]')
    assert (changed["price"]["value"], changed["labels"]["value"]) == ("2", ["rack=8"])
    assert desk.json("nodes", "rules", "attic", "price=")["price"]["value"] is None
    refused = desk.run("nodes", "rules", "attic", "power_limit_w=lots")
    assert (refused.returncode, "whole number of watts" in refused.stderr) == (1, True)
    assert desk.json("nodes", "drain", "attic")["conditions"] == ["online", "draining"]
    assert desk.json("nodes", "pause", "attic")["conditions"] == ["online", "paused"]
    assert desk.json("nodes", "resume", "attic")["conditions"] == ["online"]
    assert desk.run("nodes", "suspend", "attic", "--reason", "x").returncode == 1
    assert "Called attic now, by its owner." in desk.run("nodes", "history", "attic").stdout
    assert desk.run("nodes", "remove", "attic").returncode == 0
    assert desk.json("nodes", "list") == []
    missing = desk.run("nodes", "show", "attic")
    assert (missing.returncode, "no such node" in missing.stderr) == (1, True)


def test_a_name_that_two_nodes_have_is_not_guessed(town: Town, desk: Desk) -> None:
    person = town.people.person(Role.PROVIDER)
    desk.keep(person, town.people.session(person))
    for _ in range(2):
        assert desk.run("nodes", "rename", str(town.people.node(person)), "twin").returncode == 0
    removed = desk.run("nodes", "remove", "twin")
    assert (removed.returncode, "Several of the nodes" in removed.stderr) == (1, True)
    listed = desk.run("nodes", "list").stdout
    assert all(short_id(node["id"]) in listed for node in desk.json("nodes", "list")), listed


def test_commands_make_and_revoke_tokens(town: Town, desk: Desk) -> None:
    person = town.people.person(Role.PROVIDER)
    desk.keep(person, town.people.session(person))
    made = desk.run("nodes", "tokens", "make", "rack 7", "--uses", "5", "--lifetime", "2h", "--label", "rack=7")
    assert isinstance(read_token(made.stdout), JoinTokenParts), made.stderr
    assert (made.stdout.strip() in made.stderr, f"tidemill agent join {desk.url}" in made.stderr) == (False, True)
    (listed,) = desk.json("nodes", "tokens", "list")
    assert (listed["uses_max"], listed["labels"]) == (5, ["rack=7"])
    assert "0 of 5" in desk.run("nodes", "tokens", "list").stdout
    assert desk.run("nodes", "tokens", "make", "x", "--lifetime", "soon").returncode == 1
    assert desk.run("nodes", "tokens", "revoke", "rack 7").returncode == 0
    assert desk.json("nodes", "tokens", "list") == []
    assert desk.run("nodes", "tokens", "revoke", "rack 7").returncode == 1


def test_watching_tells_each_change_as_a_line(town: Town, desk: Desk) -> None:
    person = town.people.person(Role.PROVIDER)
    session = town.people.session(person)
    desk.keep(person, session)
    node_id = str(town.people.node(person))
    watching = desk.start("nodes", "watch", "--json")
    assert watching.stdout

    def hears() -> bool:
        town.ask("PATCH", f"/{node_id}", session.bearer, json={"name": f"attic {time.monotonic()}"})
        return bool(select.select([watching.stdout], [], [], 0.2)[0])

    until(hears, "it watches")
    assert desk.run("nodes", "pause", node_id).returncode == 0
    lines = (json.loads(line) for line in watching.stdout)
    paused = next(line for line in lines if line["kind"] == "node.rules_changed")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(10) in (0, 130)
    assert (paused["body"]["node_id"], paused["body"]["rules"]) == (node_id, {"work": "pause"})


def test_at_a_terminal_watching_draws_the_list_anew(town: Town, desk: Desk) -> None:
    person = town.people.person(Role.PROVIDER)
    desk.keep(person, town.people.session(person))
    node_id = str(town.people.node(person))
    screen = desk.at_terminal("nodes", "watch", COLUMNS="200")
    screen.answer("online", "")
    assert desk.run("nodes", "pause", node_id).returncode == 0
    screen.answer("paused", "\x03")
    assert screen.end() in (0, 130)
    assert screen.shown.count("\x1b[2J") >= 2


def test_a_blocked_accounts_key_makes_no_tokens(town: Town) -> None:
    person = town.people.person(Role.PROVIDER)
    key = town.people.key(person, Role.PROVIDER, Scope.NODES_WRITE)
    town.people.block(person)
    until(
        lambda: code_of(town.ask("POST", "/join-tokens", bearer(key.secret), json={"name": "x"})) == "account_blocked",
        "a blocked account is turned away",
    )
