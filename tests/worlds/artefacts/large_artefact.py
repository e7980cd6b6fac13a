"""A process that uploads and reads back so many MiB, and prints by how much its memory grew at the most.

`python -m tests.worlds.artefacts.large_artefact MIB DIRECTORY`, or `… MIB ENDPOINT PREFIX` for a bucket: half of it
after a restart of
the store, so that it is read again.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import psutil

from tests.worlds.artefacts.artefact_stores import NOW, ids, in_bucket, opened
from tests.worlds.artefacts.s3_server import place_in
from tidemill.artefacts.store import ArtefactStore
from tidemill.core.artefacts.artefact import Digest

MIB = 1024 * 1024


async def main(size_mib: int, root: str, prefix: str | None = None) -> int:
    process = psutil.Process()
    over = threading.Event()

    def again() -> AbstractAsyncContextManager[ArtefactStore]:
        return opened(Path(root)) if prefix is None else in_bucket(place_in(root, prefix))

    async with again():
        before = peak = process.memory_info().rss

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.002):
            peak = max(peak, process.memory_info().rss)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        await _there_and_back(again, size_mib)
    finally:
        over.set()
        watching.join()
    return peak - before


async def _there_and_back(again: Callable[[], AbstractAsyncContextManager[ArtefactStore]], size_mib: int) -> None:
    upload_id = ids().new(NOW)
    half = size_mib // 2
    async with again() as store:
        await store.begin(upload_id, size_mib * MIB)
        assert await store.append(upload_id, 0, _content(0, half)) == half * MIB
    async with again() as store:
        assert await store.append(upload_id, half * MIB, _content(half, size_mib)) == size_mib * MIB
        digest = await store.finish(upload_id, None, NOW)
        assert isinstance(digest, Digest)
        reading = await store.open(digest)
        read = 0
        async for piece in reading:
            read += len(piece)
        await reading.close()
        assert read == size_mib * MIB


async def _content(first_mib: int, end_mib: int) -> AsyncIterator[bytes]:
    for number in range(first_mib, end_mib):
        for _ in range(16):
            yield bytes([number % 256]) * (MIB // 16)


if __name__ == "__main__":
    sys.stdout.write(str(asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))))
