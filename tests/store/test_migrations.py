"""Migrations, rights and partitions on a real server."""

import asyncio
from typing import Any

import asyncpg
import pytest
from asyncpg.types import ServerVersion

from tidemill.core.clock import DAY, Instant
from tidemill.core.events.log import LOG_START, PoolCreated
from tidemill.core.faults import DatabaseFault, WrongVersion
from tidemill.core.ids import Ids, first_id_at
from tidemill.store import partitions
from tidemill.store.address import DatabaseUrls
from tidemill.store.checks import checks
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, connect
from tidemill.store.events import events
from tidemill.store.migrate import _LOCK, Migration, _check_server, known, migrate, plan

PARTITIONS = "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'event'::regclass"


async def owner_runs(urls: DatabaseUrls, statement: str, *values: Any) -> None:
    connection = await connect(urls.owner)
    try:
        await connection.execute(statement, *values)
    finally:
        await connection.close()


async def test_many_processes_migrate_at_once_and_one_pool_comes_of_it(empty_urls: DatabaseUrls, ids: Ids) -> None:
    applied = await asyncio.gather(*(migrate(empty_urls, ids, "1.0") for _ in range(8)))
    assert sorted(map(len, applied)) == [0] * 7 + [len(known())]
    connection = await connect(empty_urls.program)
    log = await events.read(connection, LOG_START, 10)
    await connection.close()
    assert [event.kind for event in log] == [PoolCreated.kind]


async def test_a_server_that_goes_away_in_the_middle_is_a_fault(urls: DatabaseUrls, ids: Ids) -> None:
    """As when it is killed while a process starts: that one says so and can be started again."""
    holder = await connect(urls.owner)
    await holder.execute("SELECT pg_advisory_lock($1)", _LOCK)
    migrating = asyncio.create_task(migrate(urls, ids, "1.0"))
    waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'"
    while (pid := await holder.fetchval(waiting)) is None:
        await asyncio.sleep(0.01)
    await holder.execute("SELECT pg_terminate_backend($1)", pid)
    with pytest.raises(DatabaseFault, match="The database cannot be reached"):
        await migrating
    await holder.close()


async def test_a_newer_database_is_refused_with_both_numbers(urls: DatabaseUrls, ids: Ids) -> None:
    await owner_runs(urls, "INSERT INTO migration VALUES (9999, 'later', 'x', '99.0', now())")
    with pytest.raises(WrongVersion, match=r"schema 9999.*only up to \d+.*upgrade"):
        await migrate(urls, ids, "1.0")


async def test_a_database_of_another_build_is_refused(urls: DatabaseUrls, ids: Ids) -> None:
    await owner_runs(urls, "UPDATE migration SET sha256 = 'other' WHERE number = 1")
    with pytest.raises(WrongVersion, match="another build"):
        await migrate(urls, ids, "1.0")


async def test_a_longer_history_of_another_build_is_not_called_newer(urls: DatabaseUrls, ids: Ids) -> None:
    await owner_runs(urls, "UPDATE migration SET sha256 = 'other' WHERE number = 1")
    await owner_runs(urls, "INSERT INTO migration VALUES (9999, 'later', 'x', '0.1', now())")
    with pytest.raises(WrongVersion, match=r"another build.*make a new database"):
        await migrate(urls, ids, "1.0")


async def test_somebody_elses_database_is_refused_and_left_alone(empty_urls: DatabaseUrls, ids: Ids) -> None:
    await owner_runs(empty_urls, "CREATE TABLE precious (id int)")
    with pytest.raises(WrongVersion, match="not Tidemill's"):
        await migrate(empty_urls, ids, "1.0")


def test_what_is_missing_is_planned_in_order() -> None:
    steps = [Migration(number, f"step {number}", f"SELECT {number}") for number in (1, 2, 3)]
    assert plan(steps, {}) == steps
    assert plan(steps, {1: steps[0].sha256}) == steps[1:]
    assert plan(steps, {step.number: step.sha256 for step in steps}) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET body = '{}'",
        "DELETE FROM event",
        "TRUNCATE event",
        "UPDATE pool SET generation = 7",
        "DROP TABLE event",
        "CREATE TABLE mine (id int)",
        "ALTER TABLE event DISABLE TRIGGER ALL",
        "DELETE FROM migration",
        "DELETE FROM switch",
        "SET ROLE tidemill_owner",
    ],
)
async def test_the_program_cannot_rewrite_what_happened(database: Database, statement: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


async def test_a_partition_cannot_be_rewritten_directly_either(database: Database) -> None:
    async with database.connection() as connection:
        names = await connection.fetch(PARTITIONS)
        assert names
        for name in names:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"DELETE FROM {name['name']}")


async def test_partitions_are_made_ahead_once_and_hold_the_ids_of_their_month(database: Database, ids: Ids) -> None:
    async with database.connection() as connection:
        now = await read_clock(connection)
        later = Instant(now + 400 * DAY)
        made = await asyncio.gather(*(_create(database, now, later) for _ in range(4)))
        names = [name for batch in made for name in batch]
        assert len(names) == len(set(names)) >= 8
        assert await partitions.create(connection, now, later, now) == []
        async with connection.transaction():
            await events.append(connection, [PoolCreated("later")], Ids(lambda _: 0), later)
        month = await connection.fetchval(
            "SELECT tableoid::regclass::text FROM event WHERE id >= $1", first_id_at(later)
        )
    assert month in names


async def test_a_pool_that_was_off_for_months_gets_its_partitions_at_the_start(urls: DatabaseUrls, ids: Ids) -> None:
    connection = await connect(urls.owner)
    children = await connection.fetch(PARTITIONS)
    for child in children:
        await connection.execute(f"DROP TABLE {child['name']}")
    assert await migrate(urls, ids, "1.0") == []
    async with connection.transaction():
        await events.append(connection, [PoolCreated("again")], ids, await read_clock(connection))
    await connection.close()


async def test_an_old_server_is_refused_before_anything_is_touched() -> None:
    with pytest.raises(WrongVersion, match=r"PostgreSQL 16.*18 or newer"):
        _check_server(ServerVersion(16, 4, 0, "final", 0))


async def _create(database: Database, since: Instant, until: Instant) -> list[str]:
    async with database.connection() as connection:
        return list(await partitions.create(connection, since, until, since))


async def test_the_servers_first_id_of_an_instant_is_ours(database: Database) -> None:
    async with database.connection() as connection:
        for at in (Instant(0), Instant(1_700_000_000_123_000), Instant(4_000_000_000_999_000)):
            theirs = await connection.fetchval("SELECT first_id_at($1)", at)
            assert theirs.int >> 80 == first_id_at(at).int >> 80


async def test_a_sound_database_passes_every_check(urls: DatabaseUrls) -> None:
    found = await checks(urls)
    assert [check for check in found if not check.ok] == []
    assert [check.name for check in found] == ["schema", "partitions", "indexes", "rights", "tables", "events", "work"]


async def test_the_check_notices_what_is_wrong(urls: DatabaseUrls) -> None:
    await owner_runs(urls, "ALTER TABLE event RENAME TO former")
    await owner_runs(urls, "CREATE TABLE event (LIKE former INCLUDING ALL) PARTITION BY RANGE (id)")
    await owner_runs(urls, "GRANT DELETE ON event TO tidemill")
    failed = {check.name: check.detail for check in await checks(urls) if not check.ok}
    assert failed.keys() == {"partitions", "rights"}
    assert "event" in failed["partitions"]


async def test_the_check_says_when_migrations_are_missing(empty_urls: DatabaseUrls) -> None:
    (schema,) = await checks(empty_urls)
    assert not schema.ok
    assert "tidemill up" in schema.detail
