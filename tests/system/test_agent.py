"""A real machine and a real pool: it joins, stays whatever happens to the pool, obeys from both sides, and goes."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.agents import LIGHT
from tests.worlds.pools.desk import Desk
from tests.worlds.pools.people import MANY, people_of
from tests.worlds.pools.pool import TRUST, Pool, Running, pool_in, until
from tidemill.agent.home.status_file import read_status
from tidemill.core.accounts.roles import Role
from tidemill.host.clocks import wall

FINAL = 6


@dataclass
class Yard:
    """A pool, an owner who is logged in, and the owner's machine."""

    pool: Pool
    running: Running
    owner: dict[str, str]
    desk: Desk
    home: Path
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def agent(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return self.desk.run("agent", *arguments, stdin=stdin, TIDEMILL_AGENT_HOME=str(self.home))

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        self.started.append(self.desk.start("agent", *arguments, TIDEMILL_AGENT_HOME=str(self.home)))
        return self.started[-1]

    def shown(self) -> Any:
        """What the agent wrote last, read without a command."""
        found = read_status(self.home / "status.json", wall())
        return found.fields if found else {"link": {"state": None}}

    def status(self) -> Any:
        return json.loads(self.agent("status", "--json").stdout)

    def ask(self, method: str, path: str, **options: Any) -> Any:
        url = f"{self.running.url}/api/v1/nodes{path}"
        answer = httpx2.request(method, url, headers=self.owner, verify=TRUST, **options)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def node(self) -> Any:
        """What the pool knows of the owner's only node."""
        (found,) = self.ask("GET", "")["items"]
        return self.ask("GET", f"/{found['id']}")

    def rule(self, name: str) -> Any:
        """What the pool says of a rule of that node."""
        return self.node()["rules"].get(name, {}).get("value")

    def token(self) -> str:
        token: str = self.ask("POST", "/join-tokens", json={"name": "rack", "labels": ["rack=7"]})["token"]
        return token

    def joined(self) -> "subprocess.Popen[str]":
        done = self.agent("join", self.running.url, "--once", stdin=self.token())
        assert done.returncode == 0, done.stderr
        running = self.start("run")
        self.until_linked()
        return running

    def until_linked(self, within_s: float = 60) -> None:
        until(lambda: self.shown()["link"]["state"] == "linked", lambda: f"it is linked: {self.shown()}", within_s)


@pytest.fixture(
    scope="module", params=[pytest.param(LIGHT, id="light"), pytest.param({}, marks=pytest.mark.soak, id="whole")]
)
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """One for all: who kills it starts it again. Whole challenges fill gigabytes and multiply for a second."""
    settings = {**MANY, **request.param, "TIDEMILL_LINK_HEARTBEAT_S": "1s"}
    with reachable_directory() as home, pool_in(home, **settings) as pool:
        pool.up().set_up()
        yield pool


@pytest.fixture
def yard(pool: Pool, tmp_path: Path) -> Iterator[Yard]:
    running = pool.running[-1]
    with people_of(running) as people:
        owner = people.session(people.person(Role.PROVIDER)).bearer
    yard = Yard(pool, running, owner, Desk(pool.home, running.port, tmp_path), tmp_path / "machine")
    yield yard
    for process in yard.started:
        process.kill()
        process.wait()
    assert '"bug"' not in pool.running[-1].said()


def test_a_machine_joins_with_one_command_works_by_rules_from_both_sides_and_leaves(yard: Yard) -> None:
    began = time.monotonic()
    process = yard.joined()
    assert time.monotonic() - began < 30
    node = yard.node()
    assert node["id"] == yard.status()["node_id"]
    assert yard.status()["rules"]["labels"]["value"] == ["rack=7"]
    until(lambda: bool(yard.node()["devices"]), "the pool knows the devices")
    until(lambda: yard.node()["life"] == "active", lambda: f"its challenge is passed: {yard.node()}", 90)

    assert yard.agent("drain").returncode == 0
    until(lambda: yard.rule("work") == "drain", "the pool knows that it drains")
    yard.ask("PUT", f"/{node['id']}/rules", json={"work": "run", "price": "1.5"})
    until(lambda: yard.shown()["rules"].get("work", {}).get("value") == "run", "the machine knows that it runs")
    assert yard.status()["rules"]["price"]["value"] == "1.5"

    left = yard.agent("leave", "--reason", "moving house")
    assert left.returncode == 0, left.stderr
    assert process.wait(10) == FINAL
    assert "node.removed" in yard.running.kinds()
    assert not (yard.home / "membership.json").exists()


def test_a_node_that_its_owner_removes_ends_its_agent_and_never_comes_back(yard: Yard) -> None:
    process = yard.joined()
    yard.ask("DELETE", f"/{yard.node()['id']}")
    assert process.wait(15) == FINAL
    again = yard.agent("run")
    assert again.returncode == FINAL
    assert "removed" in again.stderr


def test_an_agent_finds_its_pool_again_after_it_was_killed(yard: Yard) -> None:
    process = yard.joined()
    yard.running.end(signal.SIGKILL)
    until(lambda: yard.shown()["link"]["state"] != "linked", "the link is lost")
    yard.pool.up(port=yard.running.port)
    yard.until_linked(60)
    assert "node.offline" not in yard.running.kinds()
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_a_token_joins_as_many_machines_as_it_may(yard: Yard, tmp_path: Path) -> None:
    token = yard.token()
    assert yard.agent("join", yard.running.url, "--once", stdin=token).returncode == 0
    yard.home = tmp_path / "second"
    second = yard.agent("join", yard.running.url, "--once", stdin=token)
    assert second.returncode == 1
    assert "has let in as many machines as it may" in second.stderr
    assert not (yard.home / "membership.json").exists()
