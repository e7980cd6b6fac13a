"""Artefacts on local disk: `ArtefactStore` with files.

Any number of processes may use one directory, and each may be killed at any moment: an unfinished upload stays an
upload, which is continued later or swept, and nothing unfinished is ever seen under a digest. The disk must support
hard links.
"""

import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from tidemill.artefacts.contents import content_size, delete_content, names_in, old_contents, open_content
from tidemill.artefacts.directories import faults
from tidemill.artefacts.local_receiver import receive
from tidemill.artefacts.local_upload import (
    UPLOADS,
    HashState,
    LockedUpload,
    begin_upload,
    remove_upload,
    upload_offset,
)
from tidemill.artefacts.store import ArtefactRegistry, Chunks, SweepCount
from tidemill.artefacts.threads import Threads
from tidemill.core.artefacts.artefact import Digest, checked_range
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.uploads import Checksum, refused_end, refused_part
from tidemill.core.clock import Instant
from tidemill.core.faults import ArtefactFault
from tidemill.core.ids import made_at

T = TypeVar("T")

_READ_BYTES = 1024 * 1024
_HASH_BYTES = 16 * _READ_BYTES
_HASHED_MAX = 1_000
_BATCH = 1_000


class LocalStore:
    """A directory with artefacts."""

    def __init__(self, root: Path, threads: int, keep_free_bytes: int) -> None:
        self._root = root
        self._keep_free_bytes = keep_free_bytes
        self._threads = Threads(threads)
        self._hashed: OrderedDict[UUID, HashState] = OrderedDict()

    async def begin(self, upload_id: UUID, length_bytes: int) -> None:
        assert length_bytes >= 0
        assert upload_id.version == 7, "its age is read from its id"
        await self._threads.run(begin_upload, self._root, upload_id, length_bytes, self._keep_free_bytes)

    async def offset(self, upload_id: UUID) -> int | UploadRefusal:
        return await self._threads.run(upload_offset, self._root, upload_id)

    async def append(
        self, upload_id: UUID, offset: int, chunks: Chunks, checksum: Checksum | None = None
    ) -> int | UploadRefusal:
        async with self._locked(upload_id) as upload:
            if isinstance(upload, UploadRefusal):
                return upload
            refusal = refused_part(upload.length_bytes, upload.stands_at, offset)
            return refusal or await receive(self._threads, upload, chunks, checksum)

    async def finish(self, upload_id: UUID, expected: Digest | None, now: Instant) -> Digest | UploadRefusal:
        async with self._locked(upload_id) as upload:
            if isinstance(upload, UploadRefusal):
                return upload
            if refusal := refused_end(upload.length_bytes, upload.stands_at):
                return refusal
            while upload.digest is None and await self._threads.run(upload.catch_up, _HASH_BYTES):
                pass
            if expected not in (None, upload.computed_digest()):
                return UploadRefusal.UPLOAD_DIGEST_WRONG
            return await self._threads.run(upload.give, now)

    async def abandon(self, upload_id: UUID) -> None:
        self._hashed.pop(upload_id, None)
        await self._threads.run(remove_upload, self._root, upload_id)

    async def size(self, digest: Digest) -> int | None:
        return await self._threads.run(content_size, self._root, digest)

    async def open(
        self, digest: Digest, first: int = 0, end: int | None = None
    ) -> "LocalContentReader | ArtefactRefusal":
        reader = LocalContentReader(self._threads, self._root, digest)
        refusal: ArtefactRefusal | None = ArtefactRefusal.UNKNOWN_ARTEFACT
        try:
            refusal = await self._threads.run(reader.open, first, end)
        finally:
            if refusal:
                await reader.close()
        return refusal or reader

    async def delete(self, digest: Digest, older_than: Instant) -> bool:
        return await self._threads.run(delete_content, self._root, digest, older_than)

    async def sweep(self, older_than: Instant, known: ArtefactRegistry) -> SweepCount:
        uploads = contents = 0
        async for batch in self._in_thread(_old_uploads(self._root, older_than)):
            for upload_id in set(batch) - set(await known.uploads(batch)):
                await self.abandon(upload_id)
                uploads += 1
        async for digests in self._in_thread(old_contents(self._root, older_than, _BATCH)):
            for digest in set(digests) - set(await known.digests(digests)):
                contents += await self.delete(digest, older_than)
        return SweepCount(uploads, contents)

    async def close(self) -> None:
        self._threads.close()

    @asynccontextmanager
    async def _locked(self, upload_id: UUID) -> AsyncIterator[LockedUpload | UploadRefusal]:
        """Lock an upload for one request. How far it is hashed is remembered for the next request."""
        upload = LockedUpload(self._root, upload_id, self._hashed.pop(upload_id, None), self._keep_free_bytes)
        refusal: UploadRefusal | None = None
        try:
            refusal = await self._threads.run(upload.lock)
            yield refusal or upload
        finally:
            hashed = await self._threads.run(upload.let_go)
            if refusal is None:
                self._remember(upload_id, hashed)

    async def _in_thread(self, batches: Iterator[list[T]]) -> AsyncIterator[list[T]]:
        nothing: list[T] = []
        while batch := await self._threads.run(next, batches, nothing):
            yield batch

    def _remember(self, upload_id: UUID, hashed: HashState) -> None:
        self._hashed[upload_id] = hashed
        if len(self._hashed) > _HASHED_MAX:
            self._hashed.popitem(last=False)


class LocalContentReader:
    """Reads one file."""

    def __init__(self, threads: Threads, root: Path, digest: Digest) -> None:
        self._threads = threads
        self._root = root
        self._digest = digest
        self._file = -1
        self.size_bytes = self.first = self.end = 0

    def open(self, first: int, end: int | None) -> ArtefactRefusal | None:
        """Open the file. Runs in a thread."""
        opened = open_content(self._root, self._digest)
        if opened is None:
            return ArtefactRefusal.UNKNOWN_ARTEFACT
        self._file, self.size_bytes = opened
        span = checked_range(first, end, self.size_bytes)
        if isinstance(span, ArtefactRefusal):
            return span
        self.first, self.end = span
        return None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        at = self.first
        while at < self.end:
            piece = await self._threads.run(self._read, at)
            at += len(piece)
            yield piece

    async def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            await self._threads.run(os.close, file)

    def _read(self, at: int) -> bytes:
        with faults(self._root):
            piece = os.pread(self._file, min(_READ_BYTES, self.end - at), at)
        if not piece:
            raise ArtefactFault(f"{self._digest} below {self._root} is shorter than it was: restore it from a backup.")
        return piece


def _old_uploads(root: Path, older_than: Instant) -> Iterator[list[UUID]]:
    with faults(root):
        upload_ids = (upload_id for name in names_in(root, UPLOADS) if (upload_id := _read_id(name)))
        old = (upload_id for upload_id in upload_ids if made_at(upload_id) < older_than)
        while batch := list(islice(old, _BATCH)):
            yield batch


def _read_id(name: str) -> UUID | None:
    try:
        upload_id = UUID(name)
    except ValueError:
        return None
    return upload_id if str(upload_id) == name else None
