"""Seats: where runs start from, made ready ahead of time so that a run does not wait for the machine.

A seat is a process of the launcher that is already in its control groups, with a work directory and a user of its own.
It serves one run, then it is removed with its groups and its directory. What belongs to a seat is written down in its
directory first, so that a sweep finds it after a kill -9 of the agent.
"""

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tidemill.agent.sandboxes import run_directories
from tidemill.agent.sandboxes.bubblewrap import launcher
from tidemill.agent.sandboxes.cgroups import ParentGroups, RunGroups
from tidemill.agent.sandboxes.interface import SandboxFault

READY = 3
"""How many seats wait for a run."""
REMOVING_MAX = 16
"""How many ended runs may wait to be removed. With more, new runs wait."""
START_S = 20.0
GONE_S = 5.0
KILLED = int(signal.SIGKILL)


@dataclass
class Seat:
    """`exited` is done once the seat's process, whatever it became, has ended; `waited` then tells how it ended."""

    room: Path
    user: int | None
    groups: RunGroups
    agent_end: socket.socket
    exited: asyncio.Future[None]
    waited: asyncio.Future[int]
    pid: int = 0
    descriptor: int = -1
    used: bool = False

    @property
    def work(self) -> Path:
        return self.room / "work"

    def launch(
        self, words: Sequence[str], limits: dict[str, int], mounts: Mapping[str, str], descriptors: list[int]
    ) -> None:
        """Tell the seat what to become. Only the first command counts."""
        self.used = True
        stage = str(self.room.parent / run_directories.STAGE)
        command = {"words": words, "limits": limits, "mounts": mounts, "stage": stage, "user": self.user}
        command_file = os.memfd_create("order")
        try:
            os.write(command_file, json.dumps(command).encode())
            os.lseek(command_file, 0, os.SEEK_SET)
            socket.send_fds(self.agent_end, [b"begin"], [command_file, *descriptors])
        finally:
            os.close(command_file)

    def kill(self) -> None:
        if self.descriptor >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def usable(self) -> bool:
        """Whether the seat still waits, and its launcher still runs to tell how it will end."""
        ended = select.poll()
        ended.register(self.descriptor, select.POLLIN)
        return not ended.poll(0) and not self.waited.done()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Notice its end through its descriptor, which is quicker than the launcher's message."""

        def ended() -> None:
            loop.remove_reader(self.descriptor)
            self.exited.set_result(None)

        loop.add_reader(self.descriptor, ended)

    def leave(self, program: str) -> None:
        """End the seat's processes, and remove what belongs to it. This is slow: call it in a thread."""
        self.agent_end.close()
        if self.descriptor >= 0:
            self.kill()
            ended = select.poll()
            ended.register(self.descriptor, select.POLLIN)
            ended.poll(GONE_S * 1000)
            os.close(self.descriptor)
        if self.used and not self.groups.paths:
            run_directories.end_strays(self.room, program)
        run_directories.remove_room(self.room)


def mark(directory: Path) -> str:
    """The name of a directory's seats' control groups, before their number. One agent uses a directory at a time."""
    return sha256(os.fsencode(directory)).hexdigest()[:12]


class Seats:
    """The launcher and the seats that wait for a run. `shown` are directories that runs see without their paths."""

    def __init__(
        self, directory: Path, program: str, parents: ParentGroups, users: set[int], shown: Sequence[str] = ()
    ) -> None:
        self._shown = [str(directory / run_directories.STAGE), *shown] if shown else []
        self._directory, self._program, self._parents, self._users = directory, program, parents, users
        self._mark, self._count = mark(directory), 0
        self._ready: list[Seat] = []
        self._by_pid: dict[int, Seat] = {}
        self._removing: dict[str, asyncio.Task[None]] = {}
        self._preparing: set[asyncio.Task[None]] = set()
        self._launcher: _LauncherProcess | None = None
        self._closed = False

    async def take(self, name: str) -> Seat:
        """A seat whose directory has this name. Waits while an earlier run of that name, or too many, are removed."""
        while name in self._removing or len(self._removing) > REMOVING_MAX:
            await asyncio.wait(self._removing.values(), return_when=asyncio.FIRST_COMPLETED)
        while self._ready and not self._ready[-1].usable():
            await self.remove(self._ready.pop())
        seat = self._ready.pop() if self._ready else await self._new_ready_seat()
        try:
            seat.room = seat.room.rename(self._directory / name)
        except OSError as fault:
            await self.remove(seat)
            raise SandboxFault(f"A run named {name} cannot begin here: {fault}.") from fault
        return seat

    def refill(self) -> None:
        """Make seats ready for later runs, in the background."""
        while not self._closed and len(self._ready) + len(self._preparing) < READY:
            task = asyncio.create_task(self._prepare_ahead())
            self._preparing.add(task)
            task.add_done_callback(self._preparing.discard)

    def remove_later(self, seat: Seat) -> None:
        """Begin to remove a seat. A new run with the same name waits for it."""
        task = asyncio.create_task(self.remove(seat))
        self._removing[seat.room.name] = task
        task.add_done_callback(lambda _: self._removing.pop(seat.room.name, None))

    async def settled(self) -> None:
        while self._removing:
            await asyncio.wait(self._removing.values())

    async def remove(self, seat: Seat) -> None:
        """Remove a seat with all that it has, even when the caller is cancelled meanwhile."""
        if seat.descriptor >= 0:
            asyncio.get_running_loop().remove_reader(seat.descriptor)
        removing = asyncio.get_running_loop().run_in_executor(None, seat.leave, self._program)
        try:
            await asyncio.shield(removing)
        finally:
            self._by_pid.pop(seat.pid, None)
            self._users |= set() if seat.user is None else {seat.user}

    def close(self) -> None:
        """End the launcher with all that it has started, and remove the seats that were not used."""
        self._closed = True
        for task in self._preparing:
            task.cancel()
        if self._launcher is not None:
            self._launcher.end()
        for seat in self._ready:
            if not seat.exited.get_loop().is_closed():
                seat.exited.get_loop().remove_reader(seat.descriptor)
            seat.leave(self._program)
        self._ready.clear()
        run_directories.sweep(self._directory, self._program)

    async def _prepare_ahead(self) -> None:
        with suppress(SandboxFault):  # the next run finds no seat ready, tries again, and raises the fault
            self._ready.insert(0, await self._new_ready_seat())

    async def _new_ready_seat(self) -> Seat:
        loop = asyncio.get_running_loop()
        seat, seat_end = self._new_seat(loop)
        try:
            run_directories.make_room(seat.room, seat.user, seat.groups.paths)
            seat.groups.make()
            socket.send_fds(
                self._launcher_socket(loop), [json.dumps([*map(str, seat.groups.paths)]).encode()], [seat_end]
            )
            os.close(seat_end)
            seat_end = -1
            async with asyncio.timeout(START_S):
                await _wait_until_ready(seat, loop)
        except BaseException as fault:
            if seat_end >= 0:
                os.close(seat_end)
            await self.remove(seat)
            if isinstance(fault, OSError):
                raise SandboxFault(f"A run could not be started on this machine: {fault}.") from fault
            raise
        self._by_pid[seat.pid] = seat
        seat.watch(loop)
        return seat

    def _new_seat(self, loop: asyncio.AbstractEventLoop) -> tuple[Seat, int]:
        agent_end, seat_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._count += 1
        name = f"{self._mark}-{self._count}"
        user = self._users.pop() if os.geteuid() == 0 else None
        groups = RunGroups(self._parents, name)
        room = self._directory / f"{run_directories.AHEAD}{name}"
        seat = Seat(room, user, groups, agent_end, loop.create_future(), loop.create_future())
        return seat, seat_end.detach()

    def _launcher_socket(self, loop: asyncio.AbstractEventLoop) -> socket.socket:
        """The launcher's socket. Starts a launcher if there is none, or somebody ended it."""
        if self._launcher is None:
            words = [self._program, f"{self._directory}/", *self._shown]
            self._launcher = _LauncherProcess(loop, words, self._ended, self._lost)
        return self._launcher.control

    def _ended(self, pid: int, status: int) -> None:
        if pid in self._by_pid:
            _settle(self._by_pid[pid].waited, status)

    def _lost(self) -> None:
        """The launcher has ended: the kernel ends what it started, and nobody tells how."""
        self._launcher = None
        for seat in self._by_pid.values():
            _settle(seat.waited, KILLED)


class _LauncherProcess:
    """The launcher's process, and its messages until it ends."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        words: Sequence[str],
        ended: Callable[[int, int], None],
        lost: Callable[[], None],
    ) -> None:
        self._loop, self._ended, self._lost = loop, ended, lost
        self.control, launcher_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line = [sys.executable, "-I", "-S", launcher.__file__, *words]
        with launcher_end:
            self._process = subprocess.Popen(
                line, stdin=launcher_end.fileno(), stdout=subprocess.DEVNULL, env={}, cwd="/"
            )
        self.control.setblocking(False)
        loop.add_reader(self.control.fileno(), self._hear)

    def end(self) -> None:
        if not self._loop.is_closed():
            self._loop.remove_reader(self.control.fileno())
        self.control.close()
        self._process.kill()
        self._process.wait()
        self._lost()

    def _hear(self) -> None:
        with suppress(BlockingIOError):
            while message := self._receive():
                self._ended(*json.loads(message))
            self.end()

    def _receive(self) -> bytes:
        try:
            return self.control.recv(launcher.MESSAGE_BYTES)
        except ConnectionResetError:
            return b""


async def _wait_until_ready(seat: Seat, loop: asyncio.AbstractEventLoop) -> None:
    """Wait until the seat says that it is ready, and learn its process."""
    ready: asyncio.Future[None] = loop.create_future()

    def on_message() -> None:
        loop.remove_reader(seat.agent_end.fileno())
        if not ready.done():  # the caller may just have been cancelled
            ready.set_result(None)

    loop.add_reader(seat.agent_end.fileno(), on_message)
    try:
        await ready
    finally:
        loop.remove_reader(seat.agent_end.fileno())
    message, descriptors, _, _ = socket.recv_fds(seat.agent_end, launcher.MESSAGE_BYTES, 1)
    if not descriptors:
        raise OSError(message.decode(errors="replace") or "its process ended")
    seat.pid, seat.descriptor = int(message), descriptors[0]
    os.set_inheritable(seat.descriptor, False)


def _settle(waited: asyncio.Future[int], status: int) -> None:
    if not waited.done() and not waited.get_loop().is_closed():
        waited.set_result(status)
