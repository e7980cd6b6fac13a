"""Artefacts between a node and its pool: whatever happens on the way, nothing wrong arrives and nothing goes twice."""

import asyncio
import contextlib
import os
import random
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import pytest

from tests.tidy.source import ROOT
from tests.worlds.agents.artefact_server import UPLOADS, Server, artefact_server
from tidemill.agent.artefacts.transfers import PATIENCE, TransferFault, Transfers
from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.pace import Backoff

CONTENT = random.Random(1).randbytes(3_000_017)
DIGEST = Digest(sha256(CONTENT).hexdigest())
HASTY = replace(PATIENCE, pause=Backoff(first_s=0.01, most_s=0.05), give_up_s=3.0)
TRUST = ssl.create_default_context()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with artefact_server() as one:
        one.contents[DIGEST.text] = CONTENT
        yield one


@pytest.fixture
async def transfers(server: Server, tmp_path: Path) -> AsyncIterator[Transfers]:
    one = transfers_to((server.url,), tmp_path)
    yield one
    await one.close()


def transfers_to(urls: tuple[str, ...], place: Path) -> Transfers:
    return Transfers(lambda: urls, TRUST, lambda until: f"until-{until}", place / "notes", random.Random(2), HASTY)


async def fetched(transfers: Transfers, file: Path, digest: Digest = DIGEST, size: int = len(CONTENT)) -> bytes:
    into = os.open(file, os.O_RDWR | os.O_CREAT)
    try:
        await transfers.download(digest, size, into)
    finally:
        os.close(into)
    return file.read_bytes()


async def test_bytes_come_whole(transfers: Transfers, tmp_path: Path) -> None:
    assert await fetched(transfers, tmp_path / "file") == CONTENT


async def test_a_download_that_breaks_off_goes_on_and_no_byte_comes_twice(
    server: Server, transfers: Transfers, tmp_path: Path
) -> None:
    server.cut_after = [700_000, 1, 900_000, 0]
    assert await fetched(transfers, tmp_path / "file") == CONTENT
    assert server.sent_bytes == len(CONTENT)
    assert server.asked[1].headers["if-range"] == f'"{DIGEST}"'


async def test_what_is_there_already_is_not_asked_for(server: Server, transfers: Transfers, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT)
    assert await fetched(transfers, tmp_path / "file") == CONTENT
    assert server.asked == []


async def test_a_part_that_is_longer_than_the_whole_is_dropped(transfers: Transfers, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CONTENT + b"more")
    assert await fetched(transfers, tmp_path / "file") == CONTENT


async def test_another_length_than_was_said_is_not_taken(server: Server, transfers: Transfers, tmp_path: Path) -> None:
    server.replaced = [CONTENT[:-1], CONTENT + b"x", CONTENT * 2]
    with pytest.raises(TransferFault, match="another length"):
        await fetched(transfers, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b""
    assert await fetched(transfers, tmp_path / "file") == CONTENT


async def test_a_pool_without_the_artefact_is_not_asked_again(
    server: Server, transfers: Transfers, tmp_path: Path
) -> None:
    del server.contents[DIGEST.text]
    with pytest.raises(TransferFault, match="no such artefact"):
        await fetched(transfers, tmp_path / "file")
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 418])
async def test_what_passes_is_waited_for(server: Server, transfers: Transfers, tmp_path: Path, status: int) -> None:
    server.answers = [(status, {"Retry-After": "0"}, {})] * 4
    assert await fetched(transfers, tmp_path / "file") == CONTENT
    assert len(server.asked) == 5


async def test_the_pool_says_how_long_to_wait(server: Server, transfers: Transfers, tmp_path: Path) -> None:
    server.answers = [(503, {"Retry-After": "1"}, {})]
    began = asyncio.get_running_loop().time()
    assert await fetched(transfers, tmp_path / "file") == CONTENT
    assert asyncio.get_running_loop().time() - began >= 1


async def test_a_dead_address_gives_its_turn_to_the_next(server: Server, tmp_path: Path) -> None:
    transfers = transfers_to(("http://127.0.0.1:9", server.url), tmp_path)
    assert await fetched(transfers, tmp_path / "file") == CONTENT
    await transfers.close()


async def test_a_network_that_stays_away_is_given_up_after_long_enough(tmp_path: Path) -> None:
    transfers = transfers_to(("http://127.0.0.1:9",), tmp_path)
    with pytest.raises(TransferFault, match="too long"):
        await fetched(transfers, tmp_path / "file")
    await transfers.close()


@pytest.mark.parametrize("ahead_s", [-86_400, 86_400, 400, -400])
async def test_a_clock_that_is_wrong_does_no_harm(
    server: Server, transfers: Transfers, tmp_path: Path, ahead_s: float
) -> None:
    server.ahead_s = ahead_s
    assert await fetched(transfers, tmp_path / "file") == CONTENT
    assert len(server.asked) <= 2


async def test_an_upload_arrives(server: Server, transfers: Transfers, tmp_path: Path) -> None:
    assert await _uploaded(transfers, tmp_path) in server.artefacts.values()
    assert bytes(next(iter(server.uploads.values()))) == CONTENT
    assert list((tmp_path / "notes").iterdir()) == []


async def test_an_upload_that_breaks_off_goes_on_and_no_byte_goes_twice(
    server: Server, transfers: Transfers, tmp_path: Path
) -> None:
    server.hang_up_after = [65_536, 1_000_000, 65_536]
    assert await _uploaded(transfers, tmp_path) in server.artefacts.values()
    assert server.received_bytes == len(CONTENT)
    assert len(server.uploads) == 1


async def test_an_upload_of_an_earlier_process_goes_on(server: Server, tmp_path: Path) -> None:
    first = transfers_to((server.url,), tmp_path)
    attempt_id = uuid4()
    server.hang_up_after = [1_000_000]
    server.answers = []
    uploading = asyncio.create_task(_uploaded(first, tmp_path, attempt_id))
    while server.received_bytes < 1_000_000:
        await asyncio.sleep(0.001)
    server.answers = [(503, {"Retry-After": "100"}, {})] * 9
    await asyncio.sleep(0.1)
    uploading.cancel()
    await asyncio.wait([uploading])
    await first.close()
    server.answers = []
    again = transfers_to((server.url,), tmp_path)
    assert await _uploaded(again, tmp_path, attempt_id) in server.artefacts.values()
    assert server.received_bytes == len(CONTENT)
    await again.close()


@pytest.mark.parametrize(("status", "code"), [(423, "upload_busy"), (409, "upload_offset_wrong"), (460, "checksum")])
async def test_what_tus_answers_for_the_moment_is_tried_again(
    server: Server, transfers: Transfers, tmp_path: Path, status: int, code: str
) -> None:
    server.hang_up_after = [500_000]
    attempt_id = uuid4()
    uploading = asyncio.create_task(_uploaded(transfers, tmp_path, attempt_id))
    while server.received_bytes < 500_000:
        await asyncio.sleep(0)
    server.answers = [(status, {}, {"code": code, "detail": "Not now."})] * 2
    assert await uploading in server.artefacts.values()
    assert server.received_bytes == len(CONTENT)


@pytest.mark.parametrize("status", [404, 410])
async def test_an_upload_that_the_pool_has_forgotten_begins_again(
    server: Server, tmp_path: Path, status: int, transfers: Transfers
) -> None:
    server.hang_up_after = [500_000]
    uploading = asyncio.create_task(_uploaded(transfers, tmp_path))
    while server.received_bytes < 500_000:
        await asyncio.sleep(0)
    server.uploads.clear()
    assert await uploading in server.artefacts.values()
    assert bytes(next(iter(server.uploads.values()))) == CONTENT


async def test_what_is_refused_for_good_is_told_and_not_tried_again(
    server: Server, transfers: Transfers, tmp_path: Path
) -> None:
    server.answers = [(403, {}, {"code": "upload_not_granted", "detail": "No."})]
    assert await _uploaded(transfers, tmp_path) is UploadRefusal.UPLOAD_NOT_GRANTED
    assert len(server.asked) == 1


async def test_a_result_that_is_not_what_its_digest_says_is_given_up(
    server: Server, transfers: Transfers, tmp_path: Path
) -> None:
    file = tmp_path / "result"
    file.write_bytes(CONTENT)
    wrong = Digest("0" * 64)
    assert await transfers.upload(file, Purpose.RESULT, uuid4(), wrong) is UploadRefusal.UPLOAD_DIGEST_WRONG


async def test_an_empty_result_needs_no_bytes(server: Server, transfers: Transfers, tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    digest = Digest(sha256(b"").hexdigest())
    assert await transfers.upload(tmp_path / "empty", Purpose.RESULT, uuid4(), digest) in server.artefacts.values()
    assert [request.method for request in server.asked] == ["POST"]


@pytest.mark.parametrize("location", ["http://elsewhere.example.com/x", "/etc/passwd", "", f"{UPLOADS}-not/x"])
async def test_no_pass_goes_to_another_place_than_the_pool(
    server: Server, transfers: Transfers, tmp_path: Path, location: str
) -> None:
    server.answers = [(201, {"Location": location}, {})]
    assert await _uploaded(transfers, tmp_path) in server.artefacts.values()


async def test_a_redirection_is_not_followed(server: Server, transfers: Transfers, tmp_path: Path) -> None:
    server.answers = [(307, {"Location": "http://127.0.0.1:9/"}, {})]
    assert await fetched(transfers, tmp_path / "file") == CONTENT


def test_a_gibibyte_goes_up_in_constant_memory(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.worlds.agents.large_upload", str(tmp_path), "1024"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) < 30 * 1024 * 1024, f"{done.stdout} bytes more than before"


async def _uploaded(transfers: Transfers, place: Path, attempt_id=None):
    file = place / "result"
    file.write_bytes(CONTENT)
    return await transfers.upload(file, Purpose.RESULT, attempt_id or uuid4(), DIGEST)


async def test_a_refusal_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    """Nobody announced how long it is; it would have been kept in memory as far as it came."""
    most = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        sent = 0
        writer.write(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 2**20:
                writer.write(b"10000\r\n" + bytes(0x10000) + b"\r\n")
                await writer.drain()
                sent += 0x10000
        most = max(most, sent)
        writer.close()

    async with await asyncio.start_server(endless, "127.0.0.1", 0) as server:
        transfers = transfers_to((f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}",), tmp_path)
        with pytest.raises(TransferFault, match="503"):
            await fetched(transfers, tmp_path / "file")
        await transfers.close()
    assert 0 < most < 32 * 2**20, "what is on the way is in the kernel's hands"
