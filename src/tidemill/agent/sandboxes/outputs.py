"""Reads what a task left in its work directory without trusting any of it, and removes it whatever it is.

Only regular files count. A link could lead out of the directory, a pipe could make its reader wait for ever, and
a tree may be deeper than the longest path. Nobody changes the tree meanwhile: the run's last process has ended.
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
    """Relative paths of regular files, sorted. Other entries, too deep ones and too many are left out."""
    paths = []
    for count, (path, entry) in enumerate(_entries(work)):
        if count >= entries_max:
            break
        if entry.is_file(follow_symlinks=False):
            paths.append(PurePosixPath(path))
    return sorted(paths)


def open_output(work: Path, path: PurePosixPath) -> int:
    """A descriptor of a regular file below the work directory. OSError if it is none, or its path has a link."""
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise FileNotFoundError(path)
    directory = os.open(work, _DIRECTORY)
    try:
        for part in path.parts[:-1]:
            inner = os.open(part, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        return _regular(os.open(path.name, _FILE, dir_fd=directory))
    finally:
        os.close(directory)


def remove_tree(tree: Path) -> None:
    """Remove a tree of any depth and any permissions. Directories are moved to the top before they are emptied."""
    if not tree.exists():
        return
    with suppress(OSError, RecursionError):
        shutil.rmtree(tree)
        return
    waiting, number = deque([tree]), 0
    while waiting:
        directory = waiting.popleft()
        with suppress(FileNotFoundError):  # somebody else may be removing it, too
            directory.chmod(0o700)
            for entry in list(os.scandir(directory)):
                if entry.is_dir(follow_symlinks=False):
                    lifted = tree.with_name(f"{tree.name}.{number}")
                    number += 1
                    os.chmod(entry.path, 0o700)
                    os.rename(entry.path, lifted)
                    waiting.append(lifted)
                else:
                    os.unlink(entry.path)
            directory.rmdir()


def _regular(descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError("not a regular file")
    return descriptor


def _entries(work: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Every entry with its relative path, down to the deepest allowed directory."""
    waiting = deque([("", 0)])
    while waiting:
        directory, depth = waiting.popleft()
        with suppress(OSError), os.scandir(work / directory) as entries:
            for entry in entries:
                path = f"{directory}/{entry.name}" if directory else entry.name
                yield path, entry
                if depth < DEPTH_MAX and entry.is_dir(follow_symlinks=False):
                    waiting.append((path, depth + 1))
