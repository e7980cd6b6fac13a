"""Artefacts on a real S3 server: signatures, what is left behind, processes that are killed, servers that misbehave."""

import asyncio
import hashlib
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.artefacts.test_crash import expect_kept, go_on, killed_uploaders
from tests.tidy.source import ROOT
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
from tidemill.artefacts.s3_signing import S3Credentials, query_text, signed_headers
from tidemill.artefacts.s3_upload import whole_key
from tidemill.artefacts.store_choice import open_store
from tidemill.artefacts.threads import Threads
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.uploads import Checksum
from tidemill.core.clock import Instant
from tidemill.core.faults import ArtefactFault, SettingsFault
from tidemill.core.settings import build
from tidemill.core.settings.sections.artefacts import ArtefactsSettings

CONTENT = random.Random(7).randbytes(2 * LEAST_PART_BYTES + 17)
COMPLETE = {
    "s3_endpoint": "https://s3.example.com",
    "s3_bucket": "pool",
    "s3_access_key": "pool",
    "s3_secret_key": "hidden",
}
OTHER = random.Random(8).randbytes(2 * LEAST_PART_BYTES + 17)


@pytest.fixture
def place(s3_endpoint: str) -> BucketAddress:
    return place_in(s3_endpoint, f"{uuid4()}/")


@pytest.fixture
async def store(place: BucketAddress) -> AsyncIterator[S3Store]:
    async with in_bucket(place, LEAST_PART_BYTES) as one:
        yield one


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ({"lifecycle": ""}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ({"prefix": "J", "max-keys": "2"}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_a_signature_is_the_one_of_the_published_examples(query: dict[str, str], signature: str) -> None:
    credentials = S3Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
    headers = signed_headers(
        credentials,
        "GET",
        "examplebucket.s3.amazonaws.com",
        ("/", query_text(query)),
        hashlib.sha256(b"").hexdigest(),
        Instant(1_369_353_600_000_000),
    )
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert credentials.secret_key not in repr(credentials)


async def test_nothing_is_left_of_what_was_abandoned_and_deleted(store: S3Store, place: BucketAddress) -> None:
    for content in (CONTENT, b"small"):
        await put(store, content)
        unfinished = ids().new(NOW)
        await store.begin(unfinished, len(content))
        await store.append(unfinished, 0, chunks(content[: len(content) // 2]))
        await store.abandon(unfinished)
        await store.abandon(unfinished)
        assert await store.delete(digest_of(content), LATER)
    assert await _left(place) == []


async def test_the_same_bytes_are_kept_once_also_when_finished_at_once(place: BucketAddress) -> None:
    async with in_bucket(place, LEAST_PART_BYTES) as one, in_bucket(place, LEAST_PART_BYTES) as other:
        await asyncio.gather(*(put(store, CONTENT) for store in (one, other, one, other)))
        assert await get(other, digest_of(CONTENT)) == CONTENT
    names = [key for key in await _left(place) if key.startswith("contents/")]
    wholes = [key for key in await _left(place) if key.endswith("/bytes")]
    assert (len(names), len(wholes)) == (1, 1)


async def test_what_an_upload_still_needs_is_not_deleted_with_its_digest(store: S3Store, place: BucketAddress) -> None:
    upload_id = await _uploaded(store, CONTENT)
    digest = await store.finish(upload_id, None, NOW)
    assert digest == digest_of(CONTENT)
    assert await store.delete(digest, LATER)
    assert await store.finish(upload_id, None, NOW) == digest
    await store.abandon(upload_id)
    assert await get(store, digest) == CONTENT
    assert await store.delete(digest, LATER)
    assert await _left(place) == []


async def test_a_late_writer_in_another_process_takes_nothing_back(place: BucketAddress) -> None:
    upload_id, waiting = ids().new(NOW), asyncio.Event()

    async def late() -> AsyncIterator[bytes]:
        yield CONTENT[:100]
        await waiting.wait()
        yield CONTENT[100 : LEAST_PART_BYTES + 5]

    async with in_bucket(place, LEAST_PART_BYTES) as one, in_bucket(place, LEAST_PART_BYTES) as other:
        await one.begin(upload_id, len(CONTENT))
        stale = asyncio.create_task(other.append(upload_id, 0, late()))
        await asyncio.sleep(0.1)
        assert await other.append(upload_id, 0, chunks(b"x")) is UploadRefusal.UPLOAD_BUSY
        at = LEAST_PART_BYTES + 900
        assert await one.append(upload_id, 0, chunks(CONTENT[:at])) == at
        waiting.set()
        await stale
        assert await one.offset(upload_id) == at
        assert await one.append(upload_id, at, chunks(CONTENT[at:])) == len(CONTENT)
        assert await one.finish(upload_id, digest_of(CONTENT), NOW) == digest_of(CONTENT)
        assert await get(one, digest_of(CONTENT)) == CONTENT


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_part_that_was_refused_is_no_part_of_the_whole(place: BucketAddress, restarts: bool) -> None:
    upload_id = ids().new(NOW)
    checksum = Checksum("sha256", hashlib.sha256(CONTENT).digest())
    async with in_bucket(place, LEAST_PART_BYTES) as first, in_bucket(place, LEAST_PART_BYTES) as second:
        await first.begin(upload_id, len(CONTENT))
        assert await first.append(upload_id, 0, chunks(OTHER), checksum) is UploadRefusal.UPLOAD_CHECKSUM_WRONG
        assert await first.offset(upload_id) == 0
        assert await first.append(upload_id, 0, chunks(CONTENT), checksum) == len(CONTENT)
        last = second if restarts else first
        assert await last.finish(upload_id, None, NOW) == digest_of(CONTENT)
        assert await get(last, digest_of(CONTENT)) == CONTENT


async def test_a_whole_whose_process_was_killed_before_its_digest_was_noted_is_read_back(place: BucketAddress) -> None:
    async with in_bucket(place, LEAST_PART_BYTES) as store:
        upload_id = await _uploaded(store, CONTENT)
        await store.finish(upload_id, None, NOW)
        await store.delete(digest_of(CONTENT), LATER)
    bucket, threads = _bucket(place)
    await bucket.delete(f"wholes/{upload_id}/{digest_of(CONTENT)}")
    await bucket.close()
    threads.close()
    async with in_bucket(place, LEAST_PART_BYTES) as store:
        assert await store.finish(upload_id, None, NOW) == digest_of(CONTENT)
        assert await get(store, digest_of(CONTENT)) == CONTENT


async def test_two_processes_that_go_on_with_one_upload_find_it_moved_and_never_broken(place: BucketAddress) -> None:
    upload_id, content = ids().new(NOW), random.Random(5).randbytes(60)

    async def go_on(store: S3Store) -> None:
        while (at := await store.offset(upload_id)) != len(content):
            assert isinstance(at, int)
            await store.append(upload_id, at, chunks(content[at : at + 1]))

    async with in_bucket(place) as one, in_bucket(place) as other:
        await one.begin(upload_id, len(content))
        await asyncio.gather(go_on(one), go_on(other))
        assert await other.finish(upload_id, None, NOW) == digest_of(content)


async def test_a_sweep_finds_parts_that_were_begun_and_noted_nowhere(store: S3Store, place: BucketAddress) -> None:
    bucket, threads = _bucket(place)
    old, young = ids().new(NOW), ids().new(LATER)
    for upload_id in (old, young):
        await bucket.begin_parts(whole_key(upload_id))
    await bucket.put(f"leaving/{old}", b"")
    await bucket.put(f"wholes/{old}/{digest_of(b'x')}", b"")
    await bucket.put("uploads/not-ours/at-7", b"x")
    await store.sweep(LATER, KnownSets())
    assert [key async for key, _ in bucket.uploads_in_parts("wholes/")] == [whole_key(young)]
    assert await _left(place) == ["uploads/not-ours/at-7"]
    await bucket.close()
    threads.close()


async def test_what_was_confirmed_survives_kills_and_a_sweep_leaves_nothing(place: BucketAddress) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    for number in range(4):
        where = f"seed {seed}, kill {number}"
        at, held = killed_uploaders([place.endpoint, place.prefix], dice.uniform(0.3, 2))
        async with in_bucket(place, LEAST_PART_BYTES) as store:
            await expect_kept(store, at, held, where)
            await go_on(store, at, where, in_parts=True)
            await store.sweep(LATER, KnownSets())
        assert await _left(place) == [], where


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"bucket": "nowhere"}, r"artefacts\.s3_bucket"),
        ({"credentials": S3Credentials("stranger", "secret", "us-east-1")}, r"artefacts\.s3_access_key"),
        ({"credentials": S3Credentials("pool", "secret", "us-east-1")}, r"artefacts\.s3_secret_key"),
    ],
)
async def test_a_wrong_setting_is_a_fault_that_names_it(
    place: BucketAddress, wrong: dict[str, object], advice: str
) -> None:
    async with in_bucket(replace(place, **wrong)) as store:
        with pytest.raises(ArtefactFault, match=advice):
            await put(store, b"x")


async def test_a_server_that_hangs_up_is_asked_again_and_reading_goes_on_where_it_was(place: BucketAddress) -> None:
    hung_up = 0

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hangs up in the middle of every other answer."""
        nonlocal hung_up
        hung_up += 1
        most = 2_000_000 if hung_up % 2 else None
        host, port = place.endpoint.removeprefix("http://").split(":")
        there, back = await asyncio.open_connection(host, int(port))
        passing = [asyncio.create_task(_pass(reader, back, None)), asyncio.create_task(_pass(there, writer, most))]
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for task in passing:
            task.cancel()
        for one in (back, writer):
            one.transport.abort()

    async with in_bucket(place) as store:
        digest = await put(store, CONTENT)
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server, in_bucket(replace(place, endpoint=_address(server))) as store:
        assert await get(store, digest) == CONTENT
    assert hung_up > 1


async def test_a_server_that_is_away_is_a_fault_that_says_what_to_check(place: BucketAddress) -> None:
    async with in_bucket(replace(place, endpoint="http://127.0.0.1:9")) as store:
        with pytest.raises(ArtefactFault, match=r"artefacts\.s3_endpoint"):
            await store.size(digest_of(b"x"))


async def test_what_is_no_s3_server_is_a_fault(place: BucketAddress) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, in_bucket(replace(place, endpoint=_address(server))) as store:
        with pytest.raises(ArtefactFault, match="does not answer as S3"):
            await store.size(digest_of(b"x"))


async def test_a_pool_whose_settings_name_a_server_keeps_its_artefacts_there(
    place: BucketAddress, tmp_path: Path
) -> None:
    settings = ArtefactsSettings(
        s3_endpoint=place.endpoint,
        s3_bucket=place.bucket,
        s3_prefix=place.prefix,
        s3_access_key=place.credentials.access_key,
        s3_secret_key=place.credentials.secret_key,
    )
    store = open_store(settings, tmp_path)
    digest = await put(store, b"hello")
    await store.close()
    async with in_bucket(place) as there:
        assert await get(there, digest) == b"hello"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ({"s3_endpoint": "https://s3.example.com"}, "must be set together"),
        ({"s3_secret_key": "secret"}, "must be set together"),
        ({**COMPLETE, "s3_endpoint": "http://s3.example.com"}, "only inside TLS"),
        ({**COMPLETE, "s3_prefix": "/"}, "s3_prefix"),
        ({**COMPLETE, "s3_prefix": "../"}, "s3_prefix"),
        ({**COMPLETE, "s3_bucket": "UPPER/"}, "s3_bucket"),
    ],
)
def test_settings_that_would_not_work_are_refused(written: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsFault, match=why):
        build(toml={"artefacts": written}, toml_name="f", environment={}, home=Path("/var/lib/pool"))


def test_a_large_artefact_needs_little_memory(place: BucketAddress) -> None:
    command = [sys.executable, "-m", "tests.worlds.artefacts.large_artefact", "120", place.endpoint, place.prefix]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 64 * 1024 * 1024, f"{done.stdout} bytes more than before"


async def _uploaded(store: S3Store, content: bytes) -> UUID:
    upload_id = ids().new(NOW)
    await store.begin(upload_id, len(content))
    assert await store.append(upload_id, 0, chunks(content)) == len(content)
    return upload_id


def _bucket(place: BucketAddress) -> tuple[Bucket, Threads]:
    threads = Threads(1)
    return Bucket(place, threads), threads


async def _left(place: BucketAddress) -> list[str]:
    bucket, threads = _bucket(place)
    try:
        return [found.key async for found in bucket.list("")]
    finally:
        await bucket.close()
        threads.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most_bytes: int | None) -> None:
    passed = 0
    while (piece := await reader.read(65_536)) and (most_bytes is None or passed < most_bytes):
        passed += len(piece)
        writer.write(piece)
        await writer.drain()


def _address(server: asyncio.Server) -> str:
    host, port = server.sockets[0].getsockname()[:2]
    return f"http://{host}:{port}"
