"""A sandbox to be hostile in: Python programs run there, and what they said comes back."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tidemill.agent.sandboxes.bubblewrap import launcher
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
from tidemill.agent.sandboxes.bubblewrap.seats import mark
from tidemill.agent.sandboxes.cgroups import PREFIX
from tidemill.agent.sandboxes.engine import keeper
from tidemill.agent.sandboxes.engine.sandbox import CALLS_FILES, HOSTS_FILE, open_engine
from tidemill.agent.sandboxes.interface import OutputStream, RunListener, Sandbox, nothing
from tidemill.agent.sandboxes.run_directories import AHEAD, STAGE
from tidemill.core.jobs.sandboxes import MIB, Command, Mount, RunGrants, RunLimits, RunOutcome, RunSpecification

PYTHON = "/usr/bin/python3"
LAUNCHER = os.fsencode(launcher.__file__)
SMALL = RunLimits(
    seconds=20,
    memory_bytes=96 * MIB,
    shared_memory_bytes=4 * MIB,
    temporary_bytes=4 * MIB,
    disk_bytes=16 * MIB,
    file_bytes=8 * MIB,
    output_bytes=64 * 1024,
    work_entries=2000,
    pids=16,
    open_files=64,
)
TRY = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, function):
    try:
        print(name, "ESCAPED", function())
    except OSError as refused:
        print(name, errno.errorcode.get(refused.errno, refused.errno))
def call(number, *arguments):
    ctypes.set_errno(0)
    answer = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) for one in arguments])
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return answer
"""
"""What attacks begin with: `attempt` says how a try was refused."""


@dataclass
class Ran:
    outcome: RunOutcome
    said: dict[OutputStream, bytearray] = field(default_factory=dict)

    @property
    def out(self) -> str:
        return self.said[OutputStream.OUTPUT].decode(errors="replace")

    @property
    def errors(self) -> str:
        return self.said[OutputStream.ERRORS].decode(errors="replace")


@dataclass
class Cell:
    sandbox: Sandbox
    place: Path
    token: str
    runs: int = 0

    def order(self, *arguments: str, **more: Any) -> RunSpecification:
        self.runs += 1
        command = Command(arguments, more.pop("environment", {}))
        inputs, granted = more.pop("inputs", ()), more.pop("granted", RunGrants())
        return RunSpecification(f"{self.token}-{self.runs}", command, replace(SMALL, **more), inputs, granted)

    async def run(self, order: RunSpecification, prepared: Any = nothing, collected: Any = nothing) -> Ran:
        said: dict[OutputStream, bytearray] = {stream: bytearray() for stream in OutputStream}
        told = RunListener(lambda stream, chunk: said[stream].extend(chunk), prepared, collected)
        ended = await self.sandbox.run(order, told)
        await self.sandbox.settled()
        return Ran(ended, said)

    async def python(self, program: str, **more: Any) -> Ran:
        """Run a program that begins with the tries above."""
        return await self.run(self.order(PYTHON, "-c", TRY + program, **more))

    def left_behind(self) -> list[str]:
        """What is there of runs; seats that wait for a run are not of any."""
        of_runs = groups_of_runs(self.place)
        kept = {"lock", STAGE, *CALLS_FILES, HOSTS_FILE}
        return [
            *(str(one) for one in self.place.iterdir() if one.name not in kept and not one.name.startswith(AHEAD)),
            *of_runs,
            *(line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.place) in line),
            *(f"process {pid}" for pid in processes(self.place)),
        ]


def groups(place: Path) -> list[str]:
    """Control groups of the seats in a place."""
    begin = f"{PREFIX}{mark(place)}-"
    walked = os.walk("/sys/fs/cgroup")  # which does not mind that others' groups come and go
    return [f"{parent}/{name}" for parent, names, _ in walked for name in names if name.startswith(begin)]


def groups_of_runs(place: Path) -> list[str]:
    """Those of seats that do not wait for a run. A seat's groups are made after its room, so they are read first."""
    found = groups(place)
    waiting = {entry.name.removeprefix(AHEAD) for entry in place.iterdir() if entry.name.startswith(AHEAD)}
    return [group for group in found if group.rpartition(PREFIX)[2] not in waiting]


def processes(place: Path) -> list[int]:
    """Processes of runs, by the directory that they were given; the launcher and waiting seats are not of any."""
    return [pid for pid, words in _started_for(place) if LAUNCHER not in words]


def _started_for(place: Path) -> list[tuple[int, bytes]]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
            if os.fsencode(place) + b"/" in words and b"bwrap" in words:
                found.append((int(name), words))
        except OSError:
            continue
    return found


@asynccontextmanager
async def opened_cell(place: Path) -> AsyncIterator[Cell]:
    """A sandbox that has left nothing behind when it is closed."""
    cell = Cell(await open_bubblewrap(place / "runs"), place / "runs", secrets.token_hex(4))
    try:
        yield cell
        await cell.sandbox.settled()
        assert cell.left_behind() == []
    finally:
        cell.sandbox.close()
    assert sorted(os.listdir(cell.place)) == [STAGE, "lock"]
    assert (groups(cell.place), _started_for(cell.place)) == ([], [])


@asynccontextmanager
async def opened_engine_cell(place: Path, path: Path) -> AsyncIterator[Cell]:
    """The same in an engine, whose containers and images are gone at the end as well."""
    cell = Cell(await open_engine(place / "runs", path), place / "runs", secrets.token_hex(4))
    try:
        yield cell
        assert (cell.left_behind(), containers(path)) == ([], [])
    finally:
        cell.sandbox.close()
    assert [*keeper._marked(str(path), mark(cell.place))] == []


def containers(path: Path) -> list[Any]:
    """All containers that an engine has."""
    found: list[Any] = keeper._ask(str(path), "GET", "/containers/json?all=true")
    return found


def shown(source: Path, target: str) -> Mount:
    return Mount(source, Path(target))
