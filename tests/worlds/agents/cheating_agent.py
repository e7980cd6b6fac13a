"""A real agent whose owner cheats: the agent's own program, changed where it decides what the pool learns.

It reads what to cheat with from a file in its home each time, so a test changes it while the agent runs. With an empty
file it is an honest agent.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from tests.worlds.agents.cheats import Cheat, Repertoire
from tests.worlds.forks import NOTHING, Waited, fork, tidemill
from tests.worlds.pools.agents import Machine, ended_at_last
from tidemill.agent.machine.machine import Hardware
from tidemill.agent.work import sealed_results
from tidemill.agent.work.attempt_run import AttemptRun
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.nodes.machine.hardware import Machine as DetectedMachine
from tidemill.link.dialled.reports import Reporter
from tidemill.wire.messages import Report

_FILE = "cheats.json"


class CheatingMachine(Machine):
    """A machine whose agent cheats, if it is told to."""

    def cheat(self, *cheats: Cheat) -> None:
        """Cheat in these ways from now on, and in no others."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        Repertoire(self.home / _FILE).write(cheats)

    def begin(self, said: int) -> Waited:
        streams = (NOTHING, said, said)
        return Waited(fork(run, "agent", "run", streams=streams, environment=self.environment()))


@contextmanager
def cheating_machines_in(place: Path, *names: str) -> Iterator[list[CheatingMachine]]:
    """Machines with these names whose agents cheat when they are told to, and are all gone at the end."""
    with ended_at_last([CheatingMachine(place / name) for name in names]) as found:
        yield found


def run(*arguments: str) -> None:
    """What the command does, with a cheating agent."""
    repertoire = Repertoire(Path(os.environ["TIDEMILL_AGENT_HOME"]) / _FILE)
    _change_hardware(repertoire)
    _change_results(repertoire)
    _change_reports(repertoire)
    tidemill(*arguments)


def _change_hardware(repertoire: Repertoire) -> None:
    detect = Hardware.machine

    async def machine(self: Hardware) -> DetectedMachine:
        return repertoire.machine(await detect(self))

    Hardware.machine = machine  # type: ignore[method-assign]


def _change_results(repertoire: Repertoire) -> None:
    read, sign = sealed_results._content, AttemptRun._receipt

    def content(out: Path, path: PurePosixPath, size_bytes: int) -> Iterator[bytes]:
        yield repertoire.content(path, b"".join(read(out, path, size_bytes)))

    def receipt(self: AttemptRun, *ran: Any) -> Receipt:
        return repertoire.receipt(sign(self, *ran))

    sealed_results._content = content
    AttemptRun._receipt = receipt  # type: ignore[method-assign]


def _change_reports(repertoire: Repertoire) -> None:
    tell = Reporter.report

    async def report(self: Reporter, said: Report) -> bool:
        await asyncio.sleep(repertoire.delay_s(said))
        return all([await tell(self, instead) for instead in repertoire.told(said)])

    Reporter.report = report  # type: ignore[method-assign]
