"""Runs in bubblewrap: namespaces, a root of its own, a filter of system calls, and the kernel's limits.

Started by root, each run gets a user of its own that owns nothing else on the machine; started by anybody else, it is
that user without any privilege. One agent uses a place at a time, and its start removes what a killed one left there.
"""

import asyncio
import fcntl
import os
import secrets
import shutil
import time
from pathlib import Path

from tidemill.agent.sandboxes import cgroups, sweeping, view
from tidemill.agent.sandboxes.held import front_words
from tidemill.agent.sandboxes.interface import Sandbox, SandboxFault, Told
from tidemill.agent.sandboxes.life import Life
from tidemill.agent.sandboxes.seccomp import call_filter, this_machine
from tidemill.core.sandboxes import Ability, Command, Ending, Enforced, Limits, Order, Outcome

FIRST_USER, LAST_USER = 1_900_000_000, 2_000_000_000
"""Users in between are in nobody's range: distributions, containers and directories all end below."""
USERS = 1000
LOCK_S = 1.0
ALWAYS = frozenset(Ability) - {Ability.DISK_QUOTA, Ability.UNPRIVILEGED, Ability.CALLS, *cgroups.CONTROLLERS.values()}
"""What namespaces, sized filesystems, resource limits and the agent itself enforce on any machine."""


class Bubblewrap(Sandbox):
    """Use `open_bubblewrap`."""

    def __init__(self, place: Path, program: str, lock: int) -> None:
        self._place, self._program, self._lock = place, program, lock
        self._calls = call_filter(this_machine())
        self._parents = cgroups.usable_parents(f"trial-{secrets.token_hex(4)}")
        self._system = view.system_options()
        self._users = _own_users() if os.geteuid() == 0 else set()
        self._lives: dict[str, Life] = {}
        self.enforced = _enforced(self._parents, self._calls)

    async def run(self, order: Order, told: Told) -> Outcome:
        if order.name in self._lives:
            raise SandboxFault(f"A run named {order.name} is here already: give each attempt a name of its own.")
        life = self._lives[order.name] = Life(order, told, cgroups.Groups(self._parents, order.name))
        user = self._users.pop() if os.geteuid() == 0 else None
        room = self._place / order.name
        try:
            return await self._run(life, room, user)
        finally:
            try:
                await asyncio.shield(asyncio.to_thread(self._remove, life, room))
            finally:
                del self._lives[order.name]
                self._users |= set() if user is None else {user}

    def cancel(self, name: str) -> bool:
        life = self._lives.get(name)
        if life is not None:
            life.stop(Ending.CANCELLED)
        return life is not None

    def close(self) -> None:
        os.close(self._lock)

    def _remove(self, life: Life, room: Path) -> None:
        if not life.introduced:  # it was ended so early that its inner process may not know it yet
            sweeping.end_strays(room, self._program)
        sweeping.remove_room(room)

    async def _run(self, life: Life, room: Path, user: int | None) -> Outcome:
        work = sweeping.make_room(room, user, life.groups.places)
        await life.told.prepared(work)
        front = [*front_words(user, life.order.limits), self._program, "--bind", str(work), view.WORK]
        ended = await life.live(work, front, view.options(life.order, work, self._system), self._calls)
        await life.told.collected(work)
        return ended


async def open_bubblewrap(place: Path) -> Bubblewrap:
    """Take a place for runs, clean it, and try a run. Any user must be able to pass through the place's parents."""
    program = shutil.which("bwrap")
    if program is None:
        raise SandboxFault("bubblewrap is not installed: install the package bubblewrap, then start the agent again.")
    lock = await asyncio.to_thread(_locked, place)
    try:
        await asyncio.to_thread(sweeping.sweep, place, program)
        sandbox = Bubblewrap(place, program, lock)
        await _try_out(sandbox)
    except BaseException:
        os.close(lock)
        raise
    return sandbox


def _own_users() -> set[int]:
    """Users for this agent's runs: drawn, so that two agents on one machine do not share any."""
    first = FIRST_USER + USERS * secrets.randbelow((LAST_USER - FIRST_USER) // USERS)
    return set(range(first, first + USERS))


async def _try_out(sandbox: Bubblewrap) -> None:
    said = bytearray()

    order = Order("trial", Command(("/usr/bin/true",)), Limits(seconds=20))
    ended = await sandbox.run(order, Told(lambda _, chunk: said.extend(chunk)))
    if not ended.succeeded:
        words = said.decode(errors="replace").strip() or ended.ending.value
        raise SandboxFault(f"bubblewrap does not work on this machine. It says: {words}")


def _enforced(parents: cgroups.Parents, calls: bytes | None) -> Enforced:
    able = ALWAYS | parents.abilities | {Ability.UNPRIVILEGED if os.geteuid() == 0 else Ability.PIDS}
    why_not = dict.fromkeys(cgroups.CONTROLLERS.values(), "Let the agent's service have control groups (Delegate=yes).")
    why_not[Ability.UNPRIVILEGED] = "Only an agent started by root can give each task a user of its own."
    return Enforced(able | {Ability.CALLS} if calls else able, why_not)


def _locked(place: Path) -> int:
    """The place's lock. What a killed agent was just starting holds its lock for a moment: until it can be swept."""
    place.mkdir(mode=0o711, exist_ok=True)
    descriptor = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    until = time.monotonic() + LOCK_S
    while not _taken(descriptor):
        if time.monotonic() > until:
            os.close(descriptor)
            raise SandboxFault(f"Another agent runs tasks in {place}: stop it first.")
        time.sleep(0.02)
    return descriptor


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
