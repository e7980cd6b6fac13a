"""Files that only our user may read, each whole and durable before it has its name."""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def make_private_file(file: Path, text: str) -> None:
    """Make a file; FileExistsError if there is one."""
    _write(file, text, os.link)


def make_private_file_once(file: Path, text: str) -> None:
    """Make a file unless there is one. When several processes make it at once, the first one's text stays."""
    with suppress(FileExistsError):
        make_private_file(file, text)


def replace_private_file(file: Path, text: str) -> None:
    """Replace a file at once, or make it."""
    _write(file, text, os.replace)


def sync_directory(directory: Path) -> None:
    """Make changes to a directory's entries survive a power cut."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(file: Path, text: str, give_name: Callable[[str, Path], None]) -> None:
    descriptor, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        give_name(draft, file)
    finally:
        Path(draft).unlink(missing_ok=True)
    sync_directory(file.parent)
