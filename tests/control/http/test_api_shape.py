"""The API does what its description says, whatever it is sent: no failure of ours, no status or shape that is not told.

Strangers, customers and operators each send every operation requests that fit the description and requests that do not,
with ids of things that are there and of things that are not. No operation is left out: what would end the caller's
session or account is asked each time with an account of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import MANY, People, Person, people_of
from tests.worlds.pools.pool import Running, pool_in
from tidemill.control.app import create_api
from tidemill.core.accounts.roles import Role, Scope

SETTINGS = {
    **MANY,
    "TIDEMILL_LIMITS_MAIL_PER_HOUR": "1000000",
    "TIDEMILL_LOGIN_HASHES_WAITING_MAX": "10000",
    "TIDEMILL_LOGIN_FAILURES_MAX": "100",
    "TIDEMILL_LOGIN_FAILURES_EVERYWHERE_MAX": "1000000",
}
OPERATIONS = {
    found.ok().label: found.ok()
    for found in schemathesis.openapi.from_dict(create_api().openapi()).get_all_operations()
}
CALLERS = ("stranger", "customer", "operator")
ENDING = {"POST /api/v1/auth/logout", "POST /api/v1/account/delete"}
"""What would end the caller's session or account."""

load_all_checks()
TOLD = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
        "negative_data_rejection",
    ]
)


@dataclass
class Shape:
    """A pool, and who asks it."""

    running: Running
    people: People
    http: requests.Session
    callers: dict[str, dict[str, str]]
    ids: dict[str, str]

    def shown(self, caller: str, operation: str) -> dict[str, str]:
        ending = operation in ENDING and caller != "stranger"
        return self.newcomer(caller)[1] if ending else self.callers[caller]

    def newcomer(self, caller: str) -> tuple[Person, dict[str, str]]:
        roles = (Role.OPERATOR,) if caller == "operator" else (Role.CUSTOMER, Role.PROVIDER)
        person = self.people.person(*roles, second_factor=caller == "operator")
        return person, self.people.session(person).bearer

    def send(self, case: Case[Any], caller: str) -> None:
        headers = {"Accept": "application/json", **self.shown(caller, case.operation.label)}
        case.call_and_validate(base_url=self.running.url, session=self.http, headers=headers, checks=TOLD, timeout=20)


@pytest.fixture(scope="module")
def shape() -> Iterator[Shape]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as pool, requests.Session() as http:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            shape = Shape(running, people, http, {"stranger": {}}, {})
            shape.callers["customer"] = shape.newcomer("customer")[1]
            shape.callers["operator"] = shape.newcomer("operator")[1]
            there = people.person(Role.PROVIDER)
            shape.ids = {
                "account_id": str(there.id),
                "session_id": str(people.session(there).id),
                "key_id": str(people.key(there, Role.PROVIDER, Scope.ACCOUNT_READ).id),
                "node_id": str(people.node(there)),
            }
            yield shape
        assert '"bug"' not in running.said()


def test_the_description_that_is_tried_is_the_one_that_is_served(shape: Shape) -> None:
    assert shape.running.get("/api/v1/openapi.json").json() == create_api().openapi()


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_answers_as_it_is_described(shape: Shape, operation: str, caller: str) -> None:
    tried(shape, operation, caller, examples=12)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_answers_as_it_is_described_for_long(shape: Shape, operation: str, caller: str) -> None:
    tried(shape, operation, caller, examples=300)


def tried(shape: Shape, operation: str, caller: str, examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(operation, shape.ids))
    def send(case: Case[Any]) -> None:
        shape.send(case, caller)

    send()


def cases(operation: str, ids: dict[str, str]) -> SearchStrategy[Case[Any]]:
    """Requests that fit, requests that do not, and requests about what is there."""
    asked = OPERATIONS[operation]
    named = {parameter.name for parameter in asked.path_parameters}
    there: dict[str, Any] = {name: value for name, value in ids.items() if name in named}
    fitting = asked.as_strategy(GenerationMode.POSITIVE)
    found = asked.as_strategy(GenerationMode.POSITIVE, path_parameters=there) if there else fitting
    if not (asked.body or asked.query or asked.path_parameters or asked.headers):
        return fitting
    return fitting | found | asked.as_strategy(GenerationMode.NEGATIVE)
