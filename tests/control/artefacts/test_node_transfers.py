"""A node's own code and a real pool: inputs into the cache, results out, over lines that break, by clocks that lie."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.control.artefacts.test_artefacts import SETTINGS, Here, owner_of
from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import Machine, people_of
from tests.worlds.pools.pool import pool_in
from tidemill.agent.artefacts.cache import Cache
from tidemill.agent.artefacts.transfers import PATIENCE, TransferFault, TransferPatience, Transfers
from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.clock import DAY, Instant
from tidemill.core.nodes import passes
from tidemill.core.pace import Backoff

CONTENT = random.Random(4).randbytes(5_000_003)
DIGEST = Digest(sha256(CONTENT).hexdigest())
HASTY = TransferPatience(Backoff(first_s=0.05, most_s=0.5), PATIENCE.give_up_s)


@pytest.fixture(scope="module")
def here() -> Iterator[Here]:
    with reachable_directory() as home, pool_in(home, **SETTINGS) as pool:
        running = pool.up()
        running.set_up()
        with people_of(running) as people:
            yield Here(pool, running, people)
        assert '"bug"' not in running.said()


@asynccontextmanager
async def transfers_of(
    machine: Machine, place: Path, urls: tuple[str, ...], wrong_us: int = 0
) -> AsyncIterator[Transfers]:
    """As the agent of a machine has them. With a wrong clock, the first pass is for another day."""
    written = 0

    def write_pass(until: Instant) -> str:
        nonlocal written
        written += 1
        expires_at = Instant(until + (wrong_us if written == 1 else 0))
        return passes.write_pass(machine.identity, machine.pool_fingerprint, machine.id, expires_at)

    trust = ssl.create_default_context()
    one = Transfers(lambda: urls, trust, write_pass, place / "notes", random.Random(5), HASTY)
    try:
        yield one
    finally:
        await one.close()


@pytest.mark.parametrize("wrong_us", [0, DAY, -DAY])
def test_an_input_comes_into_the_cache_once_granted(here: Here, tmp_path: Path, wrong_us: int) -> None:
    client, machine = here.client(), here.machine()
    client.put(CONTENT)

    async def fetched() -> bytes:
        async with transfers_of(machine, tmp_path, (here.running.url,), wrong_us) as transfers:
            cache = await Cache.open(tmp_path / "cache", 10**8, transfers, 0)
            async with cache.use(DIGEST, len(CONTENT)) as path:
                return path.read_bytes()

    with pytest.raises(TransferFault, match="does not give"):
        asyncio.run(fetched())
    here.give(machine, owner_of(client), DIGEST.text)
    assert asyncio.run(fetched()) == CONTENT


def test_a_result_arrives_over_a_line_that_breaks(here: Here, tmp_path: Path) -> None:
    client, machine = here.client(), here.machine()
    attempt_id = here.give(machine, owner_of(client))
    (tmp_path / "result").write_bytes(CONTENT)

    async def uploaded() -> object:
        async with (
            breaking_line(here.running.url, 1_500_000) as url,
            transfers_of(machine, tmp_path, (url,)) as transfers,
        ):
            return await transfers.upload(tmp_path / "result", Purpose.RESULT, attempt_id, DIGEST)

    artefact_id = asyncio.run(uploaded())
    assert isinstance(artefact_id, UUID)
    assert client.ask("GET", f"/api/v1/artefacts/{artefact_id}/content").content == CONTENT


def test_an_input_comes_over_a_line_that_breaks(here: Here, tmp_path: Path) -> None:
    client, machine = here.client(), here.machine()
    client.put(CONTENT)
    here.give(machine, owner_of(client), DIGEST.text)

    async def fetched() -> bytes:
        async with (
            breaking_line(here.running.url, 1_500_000) as url,
            transfers_of(machine, tmp_path, (url,)) as transfers,
        ):
            cache = await Cache.open(tmp_path / "cache", 10**8, transfers, 0)
            async with cache.use(DIGEST, len(CONTENT)) as path:
                return path.read_bytes()

    assert asyncio.run(fetched()) == CONTENT


def test_a_result_that_nobody_granted_is_refused_at_once(here: Here, tmp_path: Path) -> None:
    machine = here.machine()
    (tmp_path / "result").write_bytes(b"result")
    digest = Digest(sha256(b"result").hexdigest())

    async def uploaded() -> object:
        async with transfers_of(machine, tmp_path, (here.running.url,)) as transfers:
            return await transfers.upload(tmp_path / "result", Purpose.RESULT, uuid4(), digest)

    assert asyncio.run(uploaded()) is UploadRefusal.UPLOAD_NOT_GRANTED


@asynccontextmanager
async def breaking_line(url: str, most_bytes: int) -> AsyncIterator[str]:
    """Another address of the pool, whose connections break after so many bytes either way."""
    host, port = url.removeprefix("http://").split(":")

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(port))
        passing = [
            asyncio.create_task(_pass(reader, back, most_bytes)),
            asyncio.create_task(_pass(there, writer, most_bytes)),
        ]
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for task in passing:
            task.cancel()
        for one in (back, writer):
            one.transport.abort()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most_bytes: int) -> None:
    while most_bytes > 0 and (piece := await reader.read(65_536)):
        most_bytes -= len(piece)
        writer.write(piece)
        await writer.drain()
