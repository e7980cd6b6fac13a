"""Receiving a part of an upload: a piece is written and hashed at the same time, while the next one arrives.

At most two pieces are in memory, and the disk is told to sync while bytes still come, so that the end is not a long
wait. Nothing is left running when this ends, whichever way it ends.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import cycle
from mmap import mmap
from typing import Any

from tidemill.artefacts.store import Chunks
from tidemill.artefacts.threads import Threads
from tidemill.artefacts.uploading import HeldUpload
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.uploads import Checksum, Hash, refused_part

PIECE_BYTES = 2 * 1024 * 1024
"""What goes to a thread at once. Every turn costs a tenth of a millisecond, in which the disk waits."""

SYNC_EVERY_BYTES = 64 * 1024 * 1024
"""So that little is lost when the disk fails, and the last sync is a short one."""

_UnderWay = asyncio.Future[Any]
"""Of gather: answers and exceptions."""


async def receive(threads: Threads, held: HeldUpload, chunks: Chunks, checksum: Checksum | None) -> int | UploadRefusal:
    """Add chunks to an upload. Answers where it stands then; of what is refused, nothing is kept."""
    found = checksum.hash() if checksum else None
    try:
        refusal = await _Receiving(threads, held, found).take(chunks)
    except BaseException:
        if checksum:
            await threads.run(held.take_back)
        raise
    if checksum and found and not refusal and not checksum.fits(found):
        refusal = UploadRefusal.UPLOAD_CHECKSUM_WRONG
    await threads.run(held.take_back if refusal else held.sync)
    return refusal or held.stands_at


class _Receiving:
    """What is under way for one part."""

    def __init__(self, threads: Threads, held: HeldUpload, checksum: Hash | None) -> None:
        self._threads = threads
        self._held = held
        self._checksum = checksum
        self._writing: _UnderWay | None = None
        self._syncing: _UnderWay | None = None
        self._sync_due_at = held.stands_at + SYNC_EVERY_BYTES

    async def take(self, chunks: Chunks) -> UploadRefusal | None:
        try:
            async for piece in _pieces(chunks, self._held.stands_at):
                await self._written()
                at = self._held.stands_at
                if refusal := refused_part(self._held.length_bytes, at, at, len(piece)):
                    return refusal
                await self._sync_if_due(at)
                self._writing = asyncio.gather(
                    self._threads.run(self._held.write, piece),
                    self._threads.run(self._held.hash, piece, at, self._checksum),
                    return_exceptions=True,  # both are over when this is
                )
        finally:
            try:
                await self._written()
            finally:
                await self._synced()
        return None

    async def _sync_if_due(self, at: int) -> None:
        if at < self._sync_due_at:
            return
        await self._synced()
        self._sync_due_at = at + SYNC_EVERY_BYTES
        self._syncing = asyncio.gather(self._threads.run(self._held.sync), return_exceptions=True)

    async def _written(self) -> None:
        writing, self._writing = self._writing, None
        await _over(writing)

    async def _synced(self) -> None:
        syncing, self._syncing = self._syncing, None
        await _over(syncing)


async def _over(under_way: _UnderWay | None) -> None:
    """Wait for it, and raise what it raised."""
    for answer in await under_way if under_way else ():
        if answer is not None:
            raise answer


async def _pieces(chunks: Chunks, at: int) -> AsyncIterator[memoryview]:
    """The same bytes in pieces that end at multiples of their size: small chunks do not cost a thread's turn each, and
    the disk takes pieces as they are. Whoever asks for the next but one has no more use for this one."""
    places = cycle([memoryview(mmap(-1, PIECE_BYTES)) for _ in range(2)])
    place, filled = next(places)[: PIECE_BYTES - at % PIECE_BYTES], 0
    async for chunk in chunks:
        left = memoryview(chunk)
        while left:
            taken = min(len(left), len(place) - filled)
            place[filled : filled + taken] = left[:taken]
            left, filled = left[taken:], filled + taken
            if filled == len(place):
                yield place
                place, filled = next(places), 0
    if filled:
        yield place[:filled]
