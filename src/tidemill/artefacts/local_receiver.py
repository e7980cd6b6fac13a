"""Receives a part of an upload: a piece is written and hashed at the same time, while the next one arrives.

Small chunks are gathered, because each turn of a thread has a cost. A large chunk that is aligned in memory as the disk
needs it is written as it is. A piece is handed over while the one before is still being written, so that neither the
disk nor the hash waits for the loop, which is busy reading. The disk syncs while bytes still arrive, so that the last
sync is short. However this ends, everything received is written and nothing is left running.
"""

import asyncio
from concurrent.futures import Future
from ctypes import addressof, c_char
from mmap import mmap

from tidemill.artefacts.local_upload import BLOCK_BYTES, DIRECT_BYTES, LockedUpload
from tidemill.artefacts.store import Chunks
from tidemill.artefacts.threads import Threads, through, whole
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.uploads import Checksum, Hash, refused_part

PIECE_BYTES = 2 * 1024 * 1024
"""How much goes to a thread at once. Every turn costs a tenth of a millisecond, in which the disk waits."""

SYNC_EVERY_BYTES = 64 * 1024 * 1024
"""Limits what is lost when the disk fails, and keeps the last sync short."""

_GATHERED_S = 1.0
"""Slowly arriving bytes are written this often."""


async def receive(
    threads: Threads, upload: LockedUpload, chunks: Chunks, checksum: Checksum | None
) -> int | UploadRefusal:
    """Add chunks to an upload, and return its new offset. Nothing of a refused part is kept."""
    checksum_hash = checksum.hash() if checksum else None
    try:
        refusal = await _PieceWriter(threads, upload, checksum_hash).take(chunks)
    except BaseException:
        if checksum:
            await threads.run(upload.take_back)
        raise
    if checksum and checksum_hash and not refusal and not checksum.fits(checksum_hash):
        refusal = UploadRefusal.UPLOAD_CHECKSUM_WRONG
    await threads.run(upload.take_back if refusal else upload.sync)
    return refusal or upload.stands_at


class _PieceWriter:
    """Gathers and writes the pieces of one part. Gathered bytes lie in the buffer at their offset in the file, modulo
    the buffer's size: so pieces end at blocks of the disk, and begin at blocks of memory."""

    def __init__(self, threads: Threads, upload: LockedUpload, checksum: Hash | None) -> None:
        self._upload = upload
        self._checksum = checksum
        self._writes, self._hashes, self._syncs = threads.lane(), threads.lane(), threads.lane()
        self._at_work: list[Future[None]] = []
        self._syncing: list[Future[None]] = []
        self._sync_due_at = upload.stands_at + SYNC_EVERY_BYTES
        self._buffer, self._spare_buffer = memoryview(mmap(-1, PIECE_BYTES)), memoryview(mmap(-1, PIECE_BYTES))
        self._gathered_at = self._received_to = upload.stands_at
        self._left = memoryview(b"")
        self._write_at_s = 0.0

    async def take(self, chunks: Chunks) -> UploadRefusal | None:
        try:
            async for chunk in chunks:
                at = self._received_to
                if refusal := refused_part(self._upload.length_bytes, at, at, len(chunk)):
                    return refusal
                self._left = memoryview(chunk)
                await self._take_left()
        finally:
            try:
                await whole(self._end())
            finally:
                await _over(self._syncing)
        return None

    async def _end(self) -> None:
        """Write everything received, unless an earlier write failed: then nobody knows what the disk has."""
        await _over(self._at_work)
        assert self._upload.stands_at == self._gathered_at, "a piece goes behind all that came before it"
        await self._take_left()
        await self._write_gathered()
        await _over(self._at_work)

    async def _take_left(self) -> None:
        """Take the rest of a chunk. If this is cancelled, the rest is still left, or handed over."""
        while self._left:
            if self._gathered_at == self._received_to and _lies_as_on_disk(self._left, self._received_to):
                chunk, self._left = self._left, memoryview(b"")
                return await self._write(chunk)
            self._gather()
            if self._received_to % PIECE_BYTES == 0 or asyncio.get_running_loop().time() >= self._write_at_s:
                await self._write_gathered()
        return None

    def _gather(self) -> None:
        """Take as much as a piece has room for."""
        if self._gathered_at == self._received_to:
            self._write_at_s = asyncio.get_running_loop().time() + _GATHERED_S
        filled = self._received_to % PIECE_BYTES
        taken = self._left[: PIECE_BYTES - filled]
        self._buffer[filled : filled + len(taken)] = taken
        self._received_to += len(taken)
        self._left = self._left[len(taken) :]

    async def _write_gathered(self) -> None:
        first = self._gathered_at % PIECE_BYTES
        piece = self._buffer[first : first + self._received_to - self._gathered_at]
        if piece:
            self._buffer, self._spare_buffer = self._spare_buffer, self._buffer
            await self._write(piece)

    async def _write(self, piece: memoryview) -> None:
        """Hand a piece over, and wait for the one before, whose buffer is then free for the next."""
        at, before = self._gathered_at, self._at_work
        self._gathered_at = self._received_to = at + len(piece)
        self._at_work = [
            self._writes.add(self._upload.write, piece),
            self._hashes.add(self._upload.hash, piece, at, self._checksum),
        ]
        await _over(before)
        await self._sync_if_due(at)

    async def _sync_if_due(self, at: int) -> None:
        if at < self._sync_due_at:
            return
        await _over(self._syncing)
        self._sync_due_at = at + SYNC_EVERY_BYTES
        self._syncing = [self._syncs.add(self._upload.sync)]


async def _over(under_way: list[Future[None]]) -> None:
    """Wait until all futures are done, and raise what they raised."""
    if not all(future.done() for future in under_way):
        await asyncio.gather(*map(through, under_way), return_exceptions=True)
    for future in under_way:
        if fault := future.exception():
            raise fault


def _lies_as_on_disk(piece: memoryview, at: int) -> bool:
    """Whether the disk can take the piece directly from its memory."""
    if at % BLOCK_BYTES or len(piece) < DIRECT_BYTES or piece.readonly:
        return False
    return addressof(c_char.from_buffer(piece)) % BLOCK_BYTES == 0
