"""Quotas on a real server: leases obey the rules of core, whoever asks at once, and what is full is forgotten."""

import asyncio
from random import Random

import pytest

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.rate_limits import COUNT_MAX, SKEW_US, Limit, available, give_back, take
from tidemill.store.accounts import quotas
from tidemill.store.accounts.quotas import BucketTokens, TokenLease
from tidemill.store.database import Database

NOW = Instant(1_800_000_000 * SECOND)
MINUTE = 60 * SECOND
LIMIT = Limit("test", 100, MINUTE)


async def lease(database: Database, *asks: BucketTokens, now: Instant = NOW) -> dict[str, TokenLease]:
    async with database.connection() as connection:
        return {granted.key: granted for granted in await quotas.lease(connection, asks, now)}


async def put_back(database: Database, *unused: BucketTokens) -> None:
    async with database.connection() as connection:
        await quotas.give_back(connection, unused)


async def keys(database: Database) -> set[str]:
    async with database.connection() as connection:
        return {row["key"] for row in await connection.fetch("SELECT key FROM quota")}


@pytest.mark.parametrize("seed", range(5))
async def test_the_database_decides_as_core_does(database: Database, seed: int) -> None:
    """Also when the time jumps about, when a limit changes, and at the ends of every number."""
    random = Random(seed)
    names = [f"key {number}" for number in range(20)]
    model: dict[str, Instant] = {}
    now = NOW
    for _ in range(60):
        now = Instant(now + random.choice([0, 1, 999, SECOND, MINUTE, DAY, -1, -SECOND, -SKEW_US, -MINUTE, -DAY]))
        limits = [
            Limit("test", 1, SECOND),
            Limit("test", 7, MINUTE),
            Limit("test", random.randint(1, 1000), random.randint(SECOND, DAY)),
            Limit("test", COUNT_MAX, DAY),
        ]
        chosen = [(name, random.choice(limits)) for name in random.sample(names, random.randint(1, 20))]
        asks = [BucketTokens(name, limit, random.randint(0, limit.count)) for name, limit in chosen]
        granted = await lease(database, *asks, now=now)
        for ask in asks:
            model[ask.key], tokens = take(model.get(ask.key, now), ask.limit, ask.tokens, now)
            assert granted[ask.key] == TokenLease(ask.key, tokens, model[ask.key])
        unused = [BucketTokens(ask.key, ask.limit, random.randint(0, granted[ask.key].tokens)) for ask in asks[::3]]
        await put_back(database, *unused)
        for ask in unused:
            model[ask.key] = give_back(model[ask.key], ask.limit, ask.tokens)


async def test_a_full_bucket_is_granted_once_among_many_who_ask_at_once(database: Database) -> None:
    async def ask() -> int:
        return (await lease(database, BucketTokens("one", LIMIT, 7)))["one"].tokens

    granted = await asyncio.gather(*(ask() for _ in range(40)))
    assert sum(granted) == LIMIT.count
    assert sorted(granted)[-15:] == [2] + [7] * 14


async def test_many_who_lease_and_give_back_the_same_keys_never_wait_in_a_circle(database: Database) -> None:
    """A circle would be broken by the server with an error, after a second."""
    names = [f"key {number}" for number in range(50)]

    async def client(random: Random) -> int:
        taken = 0
        for turn in range(30):
            asks = [BucketTokens(name, LIMIT, 1) for name in random.sample(names, 40)]
            granted = await lease(database, *asks, now=Instant(NOW + turn))
            taken += sum(one.tokens for one in granted.values())
            await put_back(database, *[BucketTokens(one.key, LIMIT, one.tokens) for one in granted.values()][::2])
            await quotas.forget(database, Instant(NOW - DAY), 100)
        return taken

    assert all(await asyncio.gather(*(client(Random(seed)) for seed in range(8))))


async def test_a_bucket_is_forgotten_when_it_is_full_by_everybodys_clock(database: Database) -> None:
    await lease(database, BucketTokens("login", Limit("login", 5, MINUTE), 1), BucketTokens("busy", LIMIT, 100))
    full_at = Instant(NOW + 12 * SECOND)
    assert await quotas.forget(database, full_at, 10) == 0
    assert await quotas.forget(database, Instant(full_at + SKEW_US), 10) == 1
    assert await keys(database) == {"busy"}


async def test_forgetting_takes_no_more_than_a_batch(database: Database) -> None:
    await lease(database, *(BucketTokens(f"key {number}", LIMIT, 1) for number in range(25)))
    later = Instant(NOW + DAY)
    assert [await quotas.forget(database, later, 10) for _ in range(4)] == [10, 10, 5, 0]


async def test_what_is_given_back_to_a_forgotten_bucket_makes_no_row(database: Database) -> None:
    await put_back(database, BucketTokens("gone", LIMIT, 10))
    assert await keys(database) == set()


async def test_giving_back_never_fills_a_bucket_above_its_count(database: Database) -> None:
    await lease(database, BucketTokens("one", LIMIT, 10))
    await put_back(database, BucketTokens("one", LIMIT, 10_000))
    assert (await lease(database, BucketTokens("one", LIMIT, LIMIT.count)))["one"].tokens == LIMIT.count
    assert (await lease(database, BucketTokens("one", LIMIT, 1)))["one"].tokens == 0


async def test_a_smaller_limit_counts_what_was_used_under_the_larger(database: Database) -> None:
    smaller = Limit("test", 10, MINUTE)
    granted = (await lease(database, BucketTokens("one", LIMIT, 50)))["one"]
    assert available(granted.full_at, smaller, NOW) == 5
    assert (await lease(database, BucketTokens("one", smaller, 10)))["one"].tokens == 5


async def test_leases_are_not_logged_and_so_wait_for_no_disk(database: Database) -> None:
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT relpersistence FROM pg_class WHERE relname = 'quota'") == b"u"
