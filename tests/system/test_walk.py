"""The walk of a job in docs/ARCHITECTURE.md is true: a real job enters its steps, in their order."""

import re
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.control.jobs.test_jobs import Customer, Shop
from tests.tidy.source import PACKAGE, ROOT
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, join_token, machines_in, until_linked
from tests.worlds.pools.people import MANY, people_of
from tests.worlds.pools.pool import pool_in, until
from tests.worlds.pools.walk import WALK, Entry, missing_step, turn_backs, walked
from tidemill.core.accounts.roles import Role

STEP = re.compile(r"`([a-z_/]+\.py): (\w+)`")
ORDER = {"kind": "matmul", "parameters": {"m": 256, "n": 256, "k": 256, "element": "int8", "seed": 7}}
IDLE_S = 2.5
"""In this time every loop of a pool without work has ticked."""

FILES_MAX = 160
"""A job enters about 138. Some runs count a dozen more, of loops that tick just then. What was counted is told."""

TURN_BACKS_MAX = 3
"""How often the steps of ARCHITECTURE.md may come back to a file that they had left."""

pytestmark = pytest.mark.needs("bubblewrap")


@dataclass(frozen=True)
class Walk:
    """What a pool and its node entered while nobody ordered anything, and while one job was carried out."""

    idle: list[Entry]
    job: list[Entry]


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    with (
        reachable_directory() as home,
        reachable_directory() as notes,
        pool_in(home, **MANY, **LIGHT, **{WALK: str(notes)}) as pool,
        machines_in(home, 1, **{WALK: str(notes)}) as [machine],
    ):
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            machine.join(running.url, join_token(running, people, people.person(Role.PROVIDER)))
            machine.start()
            until_linked(machine)
            customer = Shop(running, people).customer(10)
            until(lambda: _nodes(customer) == 1, "the node may get work")

            def follow(act: bool) -> list[Entry]:
                for process in (running, machine):
                    process.send(signal.SIGUSR1)
                if act:
                    _carry_out(customer)
                else:
                    time.sleep(IDLE_S)
                for process in (running, machine):
                    process.send(signal.SIGUSR2)
                until(lambda: len(list(notes.glob("*.json"))) >= 2, "both processes wrote down their walk")
                entries = walked(notes)
                for file in notes.glob("*.json"):
                    file.unlink()
                return entries

            yield Walk(idle=follow(act=False), job=follow(act=True))


def _nodes(customer: Customer) -> int:
    path = "/api/v1/marketplace/cluster/status"
    nodes: int = customer.shop.running.get(path, headers=customer.headers).json()["nodes"]
    return nodes


def _carry_out(customer: Customer) -> None:
    made = customer.post("", ORDER)
    assert made.status_code == 201, made.text
    job_id = made.json()["id"]
    assert customer.get(f"/{job_id}/quote").status_code == 200
    confirmed = customer.post(f"/{job_id}/confirm", {"at_most": "1"})
    assert confirmed.status_code == 200, confirmed.text
    until(lambda: customer.get(f"/{job_id}").json()["state"] == "completed", "the job is completed")


def steps() -> list[tuple[str, str]]:
    return STEP.findall((ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8"))


def test_the_steps_name_functions_that_exist() -> None:
    assert len(steps()) > 15
    for file, function in steps():
        text = (PACKAGE / file).read_text("utf-8")
        assert re.search(rf"def {function}\b", text), f"{file} has no function {function}"


def test_a_real_job_takes_the_steps_in_their_order(walk: Walk) -> None:
    assert missing_step(steps(), walk.job) is None


def test_the_walk_is_not_longer_than_it_was(walk: Walk) -> None:
    """How many files one job enters, beside those that a pool without work enters anyway."""
    files = {entry.file for entry in walk.job} - {entry.file for entry in walk.idle}
    back = turn_backs([file for file, _ in steps()])
    assert len(files) <= FILES_MAX, f"{len(files)} files and {back} turn-backs: {sorted(files)}"
    assert back <= TURN_BACKS_MAX, f"the steps turn back {back} times"
