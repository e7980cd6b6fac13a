"""A run's directory, which lists all that is started for the run, so that it can be found again and removed.

The names of its control groups are written down before they are made. After a kill -9 of the agent the kernel ends
the run's processes. One that was being started, and was not bound to the agent yet, waits at its gate and is found by
its command line. All processes in the run's control groups are ended as well.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tidemill.agent.sandboxes.cgroups import PREFIX, remove_group
from tidemill.agent.sandboxes.outputs import remove_tree

GROUPS_FILE = "groups"
AHEAD = ".ahead-"
"""The prefix of directories that wait for a run; no run's name has it."""
STAGE = ".stage"
"""Where a run's inputs, and the bundled bubblewrap, are mounted. Each run mounts in its own mount namespace, so outside
the directory stays empty."""
PATIENCE_S = 5.0
QUIET_LOOKS = 3
STAGE_WORDS = 24
"""Bubblewrap's name and the directory are among these first words of a command line, before any of the task's."""


def make_room(room: Path, user: int | None, groups: list[Path]) -> Path:
    """The work directory of a new run. Only its own user can pass through to it."""
    room.mkdir(mode=0o700)
    (room / GROUPS_FILE).write_text("\n".join(map(str, groups)))
    work = room / "work"
    work.mkdir(mode=0o700)
    if user is not None:
        os.chown(work, user, user)
        os.chown(room, 0, user)
        room.chmod(0o710)
    return work


def remove_room(room: Path) -> None:
    """Remove a run's control groups, with the processes in them, then its directory."""
    with suppress(FileNotFoundError):
        for line in (room / GROUPS_FILE).read_text().splitlines():
            _remove_group_patiently(Path(line))
    remove_tree(room)


def sweep(directory: Path, program: str) -> int:
    """End and remove every run in a directory. The caller holds the directory's lock, so nobody uses any of them."""
    rooms = [room for room in directory.iterdir() if room.is_dir() and not room.is_symlink() and room.name != STAGE]
    end_strays(directory, program)
    for room in rooms:
        remove_room(room)
    return len(rooms)


def end_strays(directory: Path, program: str) -> None:
    """End every process that was started for a run below this directory, until several looks in a row find none."""
    until, quiet = time.monotonic() + PATIENCE_S, 0
    while quiet < QUIET_LOOKS and time.monotonic() < until:
        strays, changing = _started_for(directory, os.fsencode(program))
        for pid in strays:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if strays or changing else quiet + 1
        time.sleep(0.005)


def _remove_group_patiently(group: Path) -> None:
    """Remove a group, and wait for its dying processes. A group without our prefix is left alone."""
    until = time.monotonic() + PATIENCE_S
    while group.name.startswith(PREFIX) and not remove_group(group) and time.monotonic() < until:
        time.sleep(0.005)


def _started_for(directory: Path, program: bytes) -> tuple[list[int], bool]:
    """Processes that are bubblewrap, or about to be, and were given a path below this directory.

    An earlier agent may have used another bubblewrap, so the program's path does not matter. Also whether some process
    is just becoming another program: then it has no command line, and may be ours. The kernel's own processes and dead
    ones have none either, but they have no program.
    """
    pids, changing = [], False
    below = os.fsencode(directory) + b"/"
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")[:STAGE_WORDS]
            is_program = any(word == program or word.endswith(b"/" + program) for word in words)
            if is_program and any(word.startswith(below) for word in words):
                pids.append(int(name))
            elif words == [b""]:
                changing |= bool(os.readlink(f"/proc/{name}/exe"))
    return pids, changing
