"""Artefacts on a real disk: kept once, whole or not at all, and only for the pool's user to see."""

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from itertools import cycle
from mmap import mmap
from pathlib import Path
from uuid import UUID

import pytest

from tests.tidy.source import ROOT
from tests.worlds.artefacts.artefact_stores import (
    LATER,
    NOW,
    KnownSets,
    chunks,
    digest_of,
    files,
    get,
    ids,
    opened,
    put,
)
from tidemill.artefacts.local import LocalStore
from tidemill.artefacts.local_receiver import PIECE_BYTES
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.faults import ArtefactFault, DiskFull
from tidemill.serving.upload_body import BUFFER_BYTES

CONTENT = random.Random(3).randbytes(3 * PIECE_BYTES + 17)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    async with opened(tmp_path / "artefacts") as one:
        yield one


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artefacts"


async def test_the_same_bytes_are_kept_once_also_when_finished_at_once(root: Path) -> None:
    async with opened(root) as one, opened(root) as other:
        await asyncio.gather(*(put(store, CONTENT) for store in (one, other, one, other)))
    assert files(root) == {_place(digest_of(CONTENT))}


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


def test_a_large_artefact_needs_little_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.worlds.artefacts.large_artefact", "200", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 20 * 1024 * 1024, f"{done.stdout} bytes more than before"


@pytest.mark.parametrize(
    "at", [0, 1, 4095, 4096, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 4096, 2 * PIECE_BYTES + 5]
)
async def test_wherever_an_upload_goes_on_its_bytes_are_the_ones_sent(root: Path, at: int) -> None:
    upload_id = ids().new(NOW)
    async with opened(root) as store:
        await store.begin(upload_id, len(CONTENT))
        assert await store.append(upload_id, 0, chunks(CONTENT[:at])) == at
    async with opened(root) as store:
        assert await store.append(upload_id, at, chunks(CONTENT[at : at + 70_001], CONTENT[at + 70_001 :])) == len(
            CONTENT
        )
        assert (root / "uploads" / str(upload_id) / str(len(CONTENT))).read_bytes() == CONTENT
        assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)
        assert await get(store, digest_of(CONTENT)) == CONTENT


@pytest.mark.parametrize("at", [0, 1, 4096, PIECE_BYTES, PIECE_BYTES + 4096, BUFFER_BYTES - 5])
async def test_chunks_that_lie_as_the_disk_takes_them_are_the_bytes_sent_though_their_memory_is_used_again(
    root: Path, at: int
) -> None:
    content = CONTENT * 5
    upload_id, places = ids().new(NOW), [memoryview(mmap(-1, BUFFER_BYTES)) for _ in range(3)]

    async def pieces() -> AsyncIterator[memoryview]:
        """As a body is taken from its connection: whose turn it is is filled anew, and what was there is gone."""
        now = at
        for place in cycle(places):
            first, end = now % BUFFER_BYTES, min(BUFFER_BYTES, now % BUFFER_BYTES + len(content) - now)
            place[:] = bytes(BUFFER_BYTES)
            place[first:end] = content[now : now + end - first]
            now += end - first
            yield place[first:end]
            if now == len(content):
                return

    async with opened(root) as store:
        await store.begin(upload_id, len(content))
        await store.append(upload_id, 0, chunks(content[:at]))
        assert await store.append(upload_id, at, pieces()) == len(content)
        assert await store.finish(upload_id, None, NOW) == digest_of(content)
        assert await get(store, digest_of(content)) == content


async def test_what_comes_slowly_is_on_the_disk_before_a_piece_of_it_is_full(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.artefacts.local_receiver._GATHERED_S", 0.02)
    upload_id = ids().new(NOW)
    await store.begin(upload_id, 100_000)
    seen: list[int | UploadRefusal] = []

    async def slowly() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield bytes(10_000)
            await asyncio.sleep(0.03)
            seen.append(await store.offset(upload_id))

    assert await store.append(upload_id, 0, slowly()) == 100_000
    assert [*map(bool, seen[2:])] == [True] * 8


async def test_an_upload_that_is_abandoned_while_bytes_come_takes_them_and_is_gone(root: Path) -> None:
    upload_id = ids().new(NOW)

    async def until_abandoned() -> AsyncIterator[bytes]:
        await other.abandon(upload_id)
        yield CONTENT

    async with opened(root) as store, opened(root) as other:
        await store.begin(upload_id, len(CONTENT))
        assert await store.append(upload_id, 0, until_abandoned()) == len(CONTENT)
        assert await store.finish(upload_id, None, NOW) is UploadRefusal.UNKNOWN_UPLOAD
    assert files(root) == set()


@pytest.mark.needs("root")
async def test_a_disk_that_cannot_write_past_the_memory_of_files_holds_the_same_bytes(simple_disk: Path) -> None:
    with pytest.raises(OSError, match="Invalid argument"):
        os.open(simple_disk / "probe", os.O_CREAT | os.O_WRONLY | os.O_DIRECT)
    async with opened(simple_disk / "artefacts", keep_free_bytes=-(2**60)) as store:
        assert await get(store, await put(store, CONTENT)) == CONTENT


@pytest.fixture
def simple_disk(tmp_path: Path) -> Iterator[Path]:
    """One that says it has no room, too."""
    if subprocess.run(["mount", "-t", "ramfs", "ramfs", str(tmp_path)], check=False).returncode:
        pytest.skip("this root may not mount")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


async def _uploaded(store: LocalStore, content: bytes) -> UUID:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content)) == len(content)
    return upload_id


def _place(digest: Digest) -> str:
    return f"content/{digest.text[:2]}/{digest.text[2:4]}/{digest.text}"
