"""Who may have an order priced or confirmed now: a few at once in a process, and each account one at a time.

Accounts take turns, so one that sends many orders waits for itself and not everybody for it. Whoever waits holds no
connection to the database yet.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from tidemill.control.http.problems import RouteRefused
from tidemill.control.http.statuses import RequestRefusal
from tidemill.core.settings.sections.market import MarketSettings

_AGAIN_S = 1


class PricingQueue:
    """One a process."""

    def __init__(self, settings: MarketSettings) -> None:
        self._waiting_max = settings.quotes_waiting_max
        self._at_once = asyncio.Semaphore(settings.quotes_at_once)
        self._lines: dict[UUID, asyncio.Lock] = {}
        self._waiting: Counter[UUID] = Counter()

    @asynccontextmanager
    async def turn(self, account_id: UUID) -> AsyncIterator[None]:
        """Wait for the account's turn; refused if too many of its orders wait already."""
        if self._waiting[account_id] >= self._waiting_max:
            raise RouteRefused(RequestRefusal.TOO_MANY_ORDERS_WAITING, _AGAIN_S)
        self._waiting[account_id] += 1
        try:
            async with self._lines.setdefault(account_id, asyncio.Lock()), self._at_once:
                yield
        finally:
            self._waiting[account_id] -= 1
            if not self._waiting[account_id]:
                del self._waiting[account_id], self._lines[account_id]
