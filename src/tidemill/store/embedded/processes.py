"""Which processes use a data directory, and how they are ended.

A process counts as the server's only if it is alive (a zombie is not), has the name of a PostgreSQL program, runs as
the directory's owner and works in that very directory. So a stale `postmaster.pid`, whose number may now belong to any
process, never leads to a signal to a stranger. Only the owner of the home ends processes or removes what they left
behind.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tidemill.core.faults import DatabaseFault
from tidemill.store.embedded.layout import SOCKET_NAME, ServerLayout, drop_socket_directory

PROGRAMS = ("postgres", "initdb")
READY = "ready"
POLL_S = 0.03
REPORT_EVERY_S = 3.0

Steps = Sequence[tuple[signal.Signals | None, float]]
FAST: Steps = ((signal.SIGINT, 120.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
IMMEDIATE: Steps = FAST[1:]
KILL: Steps = FAST[2:]
LEFTOVERS: Steps = ((None, 0.5), (signal.SIGQUIT, 1.0), (signal.SIGKILL, 10.0))


@dataclass(frozen=True)
class Postmaster:
    """A live server and the content of its pid file. `status` is empty until it has one."""

    process: psutil.Process
    socket_directory: Path | None
    status: str

    @property
    def has_socket(self) -> bool:
        """Whether the socket exists: a server whose socket was deleted lives, but nobody can reach it."""
        return self.socket_directory is not None and (self.socket_directory / SOCKET_NAME).is_socket()

    def runs_with(self, argument: str) -> bool:
        """Whether the server was started with this argument."""
        try:
            return argument in self.process.cmdline()
        except psutil.Error:
            return False


def running_postmaster(layout: ServerLayout) -> Postmaster | None:
    """The live server of this home, if its pid file leads to one."""
    try:
        lines = (layout.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
        process = psutil.Process(int(lines[0]))
    except (FileNotFoundError, NotADirectoryError, IndexError, ValueError, psutil.Error, OverflowError):
        return None
    if not _belongs_to(process, layout.data, layout.cluster_name):
        return None
    socket_directory = Path(lines[4]) if len(lines) > 4 and lines[4] else None
    return Postmaster(process, socket_directory, lines[7].strip() if len(lines) > 7 else "")


def is_alive(process: psutil.Process) -> bool:
    """Whether the process still runs: a zombie, or a stranger with its number, does not count."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def shut_down(layout: ServerLayout, steps: Steps = FAST, report: Callable[[str], None] = lambda _: None) -> bool:
    """End the server and all its processes. Returns whether there was anything to end."""
    postmaster = running_postmaster(layout)
    if postmaster:
        await _end([postmaster.process], steps, report)
    cleared = await clear_leftovers(layout.data, layout.cluster_name)
    if postmaster and postmaster.socket_directory:
        drop_socket_directory(layout, postmaster.socket_directory)
    return postmaster is not None or cleared


async def clear_leftovers(directory: Path, cluster_name: str, steps: Steps = LEFTOVERS) -> bool:
    """Wait for processes that outlived their server, and kill those that linger: they still write to the data."""
    leftovers = [process for process in psutil.process_iter() if _belongs_to(process, directory, cluster_name)]
    await _end(leftovers, steps)
    return bool(leftovers)


def remove_stale_files(layout: ServerLayout, socket_directory: Path) -> None:
    """Remove the lock files of a dead server, which would stop a new one if their pid is in use again.

    Only for the owner of the home, and only after `shut_down` has shown that no process of this data is left.
    """
    for stale in (layout.data / "postmaster.pid", socket_directory / SOCKET_NAME):
        stale.unlink(missing_ok=True)
    (socket_directory / f"{SOCKET_NAME}.lock").unlink(missing_ok=True)


async def _end(
    processes: Sequence[psutil.Process], steps: Steps, report: Callable[[str], None] = lambda _: None
) -> None:
    alive = [process for process in processes if is_alive(process)]
    for signal_, patience_s in steps:
        if signal_ is not None:
            for process in alive:
                _send(process, signal_)
        alive = await _outlive(alive, patience_s, report)
    if alive:
        pids = ", ".join(str(process.pid) for process in alive)
        raise DatabaseFault(f"Processes of the database server cannot be ended: {pids}. Is its disk hanging?")


async def _outlive(
    processes: Sequence[psutil.Process], patience_s: float, report: Callable[[str], None]
) -> list[psutil.Process]:
    """The processes still alive when patience ends."""
    loop = asyncio.get_running_loop()
    began = reported = loop.time()
    alive = [process for process in processes if is_alive(process)]
    while alive and loop.time() - began < patience_s:
        if loop.time() - reported >= REPORT_EVERY_S:
            reported = loop.time()
            report(f"The database server is still stopping after {loop.time() - began:.0f} s.")
        await asyncio.sleep(POLL_S)
        alive = [process for process in alive if is_alive(process)]
    return alive


def _send(process: psutil.Process, signal_: signal.Signals) -> None:
    try:
        process.send_signal(signal_)
    except psutil.NoSuchProcess:
        return


def _belongs_to(process: psutil.Process, directory: Path, cluster_name: str) -> bool:
    try:
        if process.name() not in PROGRAMS or not is_alive(process):
            return False
        if process.uids().real != directory.stat().st_uid:
            return False
        return _works_in(process, directory, cluster_name)
    except (psutil.Error, FileNotFoundError):
        return False


def _works_in(process: psutil.Process, directory: Path, cluster_name: str) -> bool:
    """Compare the directories themselves: a container beside us may use the same path for another directory."""
    link = f"/proc/{process.pid}/cwd"
    try:
        return os.path.samefile(link if os.path.lexists(link) else process.cwd(), directory)
    except (PermissionError, psutil.AccessDenied):
        # Root in a container may not look at another user's process, but its command line is open to all.
        words = process.cmdline()
        return str(directory) in words or any(f": {cluster_name}: " in word for word in words)
