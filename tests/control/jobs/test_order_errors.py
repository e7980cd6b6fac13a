"""What is wrong with an order, told by the API all at once; and what is told of the nodes that fit."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.worlds.pools.people import People, people_of
from tests.worlds.pools.pool import Running
from tidemill.core.accounts.roles import Role

JOBS = "/api/v1/marketplace/jobs"
MATMUL: dict[str, Any] = {"kind": "matmul", "parameters": {"m": 64, "n": 64, "k": 64, "element": "int8", "seed": 7}}


class Buyer:
    """A customer who orders."""

    def __init__(self, running: Running, people: People) -> None:
        self._running = running
        self._headers = people.session(people.person(Role.CUSTOMER)).bearer

    def order(self, body: Any) -> tuple[int, dict[str, Any]]:
        answer = self._running.post(JOBS, headers=self._headers, json=body)
        return answer.status_code, answer.json()


@pytest.fixture(scope="module")
def buyer(shared_pool: Running) -> Iterator[Buyer]:
    with people_of(shared_pool) as people:
        yield Buyer(shared_pool, people)


def test_all_errors_of_an_order_are_told_at_once_each_with_its_field(buyer: Buyer) -> None:
    body = {"kind": "script", "sedonds": 60, "priority": "now", "gpu_models": "RTX 4090", "parameters": {"cores": 0}}
    status, problem = buyer.order(body)
    assert (status, problem["code"]) == (422, "parameters_malformed")
    told = {error["field"]: error["sentence"] for error in problem["errors"]}
    assert set(told) == {"sedonds", "priority", "gpu_models", "parameters.cores", "parameters.seconds"}
    assert all(sentence.endswith((".", "?")) for sentence in told.values())


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"policy": "fastest"}, "fast, "),
        ({"gpu_models": "RTX 9999"}, "RTX"),
        ({"regions": "atlantis"}, "'atlantis'"),
    ],
)
def test_what_does_not_exist_is_refused_with_what_there_is(buyer: Buyer, asked: dict[str, Any], named: str) -> None:
    status, problem = buyer.order({**MATMUL, **asked})
    assert status == 422
    [error] = problem["errors"]
    assert error["field"] in asked
    assert named in error["sentence"]


def test_the_quote_says_how_many_nodes_fit(buyer: Buyer) -> None:
    status, job = buyer.order({**MATMUL, "policy": "trusted", "reputation": 99, "hourly": 2})
    assert status == 201
    fit = job["quote"]["fit"]
    assert set(fit) == {"nodes", "of", "relax"}
    assert job["asked"]["policy"] == "trusted"
