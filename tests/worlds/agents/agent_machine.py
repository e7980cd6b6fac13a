"""An owner's machine: a home, and real `tidemill agent` processes in it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.worlds.forks import NOTHING, Forked, fork, tidemill
from tidemill.agent.home.status_file import read_status
from tidemill.host.clocks import wall

PATIENCE_S = 40.0


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    said: str


@dataclass
class OwnersMachine:
    """Its commands see only this home."""

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    running: list[Forked] = field(default_factory=list)

    async def do(self, *arguments: str, stdin: str = "") -> Done:
        """One command, to its end."""
        with TemporaryFile() as out, TemporaryFile() as said:
            process = self._start(arguments, stdin, out.fileno(), said.fileno())
            self.running.append(process)
            code = await asyncio.wait_for(process.wait(), PATIENCE_S)
            return Done(code, _text(out), _text(said))

    async def start(self, *arguments: str, stdin: str = "") -> Forked:
        """A command that goes on; what it says is in `said.txt`."""
        with (self.home.parent / f"{self.home.name}-said.txt").open("ab") as said:
            process = self._start(arguments, stdin, NOTHING, said.fileno())
        self.running.append(process)
        return process

    async def join(self, url: str, token: str) -> Forked:
        return await self.start("join", url, stdin=token + "\n")

    async def status(self) -> Any:
        done = await self.do("status", "--json")
        assert done.code == 0, done.said
        return json.loads(done.out)

    def shown(self) -> Mapping[str, Any]:
        """What the agent that runs here wrote last, read without a command."""
        found = read_status(self.home / "status.json", wall())
        return found.fields if found else {}

    def said(self) -> str:
        return (self.home.parent / f"{self.home.name}-said.txt").read_text()

    def _start(self, arguments: tuple[str, ...], stdin: str, out: int, said: int) -> Forked:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
        own = {"TIDEMILL_AGENT_HOME": str(self.home), "TIDEMILL_HOME": str(self.home.parent / "none"), **self.settings}
        with TemporaryFile() as typed:
            typed.write(stdin.encode())
            typed.seek(0)
            streams = (typed.fileno(), out, said)
            return fork(tidemill, "agent", *arguments, streams=streams, environment={**kept, **own})


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@asynccontextmanager
async def machine_in(place: Path, name: str = "machine", **settings: str) -> AsyncIterator[OwnersMachine]:
    """A machine on which nothing runs any more at the end."""
    machine = OwnersMachine(place / name, settings)
    try:
        yield machine
    finally:
        for process in machine.running:
            process.kill()
            await process.wait()


def left_in(runs: Path) -> list[str]:
    """What lies where tasks ran, besides the lock and what waits for a next run."""
    return [one.name for one in runs.iterdir() if not one.name.startswith(".") and one.name != "lock"]


async def until(condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    try:
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {within_s:g} s: {what}") from None
