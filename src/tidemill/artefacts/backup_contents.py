"""The bytes of artefacts in backups, on local disk: kept once for all backups in a folder, with a list beside each.

Beside the dump `x.dump` stands the list `x.dump.artefacts`: a digest and a size a line, in order. Its bytes are under
`artefacts/` in the same folder, as in storage, and are hard links where the disk is the same: they cost no copy and no
space until storage deletes its own. On another disk each is copied once, not once a backup. Whatever no list names is
removed. Each process may be killed at any moment: a file gets its name when every byte of it is there, and a list when
all of its files have theirs.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from pathlib import Path

from tidemill.artefacts.contents import all_contents, content_folder, content_size
from tidemill.artefacts.directories import directory, expect_room, faults
from tidemill.core.artefacts.artefact import Digest, read_digest
from tidemill.core.faults import ArtefactFault
from tidemill.host.private_files import sync_directory

FOLDER = "artefacts"
LIST = ".artefacts"
_DRAFT = ".partial"
_CANNOT_LINK = {errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP}


class BackupInHand(ArtefactFault):
    """Somebody else makes or brings back a backup in this folder now."""

    code = "backup_in_hand"


@dataclass(frozen=True, order=True)
class ListedContent:
    """Bytes that the database refers to."""

    digest: Digest
    size_bytes: int


@dataclass
class TakenContents:
    """How many bytes were taken from one place to another. `missing` were not there, or had another size."""

    contents: int = 0
    size_bytes: int = 0
    copied_bytes: int = 0
    missing: int = 0

    def add(self, other: "TakenContents") -> None:
        self.contents += other.contents
        self.size_bytes += other.size_bytes
        self.copied_bytes += other.copied_bytes
        self.missing += other.missing

    def count(self, listed: ListedContent, copied_bytes: int | None) -> None:
        if copied_bytes is None:
            self.missing += 1
            return
        self.contents += 1
        self.size_bytes += listed.size_bytes
        self.copied_bytes += copied_bytes


def list_of(dump: Path) -> Path:
    """The list of a backup's artefacts."""
    return dump.with_name(dump.name + LIST)


@contextmanager
def keeping(folder: Path) -> Iterator[Path]:
    """The tree of bytes in a folder of backups, while nobody else takes or removes any. A fault if somebody does."""
    root = folder / FOLDER
    with faults(root), directory(root, make=True) as here:
        try:
            fcntl.flock(here, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackupInHand(f"Another backup is being made in {folder}: try again when it is done.") from None
        yield root


def take(source: Path, target: Path, wanted: Iterable[ListedContent], keep_free_bytes: int) -> TakenContents:
    """Take bytes from one tree into another, as links where the disk is the same."""
    taken, touched = TakenContents(), set[Path]()
    for listed in wanted:
        taken.count(listed, _take(source, target, listed, keep_free_bytes, touched))
    for place in touched:
        sync_directory(place)
    return taken


class ListDraft:
    """A list in the making, in two passes: before the dump and after it, so that it names all that the dump does."""

    def __init__(self, dump: Path) -> None:
        self._dump = dump
        self._drafts = [dump.with_name(f".{dump.name}{LIST}-{number}{_DRAFT}") for number in range(3)]

    def add(self, page: Iterable[ListedContent], number: int) -> None:
        """Add a page of a pass; the pages of each come in order."""
        with self._drafts[number].open("a", encoding="ascii") as file:
            file.writelines(f"{one.digest} {one.size_bytes}\n" for one in page)

    def finish(self) -> None:
        """Give the list its name. All bytes that it names have been taken."""
        *passes, whole = self._drafts
        both = merge(*(read_list(draft) for draft in passes if draft.exists()))
        with whole.open("w", encoding="ascii") as file:
            file.writelines(f"{one.digest} {one.size_bytes}\n" for one, _ in groupby(both))
            file.flush()
            os.fchmod(file.fileno(), 0o600)
            os.fsync(file.fileno())
        whole.rename(list_of(self._dump))
        sync_directory(self._dump.parent)

    def close(self) -> None:
        for draft in self._drafts:
            draft.unlink(missing_ok=True)


def read_list(file: Path) -> Iterator[ListedContent]:
    """The lines of a list, in order."""
    with file.open(encoding="ascii", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            text, _, size = line.rstrip("\n").partition(" ")
            digest = read_digest(text)
            if not isinstance(digest, Digest) or not size.isdecimal():
                raise ArtefactFault(f"{file} is damaged in line {number}: use another backup.")
            yield ListedContent(digest, int(size))


def remove_unlisted(folder: Path) -> int:
    """Remove bytes that no list of the folder names, and lists without a dump. Returns how many files went."""
    lists, removed = [], 0
    with keeping(folder) as root:
        for file in sorted(folder.glob(f"*{LIST}")):
            if file.with_name(file.name.removesuffix(LIST)).exists():
                lists.append(file)
            else:
                file.unlink()
                removed += 1
        named = (digest for digest, _ in groupby(one.digest for one in merge(*map(read_list, lists))))
        wanted = next(named, None)
        for digest in all_contents(root):
            while wanted is not None and wanted < digest:
                wanted = next(named, None)
            if wanted != digest:
                (root.joinpath(*content_folder(digest)) / digest.text).unlink(missing_ok=True)
                removed += 1
        for rest in root.glob(f"content/*/*/.*{_DRAFT}"):
            rest.unlink(missing_ok=True)
    return removed


def _take(source: Path, target: Path, listed: ListedContent, keep_free_bytes: int, touched: set[Path]) -> int | None:
    """The number of bytes copied; None if they are not in the source with the size that the list says."""
    digest = listed.digest
    if content_size(target, digest) == listed.size_bytes:
        return 0
    if content_size(source, digest) != listed.size_bytes:
        return None
    place = content_folder(digest)
    with directory(target, *place, make=True):
        here = target.joinpath(*place)
    draft = here / f".{digest}{_DRAFT}"
    draft.unlink(missing_ok=True)
    copied_bytes = _link_or_copy(source.joinpath(*place) / digest.text, draft, target, listed, keep_free_bytes)
    if copied_bytes is not None:
        draft.rename(here / digest.text)
        touched.add(here)
    return copied_bytes


def _link_or_copy(file: Path, draft: Path, target: Path, listed: ListedContent, keep_free_bytes: int) -> int | None:
    try:
        os.link(file, draft, follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted at this moment
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
    else:
        return 0
    expect_room(target, listed.size_bytes, keep_free_bytes)
    try:
        shutil.copy2(file, draft, follow_symlinks=False)
    except FileNotFoundError:
        return None
    descriptor = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return listed.size_bytes
