"""Directories that only we can use, entered step by step: no symlink is followed, nobody else may look or write.

Errors of the disk become faults here, with a sentence for the operator.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidemill.core.faults import ArtefactFault, DiskFull

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FOREIGN = {errno.ELOOP, errno.ENOTDIR}
_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def directory(root: Path, *names: str, make: bool = False) -> Iterator[int]:
    """Open a directory below the root. FileNotFoundError if it does not exist and `make` is false."""
    here = enter(root, *names, make=make)
    try:
        yield here
    finally:
        os.close(here)


def enter(root: Path, *names: str, make: bool = False) -> int:
    """The descriptor of a directory below the root, for the caller to close."""
    if make:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in names:
            below = _step(here, name, make=make)
            os.close(here)
            here = below
            _expect_ours(here, root, name)
    except BaseException:
        os.close(here)
        raise
    return here


@contextmanager
def locked(here: int) -> Iterator[None]:
    """Lock out all other processes, for moments only. The lock of a killed process is free."""
    fcntl.flock(here, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(here, fcntl.LOCK_UN)


@contextmanager
def faults(root: Path) -> Iterator[None]:
    """Turn errors of the disk into faults."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFull(f"The disk that holds {root} is full: make space there.") from error
        if error.errno in _FOREIGN:
            raise ArtefactFault(f"Something below {root} was put there by others: remove it.") from error
        raise ArtefactFault(
            f"{root} cannot be used ({error.strerror}): look at the disk and its permissions."
        ) from error


def expect_room(root: Path, wanted_bytes: int, keep_free_bytes: int) -> None:
    """Raise DiskFull if this many more bytes would leave too little space."""
    disk = os.statvfs(root)
    if disk.f_bavail * disk.f_frsize - wanted_bytes < keep_free_bytes:
        raise DiskFull(f"The disk that holds {root} has too little space left: make space there.")


def _step(here: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _STEP, dir_fd=here)
    except FileNotFoundError:
        if not make:
            raise
    try:
        os.mkdir(name, 0o700, dir_fd=here)
        os.fsync(here)
    except FileExistsError:
        pass  # another process was quicker
    return os.open(name, _STEP, dir_fd=here)


def _expect_ours(here: int, root: Path, name: str) -> None:
    status = os.fstat(here)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise ArtefactFault(f"{name} below {root} is open to others: give it to the pool's user alone, with mode 0700.")
