"""Reads results: small ones are in their receipts, others in storage; sealed ones are opened.

Whatever its size, only a few pieces of a result are in memory: what the caller asks for is copied into a file.
"""

import asyncio
from collections.abc import Iterator
from typing import BinaryIO

from tidemill.artefacts.store import ArtefactStore, ContentReader
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal
from tidemill.core.faults import Fault
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.private_results import NOTHING, UnsealedResult, unseal_result
from tidemill.core.jobs.receipts import Receipt
from tidemill.core.jobs.results import ReaderKey
from tidemill.core.trust.checks.judgement import is_as_signed


class StoredResults:
    """Reads the results of nodes, for the pool's verification."""

    def __init__(self, artefacts: ArtefactStore, key: ReaderKey) -> None:
        self._artefacts = artefacts
        self._key = key

    async def find(
        self, task: Task, receipt: Receipt, *, is_uploaded: bool, into: BinaryIO | None = None, most_bytes: int = 0
    ) -> UnsealedResult:
        """A result of a task, copied into a file if it has at most `most_bytes`. `is_uploaded` says that the attempt
        sent it."""
        if task.seal_to:
            return await self._unsealed(receipt, into, most_bytes, is_uploaded=is_uploaded)
        if not is_as_signed(receipt, is_uploaded=is_uploaded):
            return NOTHING
        if into is None:
            return UnsealedResult(is_as_signed=True)
        if receipt.artefact is None:
            into.write(receipt.inline)
            return UnsealedResult(is_as_signed=True, is_kept=True)
        return UnsealedResult(is_as_signed=True, is_kept=await self.copy(receipt.artefact, into, most_bytes))

    async def copy(self, digest: Digest, into: BinaryIO, most_bytes: int) -> bool:
        """Copy an artefact into a file. False if it is missing or larger than `most_bytes`."""
        reading = await self._artefacts.open(digest)
        if isinstance(reading, ArtefactRefusal):
            return False
        try:
            if reading.size_bytes > most_bytes:
                return False
            async for chunk in reading:
                await asyncio.to_thread(into.write, chunk)
        except OSError as error:
            raise _unreadable(error) from None
        finally:
            await reading.close()
        return True

    async def _unsealed(
        self, receipt: Receipt, into: BinaryIO | None, most_bytes: int, *, is_uploaded: bool
    ) -> UnsealedResult:
        keep = into.write if into is not None else _keep_nothing
        if receipt.artefact is None:
            return unseal_result(receipt, [receipt.inline], self._key, keep, most_bytes)
        reading = await self._artefacts.open(receipt.artefact) if is_uploaded else None
        if reading is None or isinstance(reading, ArtefactRefusal):
            return NOTHING
        try:
            chunks = _chunks_for_thread(reading, asyncio.get_running_loop())
            return await asyncio.to_thread(unseal_result, receipt, chunks, self._key, keep, most_bytes)
        except OSError as error:
            raise _unreadable(error) from None
        finally:
            await reading.close()


def _keep_nothing(_: bytes) -> None:
    """Of a result whose content nobody asked for."""


def _chunks_for_thread(reading: ContentReader, loop: asyncio.AbstractEventLoop) -> Iterator[bytes]:
    """The chunks of a reader, one at a time, for a thread."""
    chunks = aiter(reading)

    async def following() -> bytes | None:
        return await anext(chunks, None)

    while (chunk := asyncio.run_coroutine_threadsafe(following(), loop).result()) is not None:
        yield chunk


def _unreadable(error: OSError) -> Fault:
    return Fault(f"An artefact cannot be read: {error.strerror}.")
