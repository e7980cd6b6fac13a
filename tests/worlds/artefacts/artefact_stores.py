"""Stores for tests, and what goes into them."""

import os
import random
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from uuid import UUID

from tidemill.artefacts.local import LocalStore
from tidemill.artefacts.s3 import S3Store
from tidemill.artefacts.s3_bucket import BucketAddress
from tidemill.artefacts.s3_upload import PART_BYTES
from tidemill.artefacts.store import ArtefactStore
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import HOUR, Instant
from tidemill.core.ids import Ids

NOW = Instant(1_700_000_000_000_000)
LATER = Instant(NOW + HOUR)
LEAST_PART_BYTES = 5 * 1024 * 1024
"""The smallest part that an S3 server takes."""


def ids() -> Ids:
    return Ids(random.SystemRandom().getrandbits)


@asynccontextmanager
async def opened(root: Path, keep_free_bytes: int = 0) -> AsyncIterator[LocalStore]:
    store = LocalStore(root, 2, keep_free_bytes)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def in_bucket(place: BucketAddress, part_bytes: int | None = None) -> AsyncIterator[S3Store]:
    store = S3Store(place, 2, part_bytes or PART_BYTES)
    try:
        yield store
    finally:
        await store.close()


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def put(store: ArtefactStore, content: bytes, now: Instant = NOW) -> Digest:
    """Upload at once, and leave no upload."""
    upload_id = ids().new(now)
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content)) == len(content)
    digest = await store.finish(upload_id, None, now)
    assert digest == digest_of(content)
    await store.abandon(upload_id)
    return digest


async def get(store: ArtefactStore, digest: Digest, first: int = 0, end: int | None = None) -> bytes:
    reading = await store.open(digest, first, end)
    try:
        return b"".join([piece async for piece in reading])
    finally:
        await reading.close()


def digest_of(content: bytes) -> Digest:
    return Digest(sha256(content).hexdigest())


def files(root: Path) -> set[str]:
    """Every file below a store's directory."""
    return {os.path.relpath(os.path.join(place, name), root) for place, _, names in os.walk(root) for name in names}


class KnownSets:
    """What should be there, as two sets."""

    def __init__(self, uploads: Collection[UUID] = (), digests: Collection[Digest] = ()) -> None:
        self._uploads = set(uploads)
        self._digests = set(digests)

    async def uploads(self, among: Sequence[UUID]) -> Collection[UUID]:
        return self._uploads & set(among)

    async def digests(self, among: Sequence[Digest]) -> Collection[Digest]:
        return self._digests & set(among)
