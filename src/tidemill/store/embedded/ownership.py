"""Who owns the server of a home: the process that holds the lock file, for as long as it lives.

The kernel lets go of the lock however the owner dies, so ownership is never stale. The pid in the file is for display.
The file is never removed, and no child inherits it.
"""

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from tidemill.core.faults import AlreadyRunning
from tidemill.store.embedded.layout import Layout

PATIENCE_S = 0.5  # others look whether the lock is held by taking a share of it for a moment
POLL_S = 0.05


class Ownership:
    """A held lock. `release` gives it up."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        try:
            _show(descriptor, str(os.getpid()))
        except BaseException:
            os.close(descriptor)
            raise

    def release(self) -> None:
        """Let another process own the server. The pid goes first, so that it is never shown for the next owner."""
        try:
            _show(self._descriptor, "")
        finally:
            os.close(self._descriptor)


async def take_ownership(layout: Layout) -> Ownership:
    """Own the home, or refuse with the pid of the process that does."""
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + PATIENCE_S
    descriptor = os.open(layout.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    while not _lock(descriptor, fcntl.LOCK_EX):
        if loop.time() > give_up_at:
            pid = _pid_in(descriptor)
            os.close(descriptor)
            raise AlreadyRunning(_refusal(layout.home, pid))
        await asyncio.sleep(POLL_S)
    return Ownership(descriptor)


def owner_pid(home: Path) -> int | None:
    """The pid of the live process that owns the home's server, if there is one and we may see it."""
    try:
        descriptor = os.open(Layout.of(home).lock, os.O_RDONLY | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
    try:
        return None if _lock(descriptor, fcntl.LOCK_SH) else _pid_in(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def _show(descriptor: int, text: str) -> None:
    """Always the same length, in place: on a full disk, which must not keep a server from being stopped, this works."""
    os.pwrite(descriptor, f"{text:<19}\n".encode(), 0)


def _pid_in(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _refusal(home: Path, pid: int | None) -> str:
    who = f"process {pid}" if pid else "another process"
    return f"The pool in {home} is already running ({who}): use it, or stop it with `tidemill down`."
