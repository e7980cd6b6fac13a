"""The cache of a node: fetched once, checked before use, within its limit, and nothing of what others put there."""

import asyncio
import os
import random
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

import pytest

from tests.agent.artefacts.test_transfers import transfers_to
from tests.tidy.source import ROOT
from tests.worlds.agents.artefact_server import Server, artefact_server
from tidemill.agent.artefacts.cache import Cache
from tidemill.agent.artefacts.transfers import TransferFault, Transfers
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.faults import AgentFault, ArtefactFault, DiskFull

SIZE = 1_000_000
ROOM = 3 * SIZE


def content(number: int, size: int = SIZE) -> bytes:
    return random.Random(number).randbytes(size)


def digest(number: int) -> Digest:
    return Digest(sha256(content(number)).hexdigest())


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with artefact_server() as one:
        one.contents = {digest(number).text: content(number) for number in range(6)}
        yield one


@pytest.fixture
async def transfers(server: Server, tmp_path: Path) -> AsyncIterator[Transfers]:
    one = transfers_to((server.url,), tmp_path)
    yield one
    await one.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
async def cache(place: Path, transfers: Transfers) -> Cache:
    return await Cache.open(place, ROOM, transfers, 0)


async def used(cache: Cache, number: int) -> bytes:
    async with cache.use(digest(number), SIZE) as path:
        return path.read_bytes()


async def test_an_artefact_is_fetched_once_and_is_read_only(cache: Cache, server: Server) -> None:
    for _ in range(3):
        assert await used(cache, 0) == content(0)
    assert server.sent_bytes == SIZE
    async with cache.use(digest(0), SIZE) as path:
        assert path.stat().st_mode & 0o777 == 0o444
        assert path.parent.stat().st_mode & 0o777 == 0o700


async def test_ten_at_once_fetch_it_once(cache: Cache, server: Server) -> None:
    server.piece_pause_s = 0.001
    found = await asyncio.gather(*(used(cache, 0) for _ in range(10)))
    assert set(found) == {content(0)}
    assert server.sent_bytes == SIZE


async def test_when_the_one_who_fetches_gives_up_the_next_goes_on(cache: Cache, server: Server) -> None:
    server.piece_pause_s = 0.01
    first = asyncio.create_task(used(cache, 0))
    second = asyncio.create_task(used(cache, 0))
    while server.sent_bytes < SIZE // 2:
        await asyncio.sleep(0.001)
    first.cancel()
    assert await second == content(0)
    assert server.sent_bytes < SIZE * 1.3


async def test_whoever_gives_up_while_it_gets_its_name_does_no_harm_to_the_next(
    cache: Cache, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk takes its time, and the next one has the turn meanwhile."""
    writing, fsync = threading.Event(), os.fsync

    def slow(file: int) -> None:
        if stat.S_ISREG(os.fstat(file).st_mode):
            writing.set()
            time.sleep(0.2)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slow)
    first = asyncio.create_task(used(cache, 0))
    second = asyncio.create_task(used(cache, 0))
    assert await asyncio.to_thread(writing.wait, 10)
    first.cancel()
    assert await second == content(0)
    assert server.sent_bytes == SIZE


async def test_the_next_process_has_what_was_there(
    cache: Cache, place: Path, transfers: Transfers, server: Server
) -> None:
    await used(cache, 0)
    again = await Cache.open(place, ROOM, transfers, 0)
    assert dict(again.contents()) == {digest(0): SIZE}
    assert await used(again, 0) == content(0)
    assert server.sent_bytes == SIZE


def test_a_fetch_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """The bytes that came are not asked for again."""
    command = [sys.executable, "-m", "tests.worlds.agents.killed_fetch", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    sent, first = map(int, done.stdout.split())
    assert first > 0
    assert sent <= 20_000_000 + 4 * 1024 * 1024, "little more than what was on its way when it was killed"


async def test_the_least_recently_used_goes_first(cache: Cache, server: Server, place: Path) -> None:
    for number in (0, 1, 2):
        await used(cache, number)
    await used(cache, 0)
    await used(cache, 3)
    assert set(cache.contents()) == {digest(0), digest(2), digest(3)}
    assert {name.name for name in (place / "content").iterdir()} == {digest(n).text for n in (0, 2, 3)}
    assert next(iter(cache.contents())) == digest(3)


async def test_what_is_in_use_stays_and_what_does_not_fit_beside_it_is_a_fault(cache: Cache, place: Path) -> None:
    async with AsyncExitStack() as stack:
        paths = [await stack.enter_async_context(cache.use(digest(number), SIZE)) for number in (0, 1, 2)]
        with pytest.raises(DiskFull, match="in use"):
            await used(cache, 3)
        assert [path.read_bytes() for path in paths] == [content(number) for number in (0, 1, 2)]
    assert await used(cache, 3) == content(3)
    assert len(cache.contents()) == 3


async def test_many_at_once_never_pass_the_limit(cache: Cache, place: Path) -> None:
    async def use(number: int) -> None:
        for _ in range(20):
            try:
                assert await used(cache, number % 6) == content(number % 6)
                break
            except DiskFull:
                await asyncio.sleep(0.02)
        here = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        assert here <= ROOM

    await asyncio.gather(*(use(number) for number in range(18)))


async def test_what_is_larger_than_the_cache_is_refused_before_it_comes(cache: Cache, server: Server) -> None:
    with pytest.raises(AgentFault, match=r"agent\.cache_bytes"):
        async with cache.use(digest(0), ROOM + 1):
            pass
    assert server.asked == []


async def test_a_disk_without_room_is_a_fault_and_others_go_first(place: Path, transfers: Transfers) -> None:
    free = os.statvfs(place.parent).f_bavail * os.statvfs(place.parent).f_frsize
    cache = await Cache.open(place, ROOM, transfers, free * 2)
    with pytest.raises(DiskFull, match="make space"):
        await used(cache, 0)
    assert dict(cache.contents()) == {}


async def test_wrong_bytes_are_removed_and_fetched_again(cache: Cache, server: Server, place: Path) -> None:
    server.replaced = [content(9)]
    assert await used(cache, 0) == content(0)
    assert list((place / "parts").iterdir()) == []


async def test_a_pool_that_always_sends_wrong_bytes_is_given_up(cache: Cache, server: Server, place: Path) -> None:
    server.replaced = [content(9)] * 3
    with pytest.raises(AgentFault, match="something else"):
        await used(cache, 0)
    assert [file for file in place.rglob("*") if file.is_file()] == []
    assert await used(cache, 0) == content(0)


async def test_what_the_pool_does_not_have_leaves_nothing(cache: Cache) -> None:
    with pytest.raises(TransferFault):
        await used(cache, 9)
    assert dict(cache.contents()) == {}


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_file_that_the_disk_damaged_is_fetched_again(
    cache: Cache, place: Path, transfers: Transfers, restarts: bool
) -> None:
    await used(cache, 0)
    file = place / "content" / digest(0).text
    times = file.stat()
    file.chmod(0o600)
    with file.open("r+b") as out:
        out.write(b"damage")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    if restarts:
        cache = await Cache.open(place, ROOM, transfers, 0)
    assert await used(cache, 0) == content(0)


@pytest.mark.parametrize("where", ["content", "parts"])
@pytest.mark.parametrize("how", ["symbolic", "hard", "directory", "pipe"])
async def test_what_somebody_else_put_there_is_removed_and_not_followed(
    place: Path, transfers: Transfers, tmp_path: Path, where: str, how: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(content(0)[:100])
    await Cache.open(place, ROOM, transfers, 0)
    (place / where).mkdir(mode=0o700, exist_ok=True)
    name = place / where / digest(0).text
    {
        "symbolic": lambda: name.symlink_to(elsewhere),
        "hard": lambda: name.hardlink_to(elsewhere),
        "directory": name.mkdir,
        "pipe": lambda: os.mkfifo(name),
    }[how]()
    cache = await Cache.open(place, ROOM, transfers, 0)
    assert await used(cache, 0) == content(0)
    assert elsewhere.read_bytes() == content(0)[:100]


async def test_a_place_that_is_a_link_is_not_used(place: Path, transfers: Transfers, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    place.mkdir(mode=0o700)
    (place / "content").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ArtefactFault):
        await Cache.open(place, ROOM, transfers, 0)


async def test_a_task_that_is_wrong_about_a_size_takes_nothing_from_others(cache: Cache) -> None:
    async with cache.use(digest(0), SIZE) as path:
        with pytest.raises(AgentFault, match="wrong about the size"):
            async with cache.use(digest(0), SIZE - 1):
                pass
        assert path.read_bytes() == content(0)


async def test_parts_that_nobody_fetches_make_room(cache: Cache, place: Path) -> None:
    (place / "parts").mkdir(mode=0o700, exist_ok=True)
    (place / "parts" / digest(5).text).write_bytes(bytes(ROOM - SIZE))
    await used(cache, 0)
    assert (place / "parts" / digest(5).text).exists()
    await used(cache, 1)
    assert not (place / "parts" / digest(5).text).exists()
