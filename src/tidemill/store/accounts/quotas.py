"""Buckets of tokens as all processes share them. Tokens are leased and given back for many keys in one statement.

What is granted to all processes together obeys `core.limits`, because every lease is taken from the one row of its key.
The table does not outlive a crash of the server: then every bucket is full, once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemill.core.clock import Instant
from tidemill.core.rate_limits import SKEW_US, Limit
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query

_LEASE = Query("accounts/quota/lease")
_GIVE_BACK = Query("accounts/quota/give_back")
_FORGET = Query("accounts/quota/forget")


@dataclass(frozen=True)
class BucketTokens:
    """So many tokens, wanted from one bucket or to be given back to it."""

    key: str
    limit: Limit
    tokens: int


@dataclass(frozen=True)
class TokenLease:
    """What was got of a bucket, and when that will be full again."""

    key: str
    tokens: int
    full_at: Instant


async def lease(connection: Connection, asks: Sequence[BucketTokens], now: Instant) -> Sequence[TokenLease]:
    """Take what is asked for, or as much as there is. Each key stands in the asks once."""
    assert all(0 <= ask.tokens <= ask.limit.count for ask in asks)
    rows = await _LEASE.rows(
        connection,
        keys=[ask.key for ask in asks],
        counts=[ask.limit.count for ask in asks],
        pers_us=[ask.limit.per_us for ask in asks],
        wanted=[ask.tokens for ask in asks],
        now_us=now,
        skew_us=SKEW_US,
    )
    return [TokenLease(*row) for row in rows]


async def give_back(connection: Connection, unused: Sequence[BucketTokens]) -> None:
    """Put back what was leased and not used. Each key stands there once."""
    await _GIVE_BACK.run(
        connection,
        keys=[ask.key for ask in unused],
        counts=[ask.limit.count for ask in unused],
        pers_us=[ask.limit.per_us for ask in unused],
        tokens=[ask.tokens for ask in unused],
    )


async def forget(database: Database, now: Instant, limit: int) -> int:
    """Forget buckets that are full by everybody's clock. Answers how many."""
    async with database.connection() as connection:
        return len(await _FORGET.rows(connection, full_before_us=now - SKEW_US, limit=limit))
