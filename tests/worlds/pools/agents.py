"""Real agents in real processes, joined to a real pool as an owner would."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.worlds.forks import Waited, begun, ended
from tests.worlds.pools.people import People, Person
from tests.worlds.pools.pool import READY_S, TIDEMILL, Running, until
from tidemill.agent.home.status_file import read_status
from tidemill.agent.link.line_speed import LineSpeed, write_speed
from tidemill.core.accounts.roles import Role
from tidemill.host.clocks import wall

LIGHT: Mapping[str, str] = {
    "TIDEMILL_CHALLENGE_MACHINE_MEMORY_SHARE": "0.005%",
    "TIDEMILL_CHALLENGE_SPEED_S": "10ms",
    "TIDEMILL_CHALLENGE_CORE_SHARE": "0.01%",
}
"""Settings of a pool whose challenges are not what a test is about: they are passed with next to no work, and all cores
count, however busy this machine is."""


@dataclass
class Machine:
    """One machine with an agent in a home of its own. `inside` goes before its commands, such as a namespace."""

    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    inside: tuple[str, ...] = ()
    process: "subprocess.Popen[str] | Waited | None" = None

    def run(self, *arguments: str, stdin: str = "", within_s: float = 60) -> "subprocess.CompletedProcess[str]":
        if not self.inside:
            return ended("agent", *arguments, stdin=stdin, environment=self.environment(), within_s=within_s)
        return subprocess.run(
            [*self.inside, TIDEMILL, "agent", *arguments],
            input=stdin,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )

    def join(self, url: str, token: str, *options: str) -> None:
        done = self.run("join", url, "--once", *options, stdin=f"{token}\n")
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Run it. Its line counts as measured, which would keep every machine of a test busy at the same time."""
        write_speed(self.home / "speed.json", LineSpeed(10**9, 10**9, 1, wall()))
        with (self.home.parent / f"said-{self.home.name}.txt").open("a") as said:
            self.process = self.begin(said.fileno())

    def begin(self, said: int) -> "subprocess.Popen[str] | Waited":
        """The agent's process, which says everything in one file."""
        if not self.inside:
            return begun("agent", "run", environment=self.environment(), said=said)
        command = [*self.inside, TIDEMILL, "agent", "run"]
        return subprocess.Popen(command, env=self.environment(), stdout=said, stderr=said, text=True)

    def said(self) -> str:
        return (self.home.parent / f"said-{self.home.name}.txt").read_text()

    def status(self) -> dict[str, Any]:
        done = self.run("status", "--json")
        assert done.returncode == 0, done.stderr
        shown: dict[str, Any] = json.loads(done.stdout)
        return shown

    @property
    def link(self) -> str:
        """How its agent says that the link is, read without a command."""
        return str(self._shown("state"))

    @property
    def generation(self) -> int:
        """Which link of its node it is; 0 while there is none."""
        return self._shown("generation") or 0

    @property
    def node_id(self) -> str:
        kept: str = json.loads((self.home / "membership.json").read_text())["node_id"]
        return kept

    def send(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    def end(self, number: int = signal.SIGTERM, within_s: float = READY_S) -> int:
        self.send(number)
        assert self.process
        return self.process.wait(within_s)

    def _shown(self, name: str) -> Any:
        found = read_status(self.home / "status.json", wall())
        return found.fields["link"][name] if found else None

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
        return {**kept, "TIDEMILL_AGENT_HOME": str(self.home), **self.settings}


AnyMachine = TypeVar("AnyMachine", bound=Machine)


@contextmanager
def machines_in(place: Path, count: int, inside: tuple[str, ...] = (), **settings: str) -> Iterator[list[Machine]]:
    """Machines whose agents are all gone at the end, whatever the test did."""
    with ended_at_last([Machine(place / f"agent-{number}", settings, inside) for number in range(count)]) as found:
        yield found


@contextmanager
def ended_at_last(machines: list[AnyMachine]) -> Iterator[list[AnyMachine]]:
    try:
        yield machines
    finally:
        for machine in machines:
            if machine.process and machine.process.poll() is None:
                machine.process.kill()
                machine.process.wait()


def join_token(running: Running, people: People, owner: Person, uses: int = 1) -> str:
    made = running.post(
        "/api/v1/nodes/join-tokens", headers=people.session(owner).bearer, json={"name": "machines", "uses": uses}
    )
    assert made.status_code == 201, made.text
    token: str = made.json()["token"]
    return token


def house_token(running: Running, people: People) -> str:
    """What lets a machine of the pool's own in."""
    operator = people.session(people.person(Role.OPERATOR, second_factor=True))
    wanted = {"name": "the house", "house": True}
    made = running.post("/api/v1/nodes/join-tokens", headers=operator.bearer, json=wanted)
    assert made.status_code == 201, made.text
    token: str = made.json()["token"]
    return token


def until_linked(machine: Machine, within_s: float = READY_S) -> None:
    until(lambda: machine.link == "linked", machine.said, within_s)
