"""Why tasks went where they went, asked by their customer, by owners, by an operator, and by whoever may not know."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest

from tests.control.jobs.test_jobs import Customer, Shop
from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT, Machine, join_token, machines_in, until_linked
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, People, Person, people_of
from tests.worlds.pools.pool import Running, pool_in, until
from tidemill.core.accounts.roles import Role, Scope

JOBS = "/api/v1/marketplace/jobs"
SMALL: dict[str, Any] = {
    "kind": "matmul",
    "parameters": {"m": 64, "n": 64, "k": 64, "element": "int8", "seed": 7},
}
PRICES = ("0.5", "1")


@dataclass
class Mill:
    """A pool with two nodes of two owners, the first cheaper, and a customer."""

    running: Running
    people: People
    machines: list[Machine]
    owners: list[Person]
    customer: Customer

    def get(self, path: str, who: Person) -> httpx2.Response:
        return self.running.get(f"/api/v1{path}", headers=self.people.session(who).bearer)

    def done(self, customer: Customer | None = None) -> str:
        """The id of a job that was confirmed and is over."""
        ann = customer or self.customer
        job_id: str = ann.order(SMALL)["id"]
        assert ann.post(f"/{job_id}/confirm").status_code == 200
        why = f"/marketplace/jobs/{job_id}/explanation"
        until(lambda: ann.get(f"/{job_id}").json()["ended_at"] is not None, lambda: self.get(why, ann.person).text, 60)
        return job_id

    def work(self, number: int, what: str) -> None:
        path = f"/api/v1/nodes/{self.machines[number].node_id}/{what}"
        done = self.running.post(path, headers=self.people.session(self.owners[number]).bearer)
        assert done.status_code == 200, done.text

    def desk(self, place: Path, person: Person) -> Desk:
        place.mkdir(exist_ok=True)
        desk = Desk(place / "home", self.running.port, place)
        desk.keep(person, self.people.session(person))
        return desk


@pytest.fixture(scope="module")
def mill() -> Iterator[Mill]:
    with reachable_directory() as home, pool_in(home, **MANY, **LIGHT) as pool, machines_in(home, 2) as machines:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            owners = [people.person(Role.PROVIDER) for _ in machines]
            for machine, owner, price in zip(machines, owners, PRICES, strict=True):
                machine.join(running.url, join_token(running, people, owner))
                machine.start()
                until_linked(machine)
                rules, headers = {"price": price}, people.session(owner).bearer
                path = f"/api/v1/nodes/{machine.node_id}/rules"
                assert httpx2.put(running.url + path, json=rules, headers=headers).status_code == 200
            made = Mill(running, people, machines, owners, Shop(running, people).customer(10))
            until(lambda: _nodes(made) == 2, "both nodes may get work", 60)
            yield made
        assert '"bug"' not in running.said()


def _nodes(mill: Mill) -> int:
    found: int = mill.get("/marketplace/cluster/status", mill.customer.person).json()["nodes"]
    return found


@pytest.mark.needs("bubblewrap")
def test_each_sees_what_is_theirs_to_know_of_a_decision(mill: Mill) -> None:
    job_id = mill.done()
    cheap, dear = mill.machines
    path = f"/marketplace/jobs/{job_id}/explanation"
    found = mill.get(path, mill.customer.person).json()
    (placed,) = found["items"]
    assert (found["sentence"], found["waiting"], placed["kept"]) == (None, [], True)
    assert (placed["node_id"], placed["nodes"], placed["policy"]) == (cheap.node_id, 2, "value")
    chosen, other = placed["candidates"]
    assert (chosen["node_id"], chosen["chosen"], other["chosen"]) == (cheap.node_id, True, False)
    assert chosen["score"] == pytest.approx(sum(chosen["terms"].values()))
    assert chosen["score"] > other["score"]
    assert (other["node_id"], other["name"], other["terms"]) == (None, "another node", {})
    assert dear.node_id not in json.dumps(found)

    operator = mill.people.person(Role.OPERATOR, second_factor=True)
    shown = mill.get(path, operator).json()["items"][0]["candidates"]
    assert [one["node_id"] for one in shown] == [cheap.node_id, dear.node_id]
    assert shown[1]["terms"]

    lost = mill.get(f"/nodes/{dear.node_id}/considered", mill.owners[1]).json()["items"][0]
    assert (lost["chosen"], lost["winner"], lost["winner_id"], lost["job_id"]) == (False, "another node", None, None)
    assert lost["winner_score"] == pytest.approx(chosen["score"])
    assert lost["score"] == pytest.approx(other["score"])
    everything = mill.get(f"/nodes/{dear.node_id}/considered", mill.owners[1]).text
    for secret in (cheap.node_id, job_id, str(mill.customer.person.id), str(mill.owners[0].id)):
        assert secret not in everything
    assert mill.get(f"/nodes/{dear.node_id}/considered", operator).json()["items"][0]["winner_id"] == cheap.node_id
    won = mill.get(f"/nodes/{cheap.node_id}/considered", mill.owners[0]).json()["items"][0]
    assert (won["chosen"], won["winner_id"], won["sentence"]) == (True, cheap.node_id, "It was chosen.")


@pytest.mark.needs("bubblewrap")
def test_of_anothers_job_or_node_nobody_learns_anything(mill: Mill) -> None:
    job_id, node_id = mill.done(), mill.machines[0].node_id
    stranger = mill.people.person(Role.CUSTOMER, Role.PROVIDER)
    for who, path, code in (
        (stranger, f"/marketplace/jobs/{job_id}/explanation", "unknown_job"),
        (mill.owners[0], f"/marketplace/jobs/{job_id}/explanation", "unknown_job"),
        (stranger, f"/nodes/{node_id}/considered", "unknown_node"),
        (mill.owners[1], f"/nodes/{node_id}/considered", "unknown_node"),
        (mill.customer.person, f"/nodes/{node_id}/considered", "unknown_node"),
        (stranger, f"/marketplace/jobs/{UUID(int=7)}/explanation", "unknown_job"),
    ):
        answer = mill.get(path, who)
        assert (answer.status_code, answer.json()["code"]) == (404, code)
    key = mill.people.key(mill.customer.person, Role.CUSTOMER, Scope.ACCOUNT_READ)
    answer = mill.running.get(f"{JOBS}/{job_id}/explanation", headers=key.bearer)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


@pytest.mark.needs("bubblewrap")
def test_a_job_that_waits_says_what_for_at_the_desk_and_in_the_queue(mill: Mill, tmp_path: Path) -> None:
    ann, path = mill.customer, "/marketplace/queue"
    job_id = ann.order(SMALL)["id"]
    for number in range(2):
        mill.work(number, "pause")
    until(lambda: _nodes(mill) == 0, "no node may get work")
    assert ann.post(f"/{job_id}/confirm").status_code == 200
    why = f"/marketplace/jobs/{job_id}/explanation"
    until(lambda: "no node that may get work" in str(mill.get(why, ann.person).json()["sentence"]), "it is told")
    queue = mill.get(path, mill.people.person(Role.CUSTOMER)).json()["waits_for"]
    assert [(one["code"], one["jobs"]) for one in queue] == [("no_nodes", 1)]
    desk = mill.desk(tmp_path / "ann", ann.person)
    assert "no node that may get work" in desk.run("jobs", "show", job_id).stdout
    told = desk.run("jobs", "why", job_id)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("Task 0 waits since")
    mill.work(1, "resume")
    until(lambda: ann.get(f"/{job_id}").json()["ended_at"] is not None, lambda: mill.get(why, ann.person).text, 30)
    mill.work(0, "resume")
    shown = desk.run("jobs", "why", job_id).stdout
    assert "It was the only node there was that could have it." in shown
    assert "Chosen. " in shown
    assert mill.get(path, ann.person).json()["waits_for"] == []
    owner = mill.desk(tmp_path / "owner", mill.owners[1])
    considered = owner.run("nodes", "why", mill.machines[1].node_id)
    assert (considered.returncode, "chosen" in considered.stdout, "matmul" in considered.stdout) == (0, True, True)
    assert owner.json("nodes", "why", mill.machines[1].node_id)[0]["chosen"]
    stranger = mill.desk(tmp_path / "stranger", mill.people.person(Role.PROVIDER))
    assert stranger.run("nodes", "why", mill.machines[1].node_id).returncode == 1


@pytest.mark.needs("bubblewrap")
def test_dispatch_is_counted(mill: Mill) -> None:
    mill.done()
    counted = mill.running.metrics()
    assert 'tidemill_attempts_ended_total{state="judged",verdict="pass"}' in counted
    for name in ("tidemill_tasks_waiting{", "tidemill_tasks_waiting_oldest_seconds", "tidemill_tasks_at_nodes"):
        assert name in counted
    assert 'tidemill_loop_applied_total{loop="placing"}' in counted
