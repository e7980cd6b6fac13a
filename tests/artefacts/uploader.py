"""A process that uploads, finishes and deletes until it is killed, and says what it was told.

`python -m tests.artefacts.uploader DIRECTORY`: each line is `at UPLOAD OFFSET` or `held DIGEST UPLOAD` after it was
confirmed, and `gone UPLOAD 0` or `lost DIGEST 0` before it is removed: from there on nobody may count on it.
"""

import asyncio
import os
import random
import sys
from pathlib import Path
from uuid import UUID

from tests.artefacts.places import NOW, chunks, ids, opened
from tidemill.artefacts.local import LocalStore
from tidemill.core.clock import Instant

_SHARED = 5


async def main(root: Path) -> None:
    dice = random.SystemRandom()
    made = ids()
    async with opened(root) as store:
        await asyncio.gather(*(_upload_for_ever(store, made, dice) for _ in range(3)))


def content_of(upload_id: UUID) -> bytes:
    """What an upload holds. Some have the same bytes as others."""
    seed = upload_id.int if upload_id.int % 3 else upload_id.int % _SHARED
    dice = random.Random(seed)
    return dice.randbytes(dice.randrange(300_000))


async def _upload_for_ever(store: LocalStore, made, dice: random.Random) -> None:
    while True:
        upload_id = made.new(NOW)
        await _upload(store, upload_id, dice)
        digest = await store.finish(upload_id, None, NOW)
        _say("held", digest, upload_id)
        if dice.random() < 0.5:
            _say("gone", upload_id, 0)
            await store.abandon(upload_id)
        if dice.random() < 0.3:
            _say("lost", digest, 0)
            await store.delete(digest, Instant(NOW + 1))


async def _upload(store: LocalStore, upload_id: UUID, dice: random.Random) -> None:
    content = content_of(upload_id)
    await store.begin(upload_id, len(content))
    _say("at", upload_id, 0)
    at = 0
    while at < len(content):
        end = min(len(content), at + dice.randrange(1, 150_000))
        assert await store.append(upload_id, at, chunks(content[at:end])) == end
        at = end
        _say("at", upload_id, at)


def _say(what: str, whom: object, more: object) -> None:
    os.write(1, f"{what} {whom} {more}\n".encode())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
