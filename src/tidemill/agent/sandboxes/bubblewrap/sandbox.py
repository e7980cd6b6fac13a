"""Runs in bubblewrap: namespaces, a root of its own, a filter of system calls, and the kernel's limits.

If root started the agent, each run gets a user of its own that owns nothing else on the machine; otherwise it has the
agent's user, without any privilege. One agent uses a directory at a time, and first removes what a killed one left.
"""

import asyncio
import fcntl
import os
import secrets
import time
from pathlib import Path

from tidemill.agent.sandboxes import cgroups, run_directories
from tidemill.agent.sandboxes.bubblewrap import gate, view
from tidemill.agent.sandboxes.bubblewrap.processes import BubblewrapProcesses
from tidemill.agent.sandboxes.bubblewrap.program import (
    MISSING,
    PROGRAM,
    Program,
    bubblewrap_program,
    reached,
    why_useless,
)
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.agent.sandboxes.bubblewrap.seats import Seat, Seats
from tidemill.agent.sandboxes.bubblewrap.seccomp import call_filter, this_machine
from tidemill.agent.sandboxes.gpu_memory import GpuMemory, watched_gpu_memory
from tidemill.agent.sandboxes.interface import RunListener, Sandbox, SandboxFault
from tidemill.agent.sandboxes.run_life import RunLife
from tidemill.core.jobs.sandboxes import (
    Ability,
    Command,
    Enforcement,
    RunEnding,
    RunLimits,
    RunOutcome,
    RunSpecification,
)

FIRST_USER, LAST_USER = 1_900_000_000, 2_000_000_000
"""Nobody else uses this range: the ranges of distributions, containers and directory services end below it."""
USERS = 1000
LOCK_S = 1.0
BY_MACHINE = frozenset(
    {Ability.DISK_QUOTA, Ability.UNPRIVILEGED, Ability.CALLS, Ability.GPU_MEMORY, Ability.IMAGE}
    | set(cgroups.CONTROLLERS.values())
)
ALWAYS = frozenset(Ability) - BY_MACHINE
"""What namespaces, sized filesystems, resource limits and the agent itself enforce on any machine."""


class BubblewrapSandbox(Sandbox):
    """Use `open_bubblewrap`."""

    def __init__(self, directory: Path, program: Program, lock: int) -> None:
        self._directory, self._lock = directory, lock
        self.description = str(program)
        self._calls = call_filter(this_machine())
        parents = cgroups.usable_parents(f"trial-{secrets.token_hex(4)}")
        cgroups.remove_abandoned(parents, time.time())
        self._system = view.system_options()
        self._stage = directory / run_directories.STAGE if os.geteuid() == 0 else None
        self._program = reached(program, self._stage)
        is_root = os.geteuid() == 0
        shown = [str(mount.source) for mount in python_runtime().mounts] if is_root else []
        self._seats = Seats(directory, PROGRAM, parents, own_users() if is_root else set(), shown)
        self._lives: dict[str, RunLife] = {}
        self._gpu_memory = watched_gpu_memory()
        self.enforced = _enforced(parents, self._calls, self._gpu_memory)

    async def run(self, specification: RunSpecification, listener: RunListener) -> RunOutcome:
        if specification.name in self._lives:
            raise SandboxFault(
                f"A run named {specification.name} is here already: give each attempt a name of its own."
            )
        if specification.image is not None or specification.grants.gpus:
            raise SandboxFault("bubblewrap runs no images and hands out no GPUs by name: only an engine does.")
        life = self._lives[specification.name] = RunLife(specification, listener, self._gpu_memory)
        try:
            return await self._run(life)
        finally:
            del self._lives[specification.name]
            self._seats.refill()

    def cancel(self, name: str) -> bool:
        life = self._lives.get(name)
        if life is not None:
            life.stop(RunEnding.CANCELLED)
        return life is not None

    async def settled(self) -> None:
        await self._seats.settled()

    def close(self) -> None:
        self._seats.close()
        os.close(self._lock)

    async def _run(self, life: RunLife) -> RunOutcome:
        seat = await self._seats.take(life.specification.name)
        try:
            await life.listener.prepared(seat.work)
            outcome = await self._run_in_seat(life, seat)
            await life.listener.collected(seat.work)
            return outcome
        finally:
            self._seats.remove_later(seat)

    async def _run_in_seat(self, life: RunLife, seat: Seat) -> RunOutcome:
        options = view.options(life.specification, seat.work, self._system, self._stage)
        try:
            seat.groups.limit(life.specification.limits)
            running = BubblewrapProcesses(
                life, gate.start(life.specification, seat, self._program, options, self._calls)
            )
        except OSError as fault:
            raise SandboxFault(f"A run could not be started on this machine: {fault}.") from fault
        try:
            await running.let_go()
            return await life.until_end(seat.work, running)
        except FileNotFoundError as fault:  # only closing the sandbox removes a run's work directory
            raise SandboxFault("The sandbox was closed while this run was under way.") from fault
        finally:
            running.close()


async def open_bubblewrap(directory: Path) -> BubblewrapSandbox:
    """Lock a directory for runs, clean it, and try a run. Any user must be able to pass through its parents."""
    program = await asyncio.to_thread(bubblewrap_program)
    if program is None:
        raise SandboxFault(MISSING)
    lock = await asyncio.to_thread(directory_lock, directory)
    try:
        await asyncio.to_thread(run_directories.sweep, directory, PROGRAM)
        sandbox = BubblewrapSandbox(directory, program, lock)
        await _try_out(sandbox)
    except BaseException:
        os.close(lock)
        raise
    return sandbox


def own_users() -> set[int]:
    """Users for this agent's runs, drawn at random, so that two agents on one machine do not share any."""
    first = FIRST_USER + USERS * secrets.randbelow((LAST_USER - FIRST_USER) // USERS)
    return set(range(first, first + USERS))


async def _try_out(sandbox: BubblewrapSandbox) -> None:
    output = bytearray()

    specification = RunSpecification("trial", Command(("/usr/bin/true",)), RunLimits(seconds=20))
    outcome = await sandbox.run(specification, RunListener(lambda _, chunk: output.extend(chunk)))
    await sandbox.settled()
    if not outcome.succeeded:
        words = output.decode(errors="replace").strip() or outcome.ending.value
        raise SandboxFault(why_useless(words))


def _enforced(parents: cgroups.ParentGroups, calls: bytes | None, gpu_memory: GpuMemory | None) -> Enforcement:
    enforced = {
        *parents.abilities,
        Ability.UNPRIVILEGED if os.geteuid() == 0 else Ability.PIDS,
        *([Ability.CALLS] if calls else []),
        *([Ability.GPU_MEMORY] if gpu_memory else []),
    }
    why_not = dict.fromkeys(cgroups.CONTROLLERS.values(), "Let the agent's service have control groups (Delegate=yes).")
    why_not[Ability.UNPRIVILEGED] = "Only an agent started by root can give each task a user of its own."
    why_not[Ability.GPU_MEMORY] = "There is no NVIDIA driver that tells it."
    why_not[Ability.IMAGE] = "Images need an engine: install Podman or Docker."
    return Enforcement(ALWAYS | enforced, why_not)


def directory_lock(directory: Path, patience_s: float = LOCK_S) -> int:
    """Lock the directory. A process that a killed agent was just starting keeps the lock for a moment, so wait."""
    directory.mkdir(mode=0o711, exist_ok=True)
    (directory / run_directories.STAGE).mkdir(mode=0o711, exist_ok=True)
    descriptor = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + patience_s
    while not _lock_now(descriptor):
        if time.monotonic() > until:
            os.close(descriptor)
            raise SandboxFault(f"Another agent runs tasks in {directory}: stop it first.")
        time.sleep(0.02)
    return descriptor


def _lock_now(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
