"""How this machine gets and sends artefacts: its cache, and its transfers with its pool."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

from tidemill.agent.artefacts.cache import Cache
from tidemill.agent.artefacts.transfers import Transfers
from tidemill.agent.home.home import Home
from tidemill.agent.home.identity import Membership
from tidemill.agent.standing import AgentStanding
from tidemill.core.clock import Instant
from tidemill.core.nodes import passes
from tidemill.core.nodes.machine.cache_report import CACHE, cached_bytes
from tidemill.link.dialled.reports import Reporter

_TELL_CACHE_EVERY_S = 30.0


class ArtefactAccess:
    """Opened before an agent runs. The agent's standing, which says whose node it is, comes with the first call."""

    def __init__(self, notes: Path, trust: ssl.SSLContext, dice: Random) -> None:
        self.transfers = Transfers(lambda: self._membership.urls, trust, self._write_pass, notes, dice)
        self.cache: Cache | None = None
        self._standing: AgentStanding | None = None

    def __call__(self, standing: AgentStanding) -> tuple[Cache, Transfers]:
        assert self.cache is not None
        self._standing = standing
        return self.cache, self.transfers

    @property
    def _membership(self) -> Membership:
        assert self._standing is not None, "nothing is asked before an agent runs"
        return self._standing.membership

    def _write_pass(self, until: Instant) -> str:
        member = self._membership
        assert member.node_id is not None, "work comes to registered nodes"
        return passes.write_pass(member.identity, member.pool_fingerprint, member.node_id, until)


@asynccontextmanager
async def open_artefact_access(
    home: Home, limit_bytes: int, trust: ssl.SSLContext, dice: Random, reporting: Reporter
) -> AsyncIterator[ArtefactAccess]:
    """Open the cache with what an earlier process left in it. While it is open, tell the pool what it holds."""
    access = ArtefactAccess(home.uploads, trust, dice)
    try:
        access.cache = await Cache.open(home.cache, limit_bytes, access.transfers)
        telling = asyncio.create_task(telling_cache(access.cache, reporting))
        try:
            yield access
        finally:
            telling.cancel()
            (outcome,) = await asyncio.gather(telling, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome
    finally:
        await access.transfers.close()


async def telling_cache(cache: Cache, reporting: Reporter, every_s: float = _TELL_CACHE_EVERY_S) -> None:
    """Tell the pool what the cache holds whenever that changed, but not too often. Never ends."""
    while True:
        await reporting.tell(CACHE, cached_bytes(cache.contents()))
        await asyncio.sleep(every_s)
