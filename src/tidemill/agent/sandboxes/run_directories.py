"""A run's directory, made so that whatever is begun for a run can be found again, and removed with all of it.

The names of its control groups are written down before they are made. After a kill -9 of the agent the kernel ends
the run's processes; one that was just being started, before it was bound to the agent, waits at its gate and is found
by its command line. Where there are control groups, whatever is in them is ended as well.
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
"""Directories that wait for a run begin so; no run's name does."""
STAGE = ".stage"
"""Where a run's inputs are mounted, and a bubblewrap of ours, each run's in a mount namespace of its own: outside it is
empty for ever."""
PATIENCE_S = 5.0
QUIET_LOOKS = 3
STAGE_WORDS = 24
"""Bubblewrap's name and the directory are among the first words, before any of the task's."""


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
    """Remove a run's control groups, with whatever is in them, then its directory."""
    with suppress(FileNotFoundError):
        for line in (room / GROUPS_FILE).read_text().splitlines():
            _remove_group_patiently(Path(line))
    remove_tree(room)


def sweep(place: Path, program: str) -> int:
    """End and remove every run in a place. The caller holds the place's lock, so none of them is anybody's."""
    rooms = [room for room in place.iterdir() if room.is_dir() and not room.is_symlink() and room.name != STAGE]
    end_strays(place, program)
    for room in rooms:
        remove_room(room)
    return len(rooms)


def end_strays(place: Path, program: str) -> None:
    """End every process that was started for a directory in this place, until several looks in a row find none."""
    until, quiet = time.monotonic() + PATIENCE_S, 0
    while quiet < QUIET_LOOKS and time.monotonic() < until:
        strays, changing = _started_for(place, os.fsencode(program))
        for pid in strays:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if strays or changing else quiet + 1
        time.sleep(0.005)


def _remove_group_patiently(group: Path) -> None:
    """A name that is not of our making is left alone."""
    until = time.monotonic() + PATIENCE_S
    while group.name.startswith(PREFIX) and not remove_group(group) and time.monotonic() < until:
        time.sleep(0.005)


def _started_for(place: Path, program: bytes) -> tuple[list[int], bool]:
    """Processes, bubblewrap or about to be, that were given a directory in this place.

    An earlier agent may have used another bubblewrap, so the place of the program does not matter.
    Also whether one is just becoming another program, when it has no words: it may be ours. Nor have the kernel's own
    and the dead any, but those are no program either.
    """
    found, changing = [], False
    below = os.fsencode(place) + b"/"
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")[:STAGE_WORDS]
            is_program = any(word == program or word.endswith(b"/" + program) for word in words)
            if is_program and any(word.startswith(below) for word in words):
                found.append(int(name))
            elif words == [b""]:
                changing |= bool(os.readlink(f"/proc/{name}/exe"))
    return found, changing
