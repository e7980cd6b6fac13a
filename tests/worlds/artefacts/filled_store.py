"""A process whose disk is full for a while: `python -m tests.worlds.artefacts.filled_store limit|cut|disk|reserve
DIRECTORY`.

`limit` and `cut` let no file of the process grow; `disk` is on a disk of 8 MiB; `reserve` on one of 200 MiB of which
uploads are to leave 100 free. It ends with 0 if everything is as it should be.
"""

import asyncio
import random
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.artefacts.artefact_stores import NOW, chunks, digest_of, get, ids, opened, put
from tidemill.artefacts.local import LocalStore
from tidemill.core.faults import DiskFull

MIB = 1024 * 1024


async def fills_and_goes_on(
    root: Path, size_bytes: int, keep_free_bytes: int, full: Callable[[], Callable[[], None]]
) -> None:
    content = random.Random(1).randbytes(size_bytes)
    confirmed = size_bytes // 4
    async with opened(root, keep_free_bytes) as store:
        held = await put(store, b"held before")
        upload_id = ids().new(NOW)
        await store.begin(upload_id, size_bytes)
        assert await store.append(upload_id, 0, chunks(content[:confirmed])) == confirmed
        make_space = full()
        await _expect_full(store, upload_id, confirmed, content)
        assert await get(store, held) == b"held before"
    async with opened(root, keep_free_bytes) as store:
        make_space()
        at = await store.offset(upload_id)
        assert confirmed <= at < size_bytes, at
        assert await store.append(upload_id, at, chunks(content[at:])) == size_bytes
        assert await store.finish(upload_id, None, NOW) == digest_of(content)
        assert await get(store, digest_of(content)) == content


async def _expect_full(store: LocalStore, upload_id: UUID, at: int, content: bytes) -> None:
    """However often it is tried, it is said, and nothing that was confirmed is lost."""
    for _ in range(3):
        with pytest.raises(DiskFull, match="make space"):
            await store.append(
                upload_id, at, chunks(*(content[one : one + 100_000] for one in range(at, len(content), 100_000)))
            )
        before, at = at, await store.offset(upload_id)
        assert at >= before, (at, before)


async def other_bytes_count(root: Path) -> None:
    """After a part that was cut short another process goes on with other bytes: the digest is that of what is there."""
    async with opened(root) as store, opened(root) as other:
        upload_id = ids().new(NOW)
        await store.begin(upload_id, 4 * MIB)
        make_space = files_may_not_grow()
        with pytest.raises(DiskFull):
            await store.append(upload_id, 0, chunks(b"a" * (7 * MIB // 2)))
        make_space()
        at = await store.offset(upload_id)
        assert at == 3 * MIB, at
        await other.append(upload_id, at, chunks(b"b" * MIB))
        assert await store.finish(upload_id, None, NOW) == digest_of(b"a" * at + b"b" * MIB)


def files_may_not_grow() -> Callable[[], None]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 * MIB, resource.RLIM_INFINITY))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def ballast(place: Path, size_bytes: int) -> Callable[[], Callable[[], None]]:
    file = place / "ballast"

    def full() -> Callable[[], None]:
        file.write_bytes(b"x" * size_bytes)
        return file.unlink

    return full


if __name__ == "__main__":
    how, directory = sys.argv[1], Path(sys.argv[2])
    tries = {
        "limit": (4 * MIB, 0, files_may_not_grow),
        "disk": (6 * MIB, 0, ballast(directory.parent, 4 * MIB)),
        "reserve": (90 * MIB, 100 * MIB, ballast(directory.parent, 70 * MIB)),
    }
    asyncio.run(fills_and_goes_on(directory, *tries[how]) if how in tries else other_bytes_count(directory))
