"""Artefacts on a real disk: kept once, whole or not at all, and only for the pool's user to see."""

import asyncio
import hashlib
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.artefacts.places import LATER, NOW, KnownSets, chunks, digest_of, files, get, ids, opened, put
from tests.tidy.source import ROOT
from tidemill.artefacts.local import LocalStore
from tidemill.artefacts.receiving import PIECE_BYTES
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.uploads import Checksum
from tidemill.core.clock import Instant
from tidemill.core.faults import ArtefactFault, DiskFull

CONTENT = random.Random(3).randbytes(3 * PIECE_BYTES + 17)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    async with opened(tmp_path / "artefacts") as one:
        yield one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artefacts"


async def test_bytes_come_back_under_their_digest(store: LocalStore) -> None:
    digest = await put(store, CONTENT)
    assert await get(store, digest) == CONTENT
    assert await store.size(digest) == len(CONTENT)
    assert await get(store, digest, 5, 9) == CONTENT[5:9]
    assert await get(store, digest, len(CONTENT) - 3) == CONTENT[-3:]


async def test_nothing_is_an_artefact_as_well(store: LocalStore) -> None:
    digest = await put(store, b"")
    assert await get(store, digest) == b""
    assert await store.size(digest) == 0


async def test_an_upload_goes_on_after_interruptions_and_restarts(root: Path) -> None:
    upload_id = ids().new(NOW)
    at = 0
    for part in (1, PIECE_BYTES, 0, 70_000, len(CONTENT) - PIECE_BYTES - 70_001):
        async with opened(root) as store:
            if at == 0:
                await store.begin(upload_id, len(CONTENT))
            assert await store.offset(upload_id) == at
            at += part
            assert await store.append(upload_id, at - part, chunks(CONTENT[at - part : at])) == at
    async with opened(root) as store:
        assert await store.finish(upload_id, digest_of(CONTENT), NOW) == digest_of(CONTENT)
        assert await get(store, digest_of(CONTENT)) == CONTENT


async def test_two_processes_that_take_turns_hash_the_same_bytes(root: Path) -> None:
    upload_id = ids().new(NOW)
    async with opened(root) as one, opened(root) as other:
        await one.begin(upload_id, len(CONTENT))
        at = 0
        while at < len(CONTENT):
            store = one if at % 2 else other
            part = CONTENT[at : at + 99_999]
            at = await store.append(upload_id, at, chunks(part))
        assert await one.finish(upload_id, None, NOW) == digest_of(CONTENT)


async def test_the_same_bytes_are_kept_once_also_when_finished_at_once(root: Path) -> None:
    async with opened(root) as one, opened(root) as other:
        await asyncio.gather(*(put(store, CONTENT) for store in (one, other, one, other)))
    assert files(root) == {_place(digest_of(CONTENT))}


async def test_finishing_again_answers_the_same_until_the_upload_is_abandoned(store: LocalStore, root: Path) -> None:
    upload_id = await _uploaded(store, CONTENT)
    first = await store.finish(upload_id, None, NOW)
    assert await store.finish(upload_id, None, NOW) == first
    assert await store.delete(first, LATER)
    assert await store.finish(upload_id, None, NOW) == first
    await store.abandon(upload_id)
    assert await store.finish(upload_id, None, NOW) is UploadRefusal.UNKNOWN_UPLOAD
    assert await get(store, first) == CONTENT
    assert files(root) == {_place(first)}


async def test_nothing_is_added_to_what_is_finished(store: LocalStore) -> None:
    upload_id = await _uploaded(store, CONTENT)
    digest = await store.finish(upload_id, None, NOW)
    assert await store.append(upload_id, len(CONTENT), chunks(b"x")) is UploadRefusal.UPLOAD_BEYOND_LENGTH
    assert await store.append(upload_id, 0, chunks(b"x")) is UploadRefusal.UPLOAD_OFFSET_WRONG
    assert await store.append(upload_id, len(CONTENT), chunks()) == len(CONTENT)
    assert await get(store, digest) == CONTENT


async def test_an_upload_with_another_digest_than_expected_is_not_held(store: LocalStore, root: Path) -> None:
    upload_id = await _uploaded(store, CONTENT)
    assert await store.finish(upload_id, digest_of(b"other"), NOW) is UploadRefusal.UPLOAD_DIGEST_WRONG
    assert await store.size(digest_of(CONTENT)) is None
    assert not (root / "content").exists()


async def test_an_upload_that_is_incomplete_cannot_be_finished(store: LocalStore) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, 3)
    assert await store.append(upload_id, 0, chunks(b"ab")) == 2
    assert await store.finish(upload_id, None, NOW) is UploadRefusal.UPLOAD_INCOMPLETE


@pytest.mark.parametrize("offset", [-1, 1, 3, 2**63, 10**30])
async def test_a_part_at_another_offset_changes_nothing(store: LocalStore, offset: int) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, 4)
    await store.append(upload_id, 0, chunks(b"ab"))
    assert await store.append(upload_id, offset, chunks(b"cd")) is UploadRefusal.UPLOAD_OFFSET_WRONG
    assert await store.offset(upload_id) == 2


async def test_more_than_was_declared_is_refused_and_none_of_it_is_kept(store: LocalStore) -> None:
    upload_id = ids().new(NOW)
    content = CONTENT[: 2 * PIECE_BYTES]
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content[:5])) == 5
    too_much = await store.append(upload_id, 5, chunks(CONTENT[:PIECE_BYTES], CONTENT[:PIECE_BYTES]))
    assert too_much is UploadRefusal.UPLOAD_BEYOND_LENGTH
    assert await store.offset(upload_id) == 5
    assert await store.append(upload_id, 5, chunks(content[5:])) == len(content)
    assert await store.finish(upload_id, None, NOW) == digest_of(content)


async def test_a_part_with_a_wrong_checksum_is_dropped_and_can_be_sent_again(store: LocalStore) -> None:
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
    store: LocalStore, with_checksum: bool
) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, len(CONTENT))

    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT[: 2 * PIECE_BYTES]
        raise ConnectionResetError

    checksum = Checksum("sha256", hashlib.sha256(CONTENT).digest()) if with_checksum else None
    with pytest.raises(ConnectionResetError):
        await store.append(upload_id, 0, broken(), checksum)
    at = 0 if with_checksum else 2 * PIECE_BYTES
    assert await store.offset(upload_id) == at
    assert await store.append(upload_id, at, chunks(CONTENT[at:])) == len(CONTENT)
    assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)


async def test_a_request_that_is_cancelled_at_any_moment_leaves_an_upload_that_goes_on(store: LocalStore) -> None:
    dice = random.Random(5)
    for _ in range(30):
        upload_id = ids().new(NOW)
        await store.begin(upload_id, len(CONTENT))
        appending = asyncio.create_task(store.append(upload_id, 0, _slowly(CONTENT)))
        await asyncio.sleep(dice.uniform(0, 0.01))
        appending.cancel()
        await asyncio.wait([appending])
        at = await store.offset(upload_id)
        assert await store.append(upload_id, at, chunks(CONTENT[at:])) == len(CONTENT)
        assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)
        await store.abandon(upload_id)
    assert len(os.listdir("/proc/self/fd")) < 100


async def test_two_requests_at_once_do_not_mix(root: Path) -> None:
    upload_id = ids().new(NOW)
    waiting = asyncio.Event()

    async def held_up() -> AsyncIterator[bytes]:
        yield b"a"
        await waiting.wait()
        yield b"b"

    async with opened(root) as one, opened(root) as other:
        await one.begin(upload_id, 2)
        first = asyncio.create_task(one.append(upload_id, 0, held_up()))
        await asyncio.sleep(0.05)
        for store in (one, other):
            assert await store.append(upload_id, 0, chunks(b"xy")) is UploadRefusal.UPLOAD_BUSY
            assert await store.finish(upload_id, None, NOW) is UploadRefusal.UPLOAD_BUSY
        waiting.set()
        assert await first == 2
        assert await other.finish(upload_id, None, NOW) == digest_of(b"ab")


async def test_what_is_not_there_is_refused(store: LocalStore) -> None:
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


async def test_a_range_behind_the_end_is_refused_and_leaves_nothing_open(store: LocalStore) -> None:
    digest = await put(store, b"abc")
    before = len(os.listdir("/proc/self/fd"))
    for first, end in ((3, None), (-1, None), (2, 1)):
        assert await store.open(digest, first, end) is ArtefactRefusal.RANGE_NOT_THERE
    assert len(os.listdir("/proc/self/fd")) == before


async def test_who_reads_what_is_deleted_reads_to_the_end(store: LocalStore) -> None:
    digest = await put(store, CONTENT)
    reading = await store.open(digest)
    pieces = aiter(reading)
    read = [await anext(pieces)]
    assert await store.delete(digest, LATER)
    assert await store.size(digest) is None
    read += [piece async for piece in pieces]
    await reading.close()
    assert b"".join(read) == CONTENT


async def test_what_was_finished_again_meanwhile_is_not_deleted(store: LocalStore) -> None:
    digest = await put(store, CONTENT, NOW)
    await put(store, CONTENT, LATER)
    assert not await store.delete(digest, LATER)
    assert await store.delete(digest, Instant(LATER + 1))


async def test_a_clock_that_went_back_makes_nothing_older(store: LocalStore) -> None:
    digest = await put(store, CONTENT, LATER)
    await put(store, CONTENT, NOW)
    assert not await store.delete(digest, LATER)


async def test_finishing_and_deleting_the_same_bytes_at_once_never_loses_what_was_finished(root: Path) -> None:
    async with opened(root) as one, opened(root) as other:
        digest = digest_of(b"same")
        for step in range(60):
            await put(one, b"same", Instant(NOW + step))
            await asyncio.gather(
                put(one, b"same", Instant(NOW + step + 1)), other.delete(digest, Instant(NOW + step + 1))
            )
            assert await get(one, digest) == b"same"


async def test_a_sweep_removes_what_nobody_knows_and_nothing_young(store: LocalStore, root: Path) -> None:
    made = ids()
    kept_upload, lost_upload, young_upload = made.new(NOW), made.new(NOW), made.new(LATER)
    for upload_id in (kept_upload, lost_upload, young_upload):
        await store.begin(upload_id, 5)
        await store.append(upload_id, 0, chunks(b"ab"))
    kept, lost, young = await put(store, b"kept"), await put(store, b"lost"), await put(store, b"young", LATER)
    swept = await store.sweep(LATER, KnownSets([kept_upload], [kept]))
    assert (swept.uploads, swept.contents) == (1, 1)
    assert files(root) == {
        _place(kept), _place(young), f"uploads/{kept_upload}/5", f"uploads/{young_upload}/5"
    }  # fmt: skip
    assert await store.size(lost) is None


async def test_a_sweep_asks_in_batches_and_finds_all(store: LocalStore, root: Path) -> None:
    for number in range(30):
        await put(store, b"%d" % number)
    (root / "uploads" / str(ids().new(NOW))).mkdir(mode=0o700)
    (root / "uploads" / "notes.txt").write_text("not ours")
    swept = await store.sweep(LATER, KnownSets())
    assert (swept.uploads, swept.contents) == (1, 30)
    assert files(root) == {"uploads/notes.txt"}


async def test_nobody_else_may_look(store: LocalStore, root: Path) -> None:
    before = os.umask(0)
    try:
        upload_id = await _uploaded(store, b"secret")
        await store.finish(upload_id, None, NOW)
    finally:
        os.umask(before)
    for place, directories, names in os.walk(root):
        for name in (*directories, *names):
            assert not os.stat(Path(place) / name).st_mode & 0o077, name


async def test_a_directory_that_is_open_to_others_is_not_used(store: LocalStore, root: Path) -> None:
    (root / "uploads").mkdir(parents=True)
    (root / "uploads").chmod(0o755)
    with pytest.raises(ArtefactFault, match="0700"):
        await store.begin(ids().new(NOW), 1)


@pytest.mark.parametrize("level", ["content", "content/ab", "content/ab/cd"])
async def test_no_symlink_of_a_directory_is_followed(store: LocalStore, root: Path, tmp_path: Path, level: str) -> None:
    digest = Digest("abcd" + "0" * 60)
    elsewhere = tmp_path / "elsewhere"
    for place in (elsewhere, elsewhere / "cd", elsewhere / "ab", elsewhere / "ab" / "cd"):
        place.mkdir(mode=0o700)
        (place / digest.text).write_text("not ours")
    link = root / level
    link.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    for parent in ("", "content", "content/ab"):
        if (root / parent).is_dir():
            (root / parent).chmod(0o700)
    link.symlink_to(elsewhere)
    for use in (store.open(digest), store.size(digest), store.delete(digest, LATER)):
        with pytest.raises(ArtefactFault):
            await use
    assert (elsewhere / digest.text).read_text() == "not ours"


async def test_no_symlink_of_a_file_is_followed(store: LocalStore, root: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not ours")
    digest, upload_id = await put(store, b"ours"), ids().new(NOW)
    (root / _place(digest)).unlink()
    (root / _place(digest)).symlink_to(elsewhere)
    with pytest.raises(ArtefactFault):
        await store.open(digest)
    await store.begin(upload_id, 9)
    (root / "uploads" / str(upload_id) / "9").unlink()
    (root / "uploads" / str(upload_id) / "9").symlink_to(elsewhere)
    with pytest.raises(ArtefactFault):
        await store.append(upload_id, 0, chunks(b"overwrite"))
    await store.abandon(upload_id)
    assert elsewhere.read_text() == "not ours"
    await put(store, b"ours")
    assert await get(store, digest) == b"ours", "what stood in the way was replaced"


@pytest.mark.parametrize("name", ["x", "-1", "5 ", "a" * 63, "١"])
async def test_what_others_put_into_an_upload_is_a_fault(store: LocalStore, root: Path, name: str) -> None:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, 5)
    (root / "uploads" / str(upload_id) / "5").rename(root / "uploads" / str(upload_id) / name)
    with pytest.raises(ArtefactFault, match="not ours"):
        await store.append(upload_id, 0, chunks(b"x"))


async def test_a_file_that_the_disk_has_cut_is_replaced_by_the_next_upload_of_the_same(
    store: LocalStore, root: Path
) -> None:
    digest = await put(store, CONTENT)
    os.truncate(root / _place(digest), 5)
    await put(store, CONTENT)
    assert await get(store, digest) == CONTENT


async def test_a_file_that_shrinks_while_it_is_read_is_a_fault(store: LocalStore, root: Path) -> None:
    digest = await put(store, CONTENT)
    reading = await store.open(digest)
    os.truncate(root / _place(digest), 5)
    with pytest.raises(ArtefactFault, match="shorter"):
        _ = [piece async for piece in reading]
    await reading.close()


async def test_an_upload_is_not_begun_where_the_disk_has_no_room_for_it(root: Path) -> None:
    async with opened(root, keep_free_bytes=2**20) as store:
        upload_id = ids().new(NOW)
        with pytest.raises(DiskFull, match="make space"):
            await store.begin(upload_id, 2**60)
        assert await store.offset(upload_id) is UploadRefusal.UNKNOWN_UPLOAD


async def test_an_id_without_a_time_is_a_bug(store: LocalStore) -> None:
    with pytest.raises(AssertionError):
        await store.begin(uuid4(), 1)


def test_a_large_artefact_needs_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.artefacts.large", str(tmp_path), "200"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 20 * 1024 * 1024, f"{done.stdout} bytes more than before"


async def _uploaded(store: LocalStore, content: bytes) -> UUID:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content)) == len(content)
    return upload_id


async def _slowly(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 100_000):
        await asyncio.sleep(0)
        yield content[at : at + 100_000]


def _place(digest: Digest) -> str:
    return f"content/{digest.text[:2]}/{digest.text[2:4]}/{digest.text}"
