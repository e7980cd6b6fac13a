"""References in the API's paths and filters: every form, every kind, and nothing of what is another's."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx2
import pytest
from fastapi.routing import APIRoute

from tests.worlds.pools.people import People, Person, bearer, people_of
from tests.worlds.pools.pool import Running
from tidemill.control.app import create_api
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.ids import short_id

ORDER = {"kind": "matmul", "parameters": {"m": 64, "n": 64, "k": 64, "element": "int8", "seed": 7}}
BY_PROGRAMS_ONLY = {"upload_id"}
"""Ids that only programs write: an upload's stands in the address that began it."""

UNREADABLE = ["%00", "a%0Ab", "%E2%80%AE", "%FF", "x" * 4_000, "last-1000", "last-999999999", "-1", "%ED%A0%80"]
STRANGE = ["%25", "_", "%27%20OR%201=1", "%22", "....", "last-", "a%5Cb", "%C3%A9", "9fc8e31", "*", "{job_id}", "~"]


@dataclass
class Somebody:
    """A customer and provider with a session, and what they have."""

    client: httpx2.Client
    url: str
    person: Person
    headers: dict[str, str]

    def ask(self, method: str, path: str, **more: Any) -> httpx2.Response:
        return self.client.request(method, f"{self.url}/api/v1{path}", headers=self.headers, **more)

    def order(self, name: str = "") -> str:
        answer = self.ask("POST", "/marketplace/jobs", json={**ORDER, **({"name": name} if name else {})})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@dataclass
class World:
    people: People
    running: Running
    client: httpx2.Client

    def somebody(self) -> Somebody:
        person = self.people.person(Role.CUSTOMER, Role.PROVIDER)
        return Somebody(self.client, self.running.url, person, self.people.session(person).bearer)

    def operator(self) -> Somebody:
        home = (self.running.home / "operator.token").read_text().strip()
        return Somebody(self.client, self.running.url, self.people.person(), bearer(home))


@pytest.fixture
def world(shared_pool: Running) -> Iterator[World]:
    with people_of(shared_pool) as people, httpx2.Client(timeout=20) as client:
        yield World(people, shared_pool, client)


def bare(answer: httpx2.Response) -> tuple[int, Any]:
    return answer.status_code, {name: value for name, value in answer.json().items() if name != "request_id"}


def test_every_id_in_a_path_takes_references_and_says_so() -> None:
    document = create_api().openapi()
    routes = [route for route in create_api().routes if isinstance(route, APIRoute) and "_id}" in route.path]
    assert len(routes) > 40
    for route in routes:
        for method in route.methods:
            operation = document["paths"][route.path][method.lower()]
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and parameter["name"] not in BY_PROGRAMS_ONLY:
                    assert "`last`" in parameter["description"], (method, route.path)
                    assert parameter["schema"]["type"] == "string", (method, route.path)
                    assert "409" in operation["responses"], (method, route.path)


def test_a_job_answers_to_each_of_its_names(world: World) -> None:
    ada = world.somebody()
    older, newer = ada.order("train"), ada.order("train")
    for text, meant in {older: older, short_id(older): older, "train": newer, "last": newer, "last-1": older}.items():
        for what in ("", "/quote", "/logs", "/resources", "/explanation"):
            answer = ada.ask("GET", f"/marketplace/jobs/{text}{what}")
            assert answer.status_code == 200, answer.text
        assert ada.ask("GET", f"/marketplace/jobs/{text}").json()["id"] == meant
    assert ada.ask("POST", f"/marketplace/jobs/{short_id(older)}/cancel").json()["state"] == "cancelled"
    assert ada.ask("GET", f"/marketplace/jobs/{older}").json()["state"] == "cancelled"


def test_a_node_a_key_and_a_token_answer_to_their_names(world: World) -> None:
    ada = world.somebody()
    node_id = str(world.people.node(ada.person))
    for text in (node_id, short_id(node_id), "rack", "last"):
        assert ada.ask("GET", f"/nodes/{text}").json()["id"] == node_id
    assert ada.ask("PATCH", "/nodes/rack", json={"name": "rack 7 ü"}).json()["name"] == "rack 7 ü"
    assert ada.ask("POST", f"/nodes/{quote('rack 7 ü')}/pause").json()["id"] == node_id
    world.people.key(ada.person, Role.CUSTOMER, Scope.ACCOUNT_READ, name="ci")
    assert ada.ask("DELETE", "/account/keys/ci").status_code == 204
    assert ada.ask("DELETE", "/account/keys/ci").json()["code"] == "unknown_key"
    made = ada.ask("POST", "/nodes/join-tokens", json={"name": "attic"}).json()["about"]["id"]
    assert ada.ask("DELETE", f"/nodes/join-tokens/{short_id(made)}").status_code == 204
    assert ada.ask("DELETE", "/nodes/join-tokens/attic").json()["code"] == "unknown_join_token"


def test_the_second_machine_of_a_name_gets_a_number(world: World) -> None:
    ada, ben = world.somebody(), world.somebody()
    for _ in range(3):
        world.people.node(ada.person)
    world.people.node(ben.person)
    names = [node["name"] for node in ada.ask("GET", "/nodes").json()["items"]]
    assert names == ["rack-3", "rack-2", "rack"]
    assert [node["name"] for node in ben.ask("GET", "/nodes").json()["items"]] == ["rack"]


def test_anothers_object_is_a_missing_one_in_every_form(world: World) -> None:
    ada, eve = world.somebody(), world.somebody()
    job, node = ada.order("secret plans"), str(world.people.node(ada.person))
    for route, its_id, missing in (("/marketplace/jobs", job, "0" * 8), ("/nodes", node, "0" * 8)):
        for text in (its_id, short_id(its_id), UUID(its_id).hex[-20:], "last", quote("secret plans"), "rack"):
            assert bare(eve.ask("GET", f"{route}/{text}")) == bare(eve.ask("GET", f"{route}/{missing}")), text
    assert eve.ask("POST", f"/marketplace/jobs/{short_id(job)}/cancel").status_code == 404
    assert eve.ask("DELETE", f"/nodes/{short_id(node)}").status_code == 404
    key = world.people.key(ada.person, Role.CUSTOMER, Scope.ACCOUNT_READ)
    session = world.people.session(ada.person)
    for path in (f"/account/keys/{short_id(key.id)}", f"/account/sessions/{short_id(session.id)}"):
        assert eve.ask("DELETE", path).status_code == 404, path


def test_an_operator_finds_everybodys_and_is_never_given_one_of_two(world: World) -> None:
    ada, ben, operator = world.somebody(), world.somebody(), world.operator()
    first, second = ada.order("nightly build"), ben.order("nightly build")
    assert operator.ask("GET", f"/marketplace/jobs/{short_id(first)}").json()["id"] == first
    answer = operator.ask("POST", f"/marketplace/jobs/{quote('nightly build')}/cancel")
    assert (answer.status_code, answer.json()["code"]) == (409, "reference_ambiguous")
    assert all(short_id(one) in answer.json()["detail"] for one in (first, second))
    for text in (ben.person.address, ben.person.address.upper(), short_id(ben.person.id), str(ben.person.id)):
        assert operator.ask("GET", f"/admin/accounts/{text}").json()["id"] == str(ben.person.id)
        listed = operator.ask("GET", f"/marketplace/jobs?owner={text}").json()["items"]
        assert [job["id"] for job in listed] == [second]
    assert operator.ask("GET", "/nodes?owner=nobody@people.example").json()["code"] == "unknown_person"


def test_the_filter_for_operators_tells_others_nothing(world: World) -> None:
    ada, eve = world.somebody(), world.somebody()
    own = eve.order()
    for text in (ada.person.address, short_id(ada.person.id), "nobody@people.example", "00000000", "%00"):
        listed = eve.ask("GET", f"/marketplace/jobs?owner={text}")
        assert [job["id"] for job in listed.json()["items"]] == [own], text


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_names_nothing_gets_a_sentence_of_ours(world: World, text: str) -> None:
    ada = world.somebody()
    for path in ("/marketplace/jobs/{}", "/nodes/{}", "/artefacts/{}"):
        answer = ada.ask("GET", path.format(text))
        assert answer.status_code in (404, 422), answer.text
        assert "group" not in answer.text
        assert answer.json()["code"] in ("reference_malformed", "unknown_job", "unknown_node", "unknown_artefact")


@pytest.mark.parametrize("text", STRANGE)
def test_wildcards_and_quotes_find_nothing(world: World, text: str) -> None:
    ada = world.somebody()
    ada.order("plain")
    answer = ada.ask("GET", f"/marketplace/jobs/{text}")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_job")


@pytest.mark.parametrize(
    "name", ["9fc8e31a", "DEADBEEF", "last", "last-3", "-1", "a/b", "0190a5c27e3b7d219f4a1c5d9fc8e31a"]
)
def test_what_looks_like_a_reference_is_no_name(world: World, name: str) -> None:
    ada = world.somebody()
    node_id = world.people.node(ada.person)
    key = {"name": name, "scopes": ["account:read"]}
    refused = [
        ada.ask("PATCH", f"/nodes/{node_id}", json={"name": name}),
        ada.ask("POST", "/nodes/join-tokens", json={"name": name}),
        ada.ask("POST", "/account/keys", json=key),
        ada.ask("POST", "/marketplace/jobs", json={**ORDER, "name": name}),
    ]
    for answer in refused:
        assert answer.status_code == 422, answer.text
        assert "choose another" in answer.json()["detail"]


def test_a_job_called_as_anothers_node_or_address_means_only_that_job(world: World) -> None:
    ada, eve = world.somebody(), world.somebody()
    ada.order("mine")
    job = eve.order(ada.person.address)
    assert eve.ask("GET", f"/marketplace/jobs/{ada.person.address}").json()["id"] == job
    assert ada.ask("GET", f"/marketplace/jobs/{ada.person.address}").status_code == 404


def test_paths_in_a_reference_lead_nowhere(world: World) -> None:
    ada = world.somebody()
    for text in ("..%2F..%2Fadmin%2Faccounts", "%2e%2e", "a%2Fb"):
        answer = ada.ask("GET", f"/marketplace/jobs/{text}")
        assert answer.status_code == 404, (text, answer.text)


def test_what_is_no_whole_id_where_one_is_needed_gets_a_sentence_of_ours(world: World) -> None:
    ada = world.somebody()
    for text in ("rubbish", "9fc8e31a", "0190a5c2-7e3b-7d21-9f4a", "%00"):
        answer = ada.ask("GET", f"/marketplace/jobs?after={text}")
        assert answer.status_code == 422
        assert "no whole id" in answer.json()["detail"]
        assert "group" not in answer.text
