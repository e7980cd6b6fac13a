"""The pool is told what is in this machine's cache, when that has changed and not too often."""

import asyncio

from tidemill.agent.cache import Cache
from tidemill.agent.reporting import Reporting
from tidemill.core.nodes.cached import CACHE, cached_bytes

EVERY_S = 30.0


async def telling_cache(cache: Cache, reporting: Reporting, every_s: float = EVERY_S) -> None:
    """Never ends. What the pool knows already is not told again."""
    while True:
        await reporting.tell(CACHE, cached_bytes(cache.held()))
        await asyncio.sleep(every_s)
