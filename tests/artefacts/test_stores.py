"""What every storage of artefacts does, on a local disk and on a real S3 server: kept whole or not at all."""

import asyncio
import hashlib
import os
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol
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
    opened,
    put,
)
from tests.worlds.artefacts.s3_server import place_in
from tidemill.artefacts.local_receiver import PIECE_BYTES
from tidemill.artefacts.store import ArtefactStore
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.uploads import Checksum
from tidemill.core.clock import Instant

CONTENT = random.Random(3).randbytes(11 * PIECE_BYTES + 17)


class Open(Protocol):
    """Opens one more store in the same place, as another process would."""

    def __call__(self) -> AbstractAsyncContextManager[ArtefactStore]: ...


@pytest.fixture(params=["local disk", "S3", "S3 in parts"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "local disk":
        return lambda: opened(tmp_path / "artefacts")
    place = place_in(request.getfixturevalue("s3_endpoint"), f"{uuid4()}/")
    return lambda: in_bucket(place, LEAST_PART_BYTES if "parts" in request.param else None)


@pytest.fixture
async def store(again: Open) -> AsyncIterator[ArtefactStore]:
    async with again() as one:
        yield one


async def test_bytes_come_back_under_their_digest(store: ArtefactStore) -> None:
    digest = await put(store, CONTENT)
    assert await get(store, digest) == CONTENT
    assert await store.size(digest) == len(CONTENT)
    assert await get(store, digest, 5, 9) == CONTENT[5:9]
    assert await get(store, digest, len(CONTENT) - 3) == CONTENT[-3:]


async def test_nothing_is_an_artefact_as_well(store: ArtefactStore) -> None:
    digest = await put(store, b"")
    assert await get(store, digest) == b""
    assert await store.size(digest) == 0


async def test_an_upload_goes_on_after_interruptions_and_restarts(again: Open) -> None:
    upload_id = ids().new(NOW)
    at = 0
    for part in (1, PIECE_BYTES, 0, 70_000, len(CONTENT) - PIECE_BYTES - 70_001):
        async with again() as store:
            if at == 0:
                await store.begin(upload_id, len(CONTENT))
            assert await store.offset(upload_id) == at
            at += part
            assert await store.append(upload_id, at - part, chunks(CONTENT[at - part : at])) == at
    async with again() as store:
        assert await store.finish(upload_id, digest_of(CONTENT), NOW) == digest_of(CONTENT)
        assert await get(store, digest_of(CONTENT)) == CONTENT


async def test_two_processes_that_take_turns_hash_the_same_bytes(again: Open) -> None:
    upload_id = ids().new(NOW)
    async with again() as one, again() as other:
        await one.begin(upload_id, len(CONTENT))
        at = 0
        while at < len(CONTENT):
            store = one if at % 2 else other
            part = CONTENT[at : at + 3_999_999]
            at = await store.append(upload_id, at, chunks(part))
        assert await one.finish(upload_id, None, NOW) == digest_of(CONTENT)


async def test_finishing_again_answers_the_same_until_the_upload_is_abandoned(store: ArtefactStore) -> None:
    upload_id = await _uploaded(store, CONTENT)
    first = await store.finish(upload_id, None, NOW)
    assert await store.finish(upload_id, None, NOW) == first
    assert await store.delete(first, LATER)
    assert await store.finish(upload_id, None, NOW) == first
    await store.abandon(upload_id)
    assert await store.finish(upload_id, None, NOW) is UploadRefusal.UNKNOWN_UPLOAD
    assert await get(store, first) == CONTENT


async def test_nothing_is_added_to_what_is_finished(store: ArtefactStore) -> None:
    upload_id = await _uploaded(store, CONTENT)
    digest = await store.finish(upload_id, None, NOW)
    assert await store.append(upload_id, len(CONTENT), chunks(b"x")) is UploadRefusal.UPLOAD_BEYOND_LENGTH
    assert await store.append(upload_id, 0, chunks(b"x")) is UploadRefusal.UPLOAD_OFFSET_WRONG
    assert await store.append(upload_id, len(CONTENT), chunks()) == len(CONTENT)
    assert await get(store, digest) == CONTENT


async def test_an_upload_with_another_digest_than_expected_is_not_held(store: ArtefactStore) -> None:
    upload_id = await _uploaded(store, CONTENT)
    assert await store.finish(upload_id, digest_of(b"other"), NOW) is UploadRefusal.UPLOAD_DIGEST_WRONG
    assert await store.size(digest_of(CONTENT)) is None


async def test_an_upload_that_is_incomplete_cannot_be_finished(store: ArtefactStore) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, 3)
    assert await store.append(upload_id, 0, chunks(b"ab")) == 2
    assert await store.finish(upload_id, None, NOW) is UploadRefusal.UPLOAD_INCOMPLETE


@pytest.mark.parametrize("offset", [-1, 1, 3, 2**63, 10**30])
async def test_a_part_at_another_offset_changes_nothing(store: ArtefactStore, offset: int) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, 4)
    await store.append(upload_id, 0, chunks(b"ab"))
    assert await store.append(upload_id, offset, chunks(b"cd")) is UploadRefusal.UPLOAD_OFFSET_WRONG
    assert await store.offset(upload_id) == 2


async def test_more_than_was_declared_is_refused_and_none_of_it_is_kept(store: ArtefactStore) -> None:
    upload_id = ids().new(NOW)
    content = CONTENT[: 2 * PIECE_BYTES]
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content[:5])) == 5
    too_much = await store.append(upload_id, 5, chunks(CONTENT[:PIECE_BYTES], CONTENT[:PIECE_BYTES]))
    assert too_much is UploadRefusal.UPLOAD_BEYOND_LENGTH
    assert await store.offset(upload_id) == 5
    assert await store.append(upload_id, 5, chunks(content[5:])) == len(content)
    assert await store.finish(upload_id, None, NOW) == digest_of(content)


async def test_a_part_with_a_wrong_checksum_is_dropped_and_can_be_sent_again(store: ArtefactStore) -> None:
    upload_id = ids().new(NOW)
    checksum = Checksum("sha1", hashlib.sha1(CONTENT).digest())
    await store.begin(upload_id, len(CONTENT))
    damaged = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    assert await store.append(upload_id, 0, chunks(damaged), checksum) is UploadRefusal.UPLOAD_CHECKSUM_WRONG
    assert await store.offset(upload_id) == 0
    assert await store.append(upload_id, 0, chunks(CONTENT), checksum) == len(CONTENT)
    assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)


@pytest.mark.parametrize("with_checksum", [False, True])
async def test_of_a_part_that_breaks_off_what_came_is_kept_unless_it_had_a_checksum(
    store: ArtefactStore, with_checksum: bool
) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, len(CONTENT))

    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT[: 2 * PIECE_BYTES]
        yield CONTENT[2 * PIECE_BYTES : 5 * PIECE_BYTES + 4_321]
        raise ConnectionResetError

    checksum = Checksum("sha256", hashlib.sha256(CONTENT).digest()) if with_checksum else None
    with pytest.raises(ConnectionResetError):
        await store.append(upload_id, 0, broken(), checksum)
    at = 0 if with_checksum else 5 * PIECE_BYTES + 4_321
    assert await store.offset(upload_id) == at
    assert await store.append(upload_id, at, chunks(CONTENT[at:])) == len(CONTENT)
    assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)


async def test_a_request_that_is_cancelled_at_any_moment_leaves_an_upload_that_goes_on(store: ArtefactStore) -> None:
    dice = random.Random(5)
    for _ in range(12):
        upload_id = ids().new(NOW)
        await store.begin(upload_id, len(CONTENT))
        appending = asyncio.create_task(store.append(upload_id, 0, _slowly(CONTENT)))
        await asyncio.sleep(dice.uniform(0, 0.2))
        appending.cancel()
        await asyncio.wait([appending])
        at = await store.offset(upload_id)
        assert await store.append(upload_id, at, chunks(CONTENT[at:])) == len(CONTENT)
        assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)
        await store.abandon(upload_id)
    assert len(os.listdir("/proc/self/fd")) < 100


@pytest.mark.parametrize("came", [1, PIECE_BYTES - 1, LEAST_PART_BYTES + 3, 11 * PIECE_BYTES])
async def test_of_a_request_that_is_cancelled_everything_that_came_is_kept(store: ArtefactStore, came: int) -> None:
    upload_id, taken = ids().new(NOW), asyncio.Event()
    await store.begin(upload_id, len(CONTENT))

    async def stuck() -> AsyncIterator[bytes]:
        for at in range(0, came, 300_000):
            yield CONTENT[at : min(at + 300_000, came)]
        taken.set()
        await asyncio.sleep(600)

    appending = asyncio.create_task(store.append(upload_id, 0, stuck()))
    await taken.wait()
    appending.cancel()
    await asyncio.wait([appending])
    assert appending.cancelled()
    assert await store.offset(upload_id) == came
    assert await store.append(upload_id, came, chunks(CONTENT[came:])) == len(CONTENT)
    assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)


@pytest.mark.parametrize("after_s", [None, 0, 0.002])
async def test_a_chunk_that_is_on_its_way_when_a_request_is_cancelled_is_kept(
    store: ArtefactStore, after_s: float | None
) -> None:
    """Cancelled while it is taken, or so long after it was the last."""
    came = LEAST_PART_BYTES + 99
    upload_id, given, ended = ids().new(NOW), asyncio.Event(), asyncio.Event()
    await store.begin(upload_id, len(CONTENT))

    async def one_chunk() -> AsyncIterator[bytes]:
        given.set()
        yield CONTENT[:came]
        ended.set()

    appending = asyncio.create_task(store.append(upload_id, 0, one_chunk()))
    await (given if after_s is None else ended).wait()
    await asyncio.sleep(after_s or 0)
    appending.cancel()
    await asyncio.wait([appending])
    assert await store.offset(upload_id) == came
    assert await store.append(upload_id, came, chunks(CONTENT[came:])) == len(CONTENT)
    assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)


async def test_what_is_not_there_is_refused(store: ArtefactStore) -> None:
    upload_id, digest = ids().new(NOW), digest_of(b"unknown")
    for answer in (
        await store.offset(upload_id),
        await store.append(upload_id, 0, chunks(b"x")),
        await store.finish(upload_id, None, NOW),
    ):
        assert answer is UploadRefusal.UNKNOWN_UPLOAD
    await store.abandon(upload_id)
    assert await store.size(digest) is None
    assert await store.open(digest) is ArtefactRefusal.UNKNOWN_ARTEFACT
    assert not await store.delete(digest, LATER)


async def test_a_range_behind_the_end_is_refused_and_leaves_nothing_open(store: ArtefactStore) -> None:
    digest = await put(store, b"abc")
    before = len(os.listdir("/proc/self/fd"))
    for first, end in ((3, None), (-1, None), (2, 1)):
        assert await store.open(digest, first, end) is ArtefactRefusal.RANGE_NOT_THERE
    assert len(os.listdir("/proc/self/fd")) == before


async def test_who_reads_what_is_deleted_reads_to_the_end(store: ArtefactStore) -> None:
    digest = await put(store, CONTENT)
    reading = await store.open(digest)
    pieces = aiter(reading)
    read = [await anext(pieces)]
    assert await store.delete(digest, LATER)
    assert await store.size(digest) is None
    read += [piece async for piece in pieces]
    await reading.close()
    assert b"".join(read) == CONTENT


async def test_what_was_finished_again_meanwhile_is_not_deleted(store: ArtefactStore) -> None:
    digest = await put(store, CONTENT, NOW)
    await put(store, CONTENT, LATER)
    assert not await store.delete(digest, LATER)
    assert await store.delete(digest, Instant(LATER + 1))


async def test_a_clock_that_went_back_makes_nothing_older(store: ArtefactStore) -> None:
    digest = await put(store, CONTENT, LATER)
    await put(store, CONTENT, NOW)
    assert not await store.delete(digest, LATER)


async def test_finishing_and_deleting_the_same_bytes_at_once_never_loses_what_was_finished(again: Open) -> None:
    async with again() as one, again() as other:
        digest = digest_of(b"same")
        for step in range(20):
            await put(one, b"same", Instant(NOW + step))
            await asyncio.gather(
                put(one, b"same", Instant(NOW + step + 1)), other.delete(digest, Instant(NOW + step + 1))
            )
            assert await get(one, digest) == b"same"


async def test_an_id_without_a_time_is_a_bug(store: ArtefactStore) -> None:
    with pytest.raises(AssertionError):
        await store.begin(uuid4(), 1)


async def test_a_sweep_removes_what_nobody_knows_and_nothing_young(store: ArtefactStore) -> None:
    made = ids()
    kept_upload, lost_upload, young_upload = made.new(NOW), made.new(NOW), made.new(LATER)
    for upload_id in (kept_upload, lost_upload, young_upload):
        await store.begin(upload_id, 400_000)
        await store.append(upload_id, 0, chunks(CONTENT[:350_000]))
    kept, lost, young = await put(store, b"kept"), await put(store, CONTENT), await put(store, b"young", LATER)
    swept = await store.sweep(LATER, KnownSets([kept_upload], [kept]))
    assert (swept.uploads, swept.contents) == (1, 1)
    assert [await store.offset(upload_id) for upload_id in (kept_upload, young_upload)] == [350_000, 350_000]
    assert await store.offset(lost_upload) is UploadRefusal.UNKNOWN_UPLOAD
    assert [await store.size(one) for one in (kept, lost, young)] == [4, None, 5]


async def _uploaded(store: ArtefactStore, content: bytes) -> UUID:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content)) == len(content)
    return upload_id


async def _slowly(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 100_000):
        await asyncio.sleep(0)
        yield content[at : at + 100_000]
