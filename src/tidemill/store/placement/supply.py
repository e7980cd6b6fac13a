"""What is for sale now, read from the registry by the rules of placement."""

from asyncio import sleep
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.placement.seller import SellerDefaults
from tidemill.core.placement.supply import Supply
from tidemill.store.database import Database
from tidemill.store.placement import sellers
from tidemill.store.query import Connection, Query

_BUSY = Query("placement/supply/busy", UUID)


async def read(database: Database, terms: SellerDefaults, agent_oldest: str, now: Instant) -> Supply:
    """Every node that may get work, at its price, and every house node."""
    return Supply(
        await sellers.every(database, terms, agent_oldest, _others_first, now),
        terms.hourly_uc,
        await sellers.houses(database, terms, agent_oldest, now),
    )


async def busy(connection: Connection) -> set[UUID]:
    """The nodes that have an attempt."""
    return set(await _BUSY.rows(connection))


async def _others_first() -> None:
    """Let other tasks run between pages."""
    await sleep(0)
