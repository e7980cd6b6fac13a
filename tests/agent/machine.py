"""An owner's machine: a home, and real `tidemill agent` processes in it."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIDEMILL = Path(sys.executable).with_name("tidemill")
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
    running: list[Process] = field(default_factory=list)

    async def do(self, *arguments: str, stdin: str = "") -> Done:
        """One command, to its end."""
        process = await self._start(arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        out, said = await asyncio.wait_for(process.communicate(stdin.encode()), PATIENCE_S)
        return Done(process.returncode or 0, out.decode(), said.decode())

    async def start(self, *arguments: str, stdin: str = "") -> Process:
        """A command that goes on; what it says is in `said.txt`."""
        with (self.home.parent / f"{self.home.name}-said.txt").open("ab") as said:
            process = await self._start(arguments, stdin=PIPE, stdout=DEVNULL, stderr=said)
        assert process.stdin
        process.stdin.write(stdin.encode())
        process.stdin.close()
        self.running.append(process)
        return process

    async def join(self, url: str, token: str) -> Process:
        return await self.start("join", url, stdin=token + "\n")

    async def status(self) -> Any:
        done = await self.do("status", "--json")
        assert done.code == 0, done.said
        return json.loads(done.out)

    def said(self) -> str:
        return (self.home.parent / f"{self.home.name}-said.txt").read_text()

    async def _start(self, arguments: tuple[str, ...], **streams: Any) -> Process:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMILL_")}
        own = {"TIDEMILL_AGENT_HOME": str(self.home), "TIDEMILL_HOME": str(self.home.parent / "none"), **self.settings}
        return await asyncio.create_subprocess_exec(TIDEMILL, "agent", *arguments, env={**kept, **own}, **streams)


@asynccontextmanager
async def machine_in(place: Path, name: str = "machine", **settings: str) -> AsyncIterator[OwnersMachine]:
    """A machine on which nothing runs any more at the end."""
    machine = OwnersMachine(place / name, settings)
    try:
        yield machine
    finally:
        for process in machine.running:
            if process.returncode is None:
                process.send_signal(signal.SIGKILL)
                await process.wait()


async def until(condition: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    try:
        async with asyncio.timeout(within_s):
            while not condition():
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {within_s:g} s: {what}") from None
