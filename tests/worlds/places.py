"""Directories for tests that start servers, and what still runs in them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil


@contextmanager
def reachable_directory() -> Iterator[Path]:
    """A directory that any system user can reach, because as root the database server runs as another user."""
    place = Path(tempfile.mkdtemp(prefix="tm-", dir=_quick_parent())).resolve()
    place.chmod(0o711)
    try:
        yield place
    finally:
        for process in processes_in(place):
            process.kill()
        shutil.rmtree(place)


def processes_in(place: Path) -> list[psutil.Process]:
    """Live processes whose working directory is in this place. Root may look everywhere, others at their own."""
    found = []
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(place) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue  # it is gone, or another's whose place cannot even be named
    return found


def _quick_parent() -> str | None:
    """Memory, where there is plenty: copying a cluster takes a tenth of the time."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2 * 1024**3 else None
