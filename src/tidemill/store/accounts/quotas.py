"""Token buckets that all processes share. Tokens are leased and given back for many keys in one statement.

The tokens granted to all processes together obey `core.limits`, because every lease is taken from the one row of its
key. The table does not survive a crash of the server: then every bucket is full, once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.core.clock import Instant
from tidemill.core.rate_limits import SKEW_US, Limit
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class BucketTokens:
    """A number of tokens, to be taken from a bucket or given back to it."""

    key: str
    limit: Limit
    tokens: int


@dataclass(frozen=True)
class TokenLease:
    """The tokens leased from a bucket, and when the bucket will be full again."""

    key: str
    tokens: int
    full_at: Instant


_LEASE = Query("accounts/quota/lease", TokenLease)
_GIVE_BACK = Query("accounts/quota/give_back")
_FORGET = Query("accounts/quota/forget", str)


async def lease(connection: Connection, asks: Sequence[BucketTokens], now: Instant) -> Sequence[TokenLease]:
    """Take the wanted tokens, or as many as there are. Each key is in `asks` once."""
    assert all(0 <= ask.tokens <= ask.limit.count for ask in asks)
    return await _LEASE.rows(
        connection,
        keys=[ask.key for ask in asks],
        counts=[ask.limit.count for ask in asks],
        pers_us=[ask.limit.per_us for ask in asks],
        wanted=[ask.tokens for ask in asks],
        now_us=now,
        skew_us=SKEW_US,
    )


async def give_back(connection: Connection, unused: Sequence[BucketTokens]) -> None:
    """Put back unused tokens. Each key is in `unused` once."""
    await _GIVE_BACK.run(
        connection,
        keys=[ask.key for ask in unused],
        counts=[ask.limit.count for ask in unused],
        pers_us=[ask.limit.per_us for ask in unused],
        tokens=[ask.tokens for ask in unused],
    )


async def forget(database: Database, now: Instant, limit: int) -> int:
    """Delete buckets that are full by every process's clock. Returns how many."""
    async with database.connection() as connection:
        return len(await _FORGET.rows(connection, full_before_us=now - SKEW_US, limit=limit))
