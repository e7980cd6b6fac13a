"""The log of events under concurrent writers, restless readers and processes that are killed."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest

from tests.worlds.databases.event_history import judge
from tests.worlds.forks import Forked, module
from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, Cursor, PoolRestored, RecordedEvent, SwitchThrown
from tidemill.core.ids import Ids
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.migrate import renew

WRITERS = 4  # processes of four connections each
TRANSACTIONS = 200  # of each connection
KILLED = 2
ENDLESS = 1_000_000


async def append(database: Database, ids: Ids, *reasons: str) -> None:
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        await events.append(transaction, [SwitchThrown("all", True, reason, "ann") for reason in reasons], ids, now)


async def read_all(database: Database, after: Cursor = LOG_START, limit: int = 1000) -> list[RecordedEvent]:
    found: list[RecordedEvent] = []
    while True:
        async with database.connection() as connection:
            batch = await events.read(connection, after, limit)
        if not batch:
            return found
        found += batch
        after = batch[-1].cursor


def reasons(found: Iterable[RecordedEvent]) -> list[str]:
    return [event.body["reason"] for event in found if event.kind == SwitchThrown.kind]


def start_writer(url: str, name: str, output: Path, transactions: int) -> Forked:
    with output.open("ab") as out:
        return module("tests.worlds.databases.event_writer", url, name, name, str(transactions), said=out.fileno())


async def killed_after(writer: Forked, output: Path, commits: int) -> None:
    """Let a writer commit a while, then kill it in the middle of whatever it does."""
    while len(output.read_bytes().splitlines()) < commits:
        await asyncio.sleep(0.01)
    writer.kill()
    assert await writer.wait() == -9


async def restless_reader(database: Database, random: Random, done: asyncio.Event) -> list[RecordedEvent]:
    """Reads in odd sizes, sleeps at odd times, and forgets everything but its cursor in between."""
    found: list[RecordedEvent] = []
    cursor = str(LOG_START)
    while True:
        finished = done.is_set()
        after = Cursor.parse(cursor)
        assert after
        async with database.connection() as connection:
            batch = await events.read(connection, after, random.randint(1, 50))
        found += batch
        if batch:
            cursor = str(batch[-1].cursor)
        elif finished:
            return found
        await asyncio.sleep(random.random() * 0.02)


@pytest.mark.parametrize("seed", [1])
async def test_sixteen_writers_and_killed_processes_lose_and_repeat_nothing(
    urls: DatabaseUrls, database: Database, tmp_path: Path, seed: int
) -> None:
    done, url = asyncio.Event(), urls.program
    outputs = [tmp_path / f"{seed}-{number}" for number in range(WRITERS + KILLED)]
    readers = [asyncio.create_task(restless_reader(database, Random(seed + number), done)) for number in range(4)]
    steady = [start_writer(url, out.name, out, TRANSACTIONS) for out in outputs[2 * KILLED :]]
    victims = [start_writer(url, out.name, out, ENDLESS) for out in outputs[:KILLED]]
    for number, victim in enumerate(victims):
        await killed_after(victim, outputs[number], 200)
        replacement = outputs[KILLED + number]
        steady.append(start_writer(url, replacement.name, replacement, TRANSACTIONS))
    assert await asyncio.gather(*(writer.wait() for writer in steady)) == [0] * WRITERS
    done.set()
    histories = await asyncio.gather(*readers)

    assert all(history == histories[0] for history in histories), "readers saw different orders"
    judge(reasons(histories[0]), outputs)
    cursors = [event.cursor for event in histories[0]]
    assert cursors == sorted(cursors)


async def test_an_open_transaction_holds_readers_back_and_nothing_is_missed(database: Database, ids: Ids) -> None:
    before = await read_all(database)
    async with database.transaction() as slow:
        await events.append(slow, [SwitchThrown("all", True, "slow", "ann")], ids, await read_clock(slow))
        await append(database, ids, "quick")
        assert await read_all(database, before[-1].cursor) == []
    assert reasons(await read_all(database, before[-1].cursor)) == ["slow", "quick"]


async def test_a_rolled_back_event_never_appears(database: Database, ids: Ids) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as transaction:
            await events.append(
                transaction, [SwitchThrown("all", True, "lost", "ann")], ids, await read_clock(transaction)
            )
            raise ZeroDivisionError
    assert "lost" not in reasons(await read_all(database))


async def test_an_event_outside_a_transaction_is_a_bug(database: Database, ids: Ids) -> None:
    async with database.connection() as connection:
        with pytest.raises(AssertionError):
            await events.append(connection, [SwitchThrown("all", True, "x", "ann")], ids, Instant(0))


async def test_the_horizon_is_behind_everything_that_can_be_read(database: Database, ids: Ids) -> None:
    await append(database, ids, "one")
    async with database.connection() as connection:
        horizon = await events.horizon(connection)
    assert await read_all(database, horizon) == []
    await append(database, ids, "two")
    assert reasons(await read_all(database, horizon)) == ["two"]


async def test_a_new_generation_comes_after_all_earlier_ones(urls: DatabaseUrls, database: Database, ids: Ids) -> None:
    await append(database, ids, "old")
    cursor = (await read_all(database))[-1].cursor
    await renew(urls, "a backup", ids, "1.0")
    await append(database, ids, "new")
    later = await read_all(database, cursor)
    assert [event.kind for event in later] == [PoolRestored.kind, SwitchThrown.kind]
    assert {event.cursor.generation for event in later} == {cursor.generation + 1}
    # Whatever transaction numbers a foreign server had given, a cursor of an earlier generation stays behind.
    foreign = Cursor(cursor.generation, 2**62, 2**62)
    assert await read_all(database, foreign) == later


async def test_the_cost_of_reading_does_not_grow_with_the_log(database: Database, ids: Ids) -> None:
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        many = [SwitchThrown("all", True, str(number), "ann") for number in range(20_000)]
        await events.append(transaction, many, ids, now)
    async with database.connection() as connection:
        last = (await read_all(database))[-10].cursor
        plan = await connection.fetch(
            f"EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) {events._READ.sql}",
            last.generation, last.transaction, last.number, 100,
        )  # fmt: skip
    text = "\n".join(row[0] for row in plan)
    assert "event_order" in text or "generation_transaction_number" in text, text
    assert "Seq Scan on event" not in text, text
