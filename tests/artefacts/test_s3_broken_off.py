"""Requests to an S3 server that broke off: some servers keep an empty object there, or the beginning of one.

Whatever is not of the size that was written counts as nothing: an upload goes on over it, and nothing that is held is
given up for it.
"""

import asyncio
import hashlib
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID, uuid4

import pytest

from tests.worlds.artefacts.artefact_stores import (
    LATER,
    LEAST_PART_BYTES,
    NOW,
    KnownSets,
    chunks,
    digest_of,
    get,
    ids,
    in_bucket,
    put,
)
from tests.worlds.artefacts.s3_server import place_in
from tidemill.artefacts.s3 import S3Store
from tidemill.artefacts.s3_bucket import Bucket, BucketAddress
from tidemill.artefacts.s3_contents import S3Content
from tidemill.artefacts.s3_signing import path_text, signed_headers
from tidemill.artefacts.s3_upload import at_key, record_key, tags_key, whole_key
from tidemill.artefacts.threads import Threads
from tidemill.core.clock import SECOND, Instant

SMALL = random.Random(21).randbytes(70_001)
LARGE = random.Random(22).randbytes(2 * LEAST_PART_BYTES + 17)
SOON = Instant(NOW + SECOND)


@dataclass(frozen=True)
class Shelf:
    """A store, and its bucket as the server has it."""

    place: BucketAddress
    store: S3Store
    bucket: Bucket


@pytest.fixture
async def shelf(s3_endpoint: str) -> AsyncIterator[Shelf]:
    place = place_in(s3_endpoint, f"{uuid4()}/")
    threads = Threads(1)
    bucket = Bucket(place, threads)
    async with in_bucket(place, LEAST_PART_BYTES) as store:
        yield Shelf(place, store, bucket)
    await bucket.close()
    threads.close()


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "in parts"])
@pytest.mark.parametrize("kept", [0, 5], ids=["empty", "cut"])
async def test_an_upload_goes_on_where_it_stood_before_a_request_broke_off(
    shelf: Shelf, content: bytes, kept: int
) -> None:
    upload_id = await _begun(shelf, content, half := len(content) // 2)
    for later in (half + 9, len(content)):
        await shelf.bucket.put(at_key(upload_id, later), content[:kept])
    await _goes_on(shelf.store, upload_id, content, half)


async def test_what_a_real_server_keeps_of_a_broken_request_is_not_where_an_upload_stands(shelf: Shelf) -> None:
    upload_id = await _begun(shelf, LARGE, half := len(LARGE) // 2)
    await _break_off(shelf.place, at_key(upload_id, half + 9), LARGE[:9])
    async with asyncio.timeout(20):
        while await shelf.bucket.size(at_key(upload_id, half + 9)) != 0:
            await asyncio.sleep(0.05)
    await _goes_on(shelf.store, upload_id, LARGE, half)


@pytest.mark.parametrize("kept", [0, 5], ids=["empty", "cut"])
async def test_an_upload_whose_record_broke_off_is_begun_anew(shelf: Shelf, kept: int) -> None:
    upload_id = ids().new(NOW)
    await shelf.bucket.put(record_key(upload_id), b'{"length_bytes": 7}'[:kept])
    await shelf.store.begin(upload_id, len(LARGE))
    await _goes_on(shelf.store, upload_id, LARGE, 0)


@pytest.mark.parametrize("kept", [0, 5], ids=["empty", "cut"])
async def test_tags_and_a_whole_that_broke_off_are_made_anew(shelf: Shelf, kept: int) -> None:
    upload_id = await _begun(shelf, LARGE, len(LARGE))
    await shelf.bucket.put(tags_key(upload_id, 1), b'["one", "two"]'[:kept])
    await shelf.bucket.put(whole_key(upload_id), LARGE[:kept])
    async with in_bucket(shelf.place, LEAST_PART_BYTES) as restarted:
        assert await restarted.finish(upload_id, None, NOW) == digest_of(LARGE)
        assert await get(restarted, digest_of(LARGE)) == LARGE


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "in parts"])
@pytest.mark.parametrize("kept", [0, 5], ids=["empty", "cut"])
async def test_what_is_held_is_not_given_up_for_a_later_name_that_broke_off(
    shelf: Shelf, content: bytes, kept: int
) -> None:
    digest = await put(shelf.store, content)
    broken = S3Content(SOON, ids().new(NOW), len(content), digest, here=True).key
    await shelf.bucket.put(broken, content[:kept])
    assert await shelf.store.size(digest) == len(content)
    assert await get(shelf.store, digest) == content
    await put(shelf.store, content)  # who finishes the same bytes removes smaller names
    for _ in range(2):
        await shelf.store.sweep(LATER, KnownSets(digests=[digest]))
        assert await get(shelf.store, digest) == content
    assert await shelf.bucket.size(broken) is None


async def test_a_name_that_broke_off_keeps_nothing_from_being_deleted_and_may_still_become_whole(shelf: Shelf) -> None:
    digest = await put(shelf.store, SMALL)
    late = S3Content(LATER, ids().new(NOW), len(SMALL), digest, here=True).key
    await shelf.bucket.put(late, b"")
    assert await shelf.store.delete(digest, LATER)
    assert await shelf.store.size(digest) is None
    assert not await shelf.store.delete(digest, LATER)
    await shelf.bucket.put(late, SMALL)
    assert await get(shelf.store, digest) == SMALL
    assert not await shelf.store.delete(digest, LATER)


async def test_a_sweep_leaves_nothing_of_what_broke_off(shelf: Shelf) -> None:
    upload_id, unknown = ids().new(NOW), ids().new(NOW)
    await shelf.bucket.put(record_key(upload_id), b"{")
    await shelf.bucket.begin_parts(whole_key(upload_id))
    await shelf.bucket.put(S3Content(NOW, unknown, len(SMALL), digest_of(SMALL), here=True).key, b"")
    await shelf.store.sweep(LATER, KnownSets())
    assert [found.key async for found in shelf.bucket.list("")] == []
    assert [key async for key, _ in shelf.bucket.uploads_in_parts(whole_key(upload_id))] == []


async def _begun(shelf: Shelf, content: bytes, until: int) -> UUID:
    upload_id = ids().new(NOW)
    await shelf.store.begin(upload_id, len(content))
    assert await shelf.store.append(upload_id, 0, chunks(content[:until])) == until
    return upload_id


async def _goes_on(store: S3Store, upload_id: UUID, content: bytes, at: int) -> None:
    assert await store.offset(upload_id) == at
    assert await store.append(upload_id, at, chunks(content[at:])) == len(content)
    assert await store.finish(upload_id, None, NOW) == digest_of(content)
    assert await get(store, digest_of(content)) == content


async def _break_off(place: BucketAddress, key: str, body: bytes) -> None:
    """Say what is to come, and hang up before any of it."""
    host = place.endpoint.removeprefix("http://")
    path = path_text(place.bucket, place.prefix + key)
    now = Instant(time.time_ns() // 1000)
    headers = signed_headers(place.credentials, "PUT", host, (path, ""), hashlib.sha256(body).hexdigest(), now)
    told = {**headers, "host": host, "content-length": str(len(body))}
    lines = [f"PUT {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items()), "", ""]
    _, writer = await asyncio.open_connection(*host.split(":"))
    writer.write("\r\n".join(lines).encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
