"""What a task left in its work directory, read without trusting any of it, and removed whatever it is.

Only regular files count. A link could lead out of the directory, a pipe could make its reader wait for ever, and
a tree may be deeper than a path can be long. Nobody changes the tree meanwhile: the run's last process has ended.
"""

import os
import shutil
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

DEPTH_MAX = 64
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def regular_files(work: Path, entries_max: int) -> list[PurePosixPath]:
    """Paths of regular files, relative and sorted. Anything else, what is too deep and what is too many is left out."""
    found = []
    for count, (path, entry) in enumerate(_entries(work)):
        if count >= entries_max:
            break
        if entry.is_file(follow_symlinks=False):
            found.append(PurePosixPath(path))
    return sorted(found)


def open_output(work: Path, path: PurePosixPath) -> int:
    """A descriptor of a regular file below the work directory. OSError if it is not one, or a link is on the way."""
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise FileNotFoundError(path)
    place = os.open(work, _DIRECTORY)
    try:
        for part in path.parts[:-1]:
            inner = os.open(part, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = inner
        return _regular(os.open(path.name, _FILE, dir_fd=place))
    finally:
        os.close(place)


def remove_tree(tree: Path) -> None:
    """Remove a tree of any depth and any permissions: directories are lifted to the top before they are emptied."""
    if not tree.exists():
        return
    with suppress(OSError, RecursionError):
        shutil.rmtree(tree)
        return
    waiting, number = deque([tree]), 0
    while waiting:
        place = waiting.popleft()
        with suppress(FileNotFoundError):  # somebody else may be removing it, too
            place.chmod(0o700)
            for entry in list(os.scandir(place)):
                if entry.is_dir(follow_symlinks=False):
                    lifted = tree.with_name(f"{tree.name}.{number}")
                    number += 1
                    os.chmod(entry.path, 0o700)
                    os.rename(entry.path, lifted)
                    waiting.append(lifted)
                else:
                    os.unlink(entry.path)
            place.rmdir()


def _regular(descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError("not a regular file")
    return descriptor


def _entries(work: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry with its relative path, directories not deeper than the most."""
    waiting = deque([("", 0)])
    while waiting:
        place, depth = waiting.popleft()
        with suppress(OSError), os.scandir(work / place) as entries:
            for entry in entries:
                path = f"{place}/{entry.name}" if place else entry.name
                yield path, entry
                if depth < DEPTH_MAX and entry.is_dir(follow_symlinks=False):
                    waiting.append((path, depth + 1))
