"""A process that uploads, finishes and deletes until it is killed, and says what it was told.

`python -m tests.worlds.artefacts.uploader DIRECTORY`, or `… ENDPOINT PREFIX` for a bucket. Each line is `at UPLOAD
OFFSET` or
`held DIGEST UPLOAD` after it was confirmed, and `gone UPLOAD 0` or `lost DIGEST 0` before it is removed: from there on
nobody may count on it.
"""

import asyncio
import os
import random
import sys
from pathlib import Path
from uuid import UUID

from tests.worlds.artefacts.artefact_stores import LEAST_PART_BYTES, NOW, chunks, ids, in_bucket, opened
from tests.worlds.artefacts.s3_server import place_in
from tidemill.artefacts.store import ArtefactStore
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids

_SHARED = 5


async def main(root: str, prefix: str | None = None) -> None:
    dice = random.SystemRandom()
    made = ids()
    async with opened(Path(root)) if prefix is None else in_bucket(place_in(root, prefix), LEAST_PART_BYTES) as store:
        await asyncio.gather(*(_upload_for_ever(store, made, dice, in_parts=prefix is not None) for _ in range(3)))


def content_of(upload_id: UUID, *, in_parts: bool = False) -> bytes:
    """What an upload holds. Some have the same bytes as others, and some are large."""
    seed = upload_id.int if upload_id.int % 3 else upload_id.int % _SHARED
    dice = random.Random(seed)
    large = 13_000_000 if in_parts else 5_000_000
    return dice.randbytes(dice.randrange(large if seed % (2 if in_parts else 4) == 1 else 300_000))


async def _upload_for_ever(store: ArtefactStore, made: Ids, dice: random.Random, *, in_parts: bool) -> None:
    while True:
        upload_id = made.new(NOW)
        await _upload(store, upload_id, content_of(upload_id, in_parts=in_parts), dice)
        digest = await store.finish(upload_id, None, NOW)
        _say("held", digest, upload_id)
        if dice.random() < 0.5:
            _say("gone", upload_id, 0)
            await store.abandon(upload_id)
        if dice.random() < 0.3:
            _say("lost", digest, 0)
            await store.delete(digest, Instant(NOW + 1))


async def _upload(store: ArtefactStore, upload_id: UUID, content: bytes, dice: random.Random) -> None:
    await store.begin(upload_id, len(content))
    _say("at", upload_id, 0)
    at = 0
    while at < len(content):
        end = min(len(content), at + dice.randrange(1, max(2, len(content) // 2)))
        assert await store.append(upload_id, at, chunks(content[at:end])) == end
        at = end
        _say("at", upload_id, at)


def _say(what: str, whom: object, more: object) -> None:
    os.write(1, f"{what} {whom} {more}\n".encode())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
