"""Nodes that claim more cores and more memory than they have: they get work for what a challenge measured."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.control.jobs.test_jobs import Customer, Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tests.worlds.pools.wire_agents import simulated
from tests.worlds.pools.work_pools import QUICK, Hands, door_of, hands
from tidemill.cli.nodes.node_view import print_node
from tidemill.core.events.node_sentences import sentence
from tidemill.core.nodes.machine.hardware import Machine

LOOK_S = 1.0
TASKS = 11
CORES = 256
ROOMY_MIB = 8_192
"""Enough memory for all tasks, so that it is the cores that are too few."""

HUGE_MIB = 4 * 1024 * 1024
SMALL = {
    "TIDEMILL_CHALLENGE_SPEED_S": "10ms",
    "TIDEMILL_CHALLENGE_MACHINE_MEMORY_SHARE": "2%",
    "TIDEMILL_CHALLENGE_CORE_SHARE": "100%",
}
"""A challenge that takes a second, of which the cores of one processor remain."""


def boast(number: int) -> Machine:
    """The first has the memory that it claims, the second has neither."""
    return simulated(number, CORES, HUGE_MIB if number else ROOMY_MIB)


@dataclass
class Boasters:
    """Two nodes of one owner, and those who look at them."""

    running: Running
    hands: Hands
    ann: Customer

    def view(self, number: int) -> Any:
        path = f"/api/v1/nodes/{self.hands.crowd.agents[number].node_id}"
        return self.running.get(path, headers=self.running.operator).json()

    def offered(self) -> int:
        return len(self.hands.offers)


@pytest.fixture(scope="module")
def boasters() -> Iterator[Boasters]:
    with reachable_directory() as home, pool_in(home, **QUICK, **SMALL) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            door, shop = door_of([running], people, 2), Shop(running, people)
            with hands(home, door, range(2), claimed=boast, real=simulated(0, 1, ROOMY_MIB)) as made:
                yield Boasters(running, made, shop.customer(100))
        assert '"bug"' not in running.said()


def test_one_core_that_claims_to_be_256_gets_the_work_of_what_it_showed(
    boasters: Boasters, capsys: pytest.CaptureFixture[str]
) -> None:
    """It got eleven tasks at once."""
    until(lambda: boasters.view(0)["life"] == "active", lambda: str(boasters.view(0)["no_work"]))
    found = boasters.view(0)
    assert 1 <= found["measured_cores"] < TASKS
    assert found["measured_mib"] == ROOMY_MIB
    (event,) = [event for event in boasters.running.events() if event["kind"] == "node.challenge_passed"]
    assert "claims 256 cores" in sentence(event)
    parameters = {"m": 24, "n": 24, "k": 24, "element": "int8", "seed": 1}
    job = boasters.ann.order({"kind": "matmul", "parameters": parameters, "tasks": TASKS})
    assert boasters.ann.post(f"/{job['id']}/confirm").status_code == 200
    print_node(found)
    (row,) = [row for row in capsys.readouterr().out.splitlines() if row.startswith("measured ")]
    assert row.split()[1] == str(found["measured_cores"])
    assert "and 8 GiB of memory" in row
    until(lambda: boasters.offered() >= found["measured_cores"], "it gets what it can do")
    time.sleep(LOOK_S)
    assert boasters.offered() == found["measured_cores"]


def test_a_machine_that_claims_4_tib_gets_nothing_and_is_told_why(boasters: Boasters) -> None:
    until(lambda: "asked for" in str(boasters.view(1)["no_work"]), lambda: str(boasters.view(1)["no_work"]))
    found = boasters.view(1)
    assert found["life"] == "registered"
    assert " MiB of memory are asked for" in found["no_work"][0]["sentence"]
    assert found["measured_cores"] is None
