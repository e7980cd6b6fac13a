"""What the server printed before it failed, as the sentence of a fault.

PostgreSQL writes to the start log until its log collector runs, and to the day's log afterwards. On a full disk it can
write neither, so a failure with almost no space left counts as a full disk even without a message.
"""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemill.core.faults import DatabaseFault, DiskFull
from tidemill.store.embedded.layout import ServerLayout

LINES_SHOWN = 6
READ_MAX = 64 * 1024
LOG_KEPT_S = 6 * 24 * 3600
ROOM_MIN = 16 * 1024 * 1024  # the server allocates its log in pieces of this size
FULL = (errno.ENOSPC, errno.EDQUOT)
FULL_SENTENCES = tuple(os.strerror(number) for number in FULL)


def failure(layout: ServerLayout, failed: str, output: str) -> DatabaseFault:
    """The fault for a program that failed: a full disk if that was the cause, else its last lines."""
    if any(sentence in output for sentence in FULL_SENTENCES) or _room(layout.top) < ROOM_MIN:
        return disk_full(layout)
    lines = [line.strip() for line in output.splitlines() if line.strip()][-LINES_SHOWN:]
    if not lines:
        return DatabaseFault(f"{failed} and said nothing. Its logs are in {layout.log}.")
    return DatabaseFault("\n  ".join([f"{failed}. Its last words:", *lines]))


def disk_full(layout: ServerLayout) -> DiskFull:
    """The fault for a full disk: where, and how much is left."""
    room_mib = _room(layout.top) / 1024**2
    return DiskFull(f"The disk that holds {layout.top} is full ({room_mib:.1f} MiB free): make space, then try again.")


@contextmanager
def file_faults(layout: ServerLayout) -> Iterator[None]:
    """Errors of our own work on files become faults."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk_full(layout) from None
        if isinstance(error, PermissionError):
            raise DatabaseFault(
                f"{error.filename or layout.top} belongs to another user: run this as the user who made the pool, or "
                "choose another TIDEMILL_HOME."
            ) from error
        raise DatabaseFault(f"The database's files in {layout.top} cannot be used: {error}.") from error


def server_words(layout: ServerLayout, started_at: float) -> str:
    """What a server that was started at that time has printed."""
    words = _tail(layout.start_log)
    logs = [path for path in layout.log.glob("*.log") if path.stat().st_mtime >= started_at]
    newest = max(logs, key=lambda path: path.stat().st_mtime, default=None)
    return words if newest is None else words + _tail(newest)


def drop_old_logs(layout: ServerLayout) -> None:
    """Delete old logs. The collector empties a weekday's log only if it runs at midnight; a server started weekly may
    not."""
    for path in layout.log.glob("*.log"):
        if time.time() - path.stat().st_mtime > LOG_KEPT_S:
            path.unlink()


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - READ_MAX))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def _room(path: Path) -> int:
    """Free bytes on the disk of a path, which need not exist yet."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
