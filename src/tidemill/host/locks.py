"""Locks on files, which a process holds for as long as it lives.

The kernel lets go of a lock however its holder dies, so a lock is never stale. The pid in the file is for display. The
file is never removed, and no child inherits it.
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TRIES = 10  # `holder_pid` takes a shared lock for a moment
_POLL_S = 0.05


@dataclass(frozen=True)
class Holder:
    """The process that has a lock we wanted, if the file names it."""

    pid: int | None

    def __str__(self) -> str:
        return f"process {self.pid}" if self.pid else "another process"


class HeldLock:
    """A lock that is ours. `release` gives it up."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        _show(descriptor, str(os.getpid()))

    def release(self) -> None:
        """Give the lock up. Erase our pid first, so that it is never shown for the next holder."""
        _show(self._descriptor, "")
        os.close(self._descriptor)


async def take_lock(file: Path) -> HeldLock | Holder:
    """Take the lock, or learn who has it. OSError if the file cannot be opened or made."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    for _ in range(_TRIES):
        if lock_now(descriptor):
            return HeldLock(descriptor)
        await asyncio.sleep(_POLL_S)
    holder = Holder(_pid_in(descriptor))
    os.close(descriptor)
    return holder


def holder_pid(file: Path) -> int | None:
    """The pid of the live process that has the lock, if one has and we may see it."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        return None if lock_now(descriptor, fcntl.LOCK_SH) else _pid_in(descriptor)
    finally:
        os.close(descriptor)


def lock_now(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Lock an open file until it is closed; False if somebody else has it."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def _show(descriptor: int, text: str) -> None:
    """Overwrite in place, always with the same length. A full disk must not keep a process from running or stopping."""
    with suppress(OSError):
        os.pwrite(descriptor, f"{text:<19}\n".encode(), 0)


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
