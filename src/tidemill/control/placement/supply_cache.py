"""The supply for quotes and prices: read from the registry, and kept for a few seconds.

A quote may be a few seconds old, since placement reads the nodes itself. An empty supply is not kept, so that the first
node is quoted at once.
"""

import asyncio
from dataclasses import dataclass, field

from tidemill.control.parts import Parts
from tidemill.control.terms import selling_terms
from tidemill.core.clock import SECOND, Instant
from tidemill.core.placement.supply import Supply
from tidemill.store.database import Database
from tidemill.store.placement import supply

KEPT_US = 3 * SECOND


@dataclass
class SupplyCache:
    """One read serves all callers at the same time."""

    _read: Supply | None = None
    _read_at: Instant | None = None
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def look(self, parts: Parts, database: Database) -> Supply:
        async with self._reading:
            now = parts.clock.now()
            is_fresh = self._read_at is not None and 0 <= now - self._read_at <= KEPT_US
            if self._read is None or not self._read.sellers or not is_fresh:
                settings = parts.settings
                self._read = await supply.read(database, selling_terms(settings), settings.nodes.agent_oldest, now)
                self._read_at = now
            return self._read
