"""An upload on local disk, locked by one request at a time: adding to it, hashing it, linking it to its digest.

`uploads/<id>/` contains one file. Its name is the declared length while bytes arrive, and the digest once all are
there; after that nothing is added. The directory's lock says who has the upload; a killed process has no lock.

Bytes are hashed as they arrive. The state of a hash cannot be stored on disk, so after a restart the beginning is read
again: four bytes for every byte that arrives, and the rest at the end. What an answer has confirmed is never taken
back.
"""

import errno
import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from tidemill.artefacts.contents import keep_content
from tidemill.artefacts.directories import directory, enter, expect_room, faults
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.uploads import Hash
from tidemill.core.clock import Instant
from tidemill.core.faults import ArtefactFault
from tidemill.host.locks import lock_now

if TYPE_CHECKING:
    from hashlib import _Hash

UPLOADS = "uploads"
_READ_BYTES = 1024 * 1024
_CATCH_UP = 4
_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECT = os.O_WRONLY | os.O_DIRECT | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = re.compile(r"[0-9]{1,20}|[0-9a-f]{64}", re.ASCII)
_TRIES = 100

_WRITE_BYTES = 128 * 1024
"""How much is written at once. For larger writes Linux looks for larger pages of memory, which costs more than it
gains."""

DIRECT_BYTES = 1024 * 1024
"""Pieces of this size bypass the page cache, where the disk supports that: caching them costs more than the disk takes,
evicts what others read repeatedly, and makes the last sync long."""

BLOCK_BYTES = 4096
"""Direct writes begin and end at a block, in the file and in memory."""

_NOT_DIRECT = {errno.EINVAL, errno.ENOENT}
"""The disk cannot write directly, or has larger blocks; or the upload was abandoned, as its holder finds out later."""


@dataclass
class HashState:
    """How far an upload was hashed. It may be dropped at any time, because the bytes are on the disk."""

    at: int = 0
    state: "_Hash" = field(default_factory=hashlib.sha256)

    def copy(self) -> "HashState":
        return HashState(self.at, self.state.copy())


class LockedUpload:
    """An upload that nobody else may touch until it is let go. Every method runs in a thread."""

    def __init__(self, root: Path, upload_id: UUID, hashed: HashState | None, keep_free_bytes: int) -> None:
        self._root = root
        self._id = upload_id
        self._keep_free_bytes = keep_free_bytes
        self._begun_hashed = hashed or HashState()
        self._hashed = self._begun_hashed.copy()
        self._directory = self._file = self._direct_file = -1
        self._takes_direct = True
        self._begun_at = self._synced_at = 0
        self._was_synced = False  # a killed process may have left something that is not
        self._sync_failed = False
        self.stands_at = self.length_bytes = 0
        self.digest: Digest | None = None

    def lock(self) -> UploadRefusal | None:
        """Lock the upload."""
        with faults(self._root):
            try:
                self._directory = enter(self._root, UPLOADS, str(self._id))
                if not lock_now(self._directory):
                    return UploadRefusal.UPLOAD_BUSY
                self._open()
            except FileNotFoundError:
                return UploadRefusal.UNKNOWN_UPLOAD
        return None

    def write(self, piece: memoryview) -> None:
        """Add bytes at the end. The caller has checked that they may be added."""
        assert self.digest is None, "nothing is added to what is finished"
        with faults(self._root):
            expect_room(self._root, 0, self._keep_free_bytes)
            left = piece
            while left:
                written = self._write_some(left)
                self.stands_at += written
                left = left[written:]

    def hash(self, piece: memoryview, at: int, checksum: Hash | None) -> None:
        """Hash a piece that is being written at this offset, or some of what is missing before it."""
        if checksum:
            checksum.update(piece)
        if self._hashed.at < at:
            self.catch_up(min(_CATCH_UP * len(piece), at - self._hashed.at))
        if self._hashed.at == at:
            self._update(piece)

    def sync(self) -> None:
        """Make the bytes so far survive a power cut. More may be written meanwhile."""
        stands_at = self.stands_at
        if self._synced_at < stands_at or not self._was_synced:
            self._sync_failed = True  # until it has not: the disk tells of a failure once, and never again
            with faults(self._root):
                os.fsync(self._file)
            self._synced_at, self._was_synced, self._sync_failed = stands_at, True, False

    def take_back(self) -> None:
        """Return to the offset at which the upload was locked."""
        self._synced_at = min(self._synced_at, self._begun_at)
        self._shorten(self._begun_at)

    def catch_up(self, most_bytes: int) -> bool:
        """Hash some of the bytes that are not hashed yet. Returns whether any are left."""
        with faults(self._root):
            until = min(self.stands_at, self._hashed.at + most_bytes)
            while self._hashed.at < until:
                piece = os.pread(self._file, min(_READ_BYTES, until - self._hashed.at), self._hashed.at)
                if not piece:
                    raise OSError(0, "a file is shorter than it was")
                self._update(piece)
        return self._hashed.at < self.stands_at

    def computed_digest(self) -> Digest:
        """The digest of the upload, once all of it is hashed."""
        assert self.digest or self._hashed.at == self.length_bytes
        return self.digest or Digest(self._hashed.state.hexdigest())

    def give(self, now: Instant) -> Digest | UploadRefusal:
        """Link the bytes to their digest. An interrupted call is completed by the next."""
        digest = self.computed_digest()
        with faults(self._root):
            try:
                self._seal(digest)
                os.utime(self._file, ns=(now * 1000, now * 1000))
                keep_content(self._root, self._directory, digest, now)
            except FileNotFoundError:
                return UploadRefusal.UNKNOWN_UPLOAD  # it was abandoned at this moment
        return digest

    def let_go(self) -> HashState:
        """Keep the received bytes that are on the disk, unlock, and return how far they are hashed."""
        try:
            if self._file >= 0:
                self._keep()
        finally:
            for descriptor in (self._direct_file, self._file, self._directory):
                if descriptor >= 0:
                    os.close(descriptor)
        return self._hashed

    def _open(self) -> None:
        names = os.listdir(self._directory)
        if not names:
            raise FileNotFoundError
        if len(names) > 1 or not _NAME.fullmatch(names[0]):
            raise ArtefactFault(f"Something in the upload {self._id} below {self._root} is not ours: remove it.")
        self.digest = Digest(names[0]) if len(names[0]) == 64 else None
        access = os.O_RDWR if self.digest is None else os.O_RDONLY
        self._file = os.open(names[0], access | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._directory)
        self.stands_at = self._begun_at = self._synced_at = os.fstat(self._file).st_size
        self.length_bytes = int(names[0]) if self.digest is None else self.stands_at
        if self._hashed.at > self.stands_at:
            self._begun_hashed, self._hashed = HashState(), HashState()

    def _write_some(self, left: memoryview) -> int:
        """Write the first of these bytes. Returns how many."""
        if self._takes_direct and len(left) >= DIRECT_BYTES and self.stands_at % BLOCK_BYTES == 0:
            try:
                return os.pwrite(self._direct(), left[: len(left) // BLOCK_BYTES * BLOCK_BYTES], self.stands_at)
            except OSError as error:
                if error.errno not in _NOT_DIRECT:
                    raise
                self._takes_direct = False
        return os.pwrite(self._file, left[:_WRITE_BYTES], self.stands_at)

    def _direct(self) -> int:
        if self._direct_file < 0:
            self._direct_file = os.open(str(self.length_bytes), _DIRECT, dir_fd=self._directory)
        return self._direct_file

    def _seal(self, digest: Digest) -> None:
        """Give the file its digest's name: from here on nothing is added, and nothing is hashed again."""
        if self.digest is None:
            os.fchmod(self._file, 0o400)
            os.fsync(self._file)
            os.rename(str(self.length_bytes), digest.text, src_dir_fd=self._directory, dst_dir_fd=self._directory)
            os.fsync(self._directory)
            self.digest = digest

    def _update(self, piece: bytes | memoryview) -> None:
        self._hashed.state.update(piece)
        self._hashed.at += len(piece)

    def _keep(self) -> None:
        try:
            if not self._sync_failed:
                self.sync()
        finally:
            if self._sync_failed:  # nobody knows what the disk has beyond the last one that went well
                self._shorten(self._synced_at)
        if self._hashed.at > self.stands_at:  # the disk was full in the middle of a piece
            self._hashed = self._begun_hashed.copy()

    def _shorten(self, to: int) -> None:
        if self.stands_at > to:
            with faults(self._root):
                os.ftruncate(self._file, to)
        self.stands_at = to
        self._hashed = self._begun_hashed.copy()


def begin_upload(root: Path, upload_id: UUID, length_bytes: int, keep_free_bytes: int) -> None:
    """Create an upload, durably."""
    with faults(root), directory(root, UPLOADS, str(upload_id), make=True) as here:
        if os.listdir(here):
            return
        expect_room(root, length_bytes, keep_free_bytes)
        try:
            os.close(os.open(str(length_bytes), _FILE, 0o600, dir_fd=here))
        except FileExistsError:
            return  # the same request came twice at once
        os.fsync(here)


def upload_offset(root: Path, upload_id: UUID) -> int | UploadRefusal:
    """Where an upload stands: the size of its file."""
    with faults(root):
        try:
            with directory(root, UPLOADS, str(upload_id)) as here:
                for name in os.listdir(here):
                    return os.stat(name, dir_fd=here, follow_symlinks=False).st_size
        except FileNotFoundError:
            pass
    return UploadRefusal.UNKNOWN_UPLOAD


def remove_upload(root: Path, upload_id: UUID) -> None:
    """Remove an upload, even while somebody has it: what they still write is gone with it."""
    with faults(root):
        try:
            with directory(root, UPLOADS) as uploads:
                _empty(root, upload_id)
                os.rmdir(str(upload_id), dir_fd=uploads)
                os.fsync(uploads)
        except FileNotFoundError:
            pass


def _empty(root: Path, upload_id: UUID) -> None:
    """Remove the file of an upload. It may be renamed between listing and removing."""
    with directory(root, UPLOADS, str(upload_id)) as here:
        for _ in range(_TRIES):
            names = os.listdir(here)
            if not names:
                return
            for name in names:
                try:
                    os.unlink(name, dir_fd=here)
                except FileNotFoundError:
                    continue
