"""Bytes under their digest on local disk: `content/ab/cd/<digest>`, whole or absent.

A file gets its name when every byte of it is on the disk, and is never written again. Its modification time is when it
was last finished, by the database's clock. Finishing and deleting the same bytes exclude each other, across all
processes.
"""

import os
import re
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tidemill.artefacts.directories import directory, faults, locked
from tidemill.core.artefacts.artefact import Digest, read_digest
from tidemill.core.clock import Instant

CONTENT = "content"

_SHARD = re.compile(r"[0-9a-f]{2}", re.ASCII)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def keep_content(root: Path, source: int, digest: Digest, now: Instant) -> None:
    """Link the file of this name from the directory `source` into the contents. The same bytes are kept once."""
    with directory(root, *content_folder(digest), make=True) as here, locked(here):
        try:
            os.link(digest.text, digest.text, src_dir_fd=source, dst_dir_fd=here, follow_symlinks=False)
        except FileExistsError:
            _renew(here, source, digest, now)
        os.fsync(here)


def open_content(root: Path, digest: Digest) -> tuple[int, int] | None:
    """A descriptor of the bytes and their number; None if there are none."""
    with faults(root):
        try:
            with directory(root, *content_folder(digest)) as here:
                file = os.open(digest.text, _READ, dir_fd=here)
        except FileNotFoundError:
            return None
    return file, os.fstat(file).st_size


def content_size(root: Path, digest: Digest) -> int | None:
    with faults(root):
        try:
            with directory(root, *content_folder(digest)) as here:
                return os.stat(digest.text, dir_fd=here, follow_symlinks=False).st_size
        except FileNotFoundError:
            return None


def delete_content(root: Path, digest: Digest, older_than: Instant) -> bool:
    """Remove the bytes if they were last finished before this instant. Open readers can read on."""
    with faults(root):
        try:
            with directory(root, *content_folder(digest)) as here, locked(here):
                if _finished_at(here, digest) >= older_than:
                    return False
                os.unlink(digest.text, dir_fd=here)
                os.fsync(here)
        except FileNotFoundError:
            return False
    return True


def old_contents(root: Path, older_than: Instant, batch_max: int) -> Iterator[list[Digest]]:
    """Everything that was last finished before this instant, in batches."""
    with faults(root):
        digests = _old(root, older_than)
        while batch := list(islice(digests, batch_max)):
            yield batch


def all_contents(root: Path) -> Iterator[Digest]:
    """The digests of all bytes, in order."""
    for first in filter(_SHARD.fullmatch, names_in(root, CONTENT)):
        for second in filter(_SHARD.fullmatch, names_in(root, CONTENT, first)):
            for name in names_in(root, CONTENT, first, second):
                if isinstance(digest := read_digest(name), Digest):
                    yield digest


def content_folder(digest: Digest) -> tuple[str, str, str]:
    """The directories, below the root, with the bytes of a digest."""
    return CONTENT, digest.text[:2], digest.text[2:4]


def names_in(root: Path, *names: str) -> list[str]:
    """The names in a directory; none if it does not exist."""
    try:
        with directory(root, *names) as here:
            return sorted(os.listdir(here))
    except FileNotFoundError:
        return []


def _old(root: Path, older_than: Instant) -> Iterator[Digest]:
    return (digest for digest in all_contents(root) if _is_older(root, digest, older_than))


def _is_older(root: Path, digest: Digest, older_than: Instant) -> bool:
    try:
        with directory(root, *content_folder(digest)) as here:
            return _finished_at(here, digest) < older_than
    except FileNotFoundError:
        return False


def _renew(here: int, source: int, digest: Digest, now: Instant) -> None:
    """The bytes exist already: mark them as finished now. A file that the disk has damaged is replaced."""
    new = os.stat(digest.text, dir_fd=source, follow_symlinks=False)
    old = os.stat(digest.text, dir_fd=here, follow_symlinks=False)
    if not stat.S_ISREG(old.st_mode) or old.st_size != new.st_size:
        os.unlink(digest.text, dir_fd=here)
        os.link(digest.text, digest.text, src_dir_fd=source, dst_dir_fd=here, follow_symlinks=False)
        return
    finished_at = max(now * 1000, old.st_mtime_ns)
    file = os.open(digest.text, _READ, dir_fd=here)
    try:
        os.utime(file, ns=(finished_at, finished_at))
        os.fsync(file)
    finally:
        os.close(file)


def _finished_at(here: int, digest: Digest) -> int:
    return os.stat(digest.text, dir_fd=here, follow_symlinks=False).st_mtime_ns // 1000
