"""Checks what a run left below `out` before anything is hashed or sent: which files, how large, of what form.

Where a kind says which files it makes, no others are allowed. Nothing that the task made is trusted: a link is no file,
and `out` itself must be a directory.
"""

import os
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from tidemill.agent.runners.interface import OUT, ResultFiles
from tidemill.agent.sandboxes.outputs import open_output, regular_files
from tidemill.core.jobs.kinds.kind import KindRefusal, OutputFile, TaskObjection

FileCheck = Callable[[BinaryIO], str | None]
"""What is wrong with an open file, in a sentence; None if nothing is."""


def one_file(work: Path, output: OutputFile, look: FileCheck) -> ResultFiles | TaskObjection:
    """The result of a kind that makes exactly this one file."""
    if _is_directory(work) and (names := sorted(os.listdir(work / OUT))) != [output.name]:
        return _wrong(f"The result must be the file {output.name} alone; there are {len(names):,} entries.")
    try:
        descriptor = open_output(work, PurePosixPath(OUT, output.name))
    except OSError:
        return _wrong(f"The result has no regular file {output.name}.")
    with os.fdopen(descriptor, "rb") as file:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes != output.exact_bytes:
            return _wrong(f"{output.name} has {size_bytes:,} bytes, and must have {output.exact_bytes:,}.")
        sentence = look(file)
    return _wrong(sentence) if sentence else ResultFiles((PurePosixPath(output.name),), size_bytes)


def any_files(work: Path, most_bytes: int, entries_max: int) -> ResultFiles | TaskObjection:
    """The result of a customer's own program: the regular files below `out`, or none."""
    if not os.path.lexists(work / OUT):
        return ResultFiles((), 0)
    if not _is_directory(work):
        return _wrong(f"{OUT} must be a directory.")
    files = tuple(regular_files(work / OUT, entries_max))
    try:
        size_bytes = sum(_size_bytes(work, path) for path in files)
    except PermissionError:  # an agent that is not root reads only what the task lets it
        return _wrong(f"Every file below {OUT} must be readable for its owner.")
    if size_bytes > most_bytes:
        return _wrong(f"The result has {size_bytes:,} bytes, and may have {most_bytes:,}.")
    return ResultFiles(files, size_bytes)


def begins_with(header: bytes) -> FileCheck:
    """For files whose first bytes are known."""
    return lambda file: None if file.read(len(header)) == header else "The result's header is not what it must be."


def _size_bytes(work: Path, path: PurePosixPath) -> int:
    descriptor = open_output(work, OUT / path)
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _is_directory(work: Path) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(work / OUT).st_mode)
    except OSError:
        return False


def _wrong(figures: str) -> TaskObjection:
    return TaskObjection(KindRefusal.RESULT_WRONG, figures)
