"""The pool hears of a node's cache when it has changed, and not of what it knows already."""

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.agent.artefacts.test_transfers import transfers_to
from tests.worlds.agents.artefact_server import artefact_server
from tidemill.agent.artefacts.access import open_artefact_access, telling_cache
from tidemill.agent.artefacts.cache import Cache
from tidemill.agent.home.home import Home
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.nodes.machine.cache_report import CACHE, cached_of
from tidemill.link.dialled.reports import Reporter
from tidemill.link.dialled.spool import Spool
from tidemill.wire.messages import Facts

CONTENT = random.Random(6).randbytes(1_000)
DIGEST = Digest(sha256(CONTENT).hexdigest())


@pytest.fixture
async def reporting(tmp_path: Path) -> AsyncIterator[Reporter]:
    spool = await Spool.open(tmp_path / "spool.sqlite", 10**7)
    one = Reporter(spool)
    await one.begin(0, lambda: None)
    yield one
    await spool.close()


async def told(reporting: Reporter) -> list[object]:
    page = await reporting.spool.read(0, 10**6)
    return [cached_of(one.body) for _, one in page if isinstance(one, Facts) and one.kind == CACHE]


async def test_what_changed_is_told_once(reporting: Reporter, tmp_path: Path) -> None:
    async with artefact_server() as server:
        server.contents[DIGEST.text] = CONTENT
        transfers = transfers_to((server.url,), tmp_path)
        cache = await Cache.open(tmp_path / "cache", 10**6, transfers, 0)
        telling = asyncio.create_task(telling_cache(cache, reporting, 0.02))
        await asyncio.sleep(0.1)
        for _ in range(3):
            async with cache.use(DIGEST, len(CONTENT)):
                await asyncio.sleep(0.05)
        telling.cancel()
        await transfers.close()
    assert await told(reporting) == [frozenset(), frozenset({DIGEST})]


async def test_an_agent_tells_what_it_had_from_before(reporting: Reporter, tmp_path: Path) -> None:
    home = Home(tmp_path)
    (home.cache / "content").mkdir(parents=True, mode=0o700)
    (home.cache / "content" / DIGEST.text).write_bytes(CONTENT)
    trust = ssl.create_default_context()
    async with open_artefact_access(home, 10**6, trust, random.Random(1), reporting):
        while not await told(reporting):
            await asyncio.sleep(0.01)
    assert await told(reporting) == [frozenset({DIGEST})]
