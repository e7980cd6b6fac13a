"""Who hears whom: batches, generations, lost processes, and the history of beats."""

import asyncio
import time
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.databases.node_rows import COOL, IDS, LIMITS, an_owner, nodes_of, now_of, relinked, remove, told
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.nodes.health.telemetry import Beat, DeviceBeat
from tidemill.store import partitions
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database
from tidemill.store.nodes import node_alerts, node_views, presence, telemetry
from tidemill.store.nodes.presence import LinkBeat, NodeLink, SupersededLink
from tidemill.store.operations import processes
from tidemill.store.operations.processes import Process

HERE = UUID(int=7)
HOT = replace(COOL, devices=(DeviceBeat(99, 100, 91, 300), DeviceBeat(5, 0, None, None)))


async def hear(
    database: Database, now: Instant, *beats: LinkBeat, links: tuple[NodeLink, ...] = (), process_id: UUID = HERE
) -> list[SupersededLink]:
    async with database.transaction() as transaction:
        return list(await presence.note_heard(transaction, process_id, beats, links, limits=LIMITS, ids=IDS, now=now))


async def row_of(database: Database, node_id: UUID) -> asyncpg.Record:
    async with database.connection() as connection:
        row = await connection.fetchrow("SELECT * FROM presence WHERE node_id = $1", node_id)
    assert row
    return row


async def beats_of(database: Database, node_id: UUID) -> list[Beat]:
    async with database.connection() as connection:
        return [one.beat for one in await telemetry.recent(connection, node_id, None, 100)]


@pytest.fixture
async def now(database: Database) -> Instant:
    return await now_of(database)


async def test_beats_are_kept_and_read_back_as_they_were(database: Database, now: Instant) -> None:
    first, second = await nodes_of(database, await an_owner(database, now), 2, HERE, now)
    odd = Beat(100, 2**31, 2**53, None, tuple(DeviceBeat(i, 2**31, -100, 2**31) for i in range(64)))
    none = Beat(0, 0, 2**53, 0, ())
    later = Instant(now + SECOND)
    assert not await hear(database, later, LinkBeat(first, now, odd), LinkBeat(second, later, none))
    assert await beats_of(database, first.node_id) == [odd]
    async with database.connection() as connection:
        found = await node_views.readings(connection, [first.node_id, second.node_id])
    assert (found[first.node_id].beat, found[first.node_id].beat_at) == (odd, now)
    assert (found[second.node_id].beat, found[second.node_id].beat_at) == (none, later)
    assert (await row_of(database, first.node_id))["heard_at"] == later


async def test_a_link_without_a_beat_is_alive_and_keeps_the_last_beat(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await hear(database, now, LinkBeat(link, now, COOL))
    later = Instant(now + 9 * SECOND)
    assert not await hear(database, later, links=(link,))
    row = await row_of(database, link.node_id)
    assert (row["heard_at"], row["beat_at"], row["round_trip_ms"]) == (later, now, COOL.round_trip_ms)
    assert len(await beats_of(database, link.node_id)) == 1


async def test_what_comes_from_an_old_link_changes_nothing(database: Database, now: Instant) -> None:
    (old,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    elsewhere = UUID(int=8)
    new = await relinked(database, old, elsewhere, now)
    before = await row_of(database, old.node_id)
    later = Instant(now + SECOND)
    assert await hear(database, later, LinkBeat(old, later, HOT), links=(old,)) == [SupersededLink(old, removed=False)]
    async with database.connection() as connection:
        await presence.note_gone(connection, HERE, [old])
    assert await row_of(database, old.node_id) == before
    assert await beats_of(database, old.node_id) == []
    assert not await told(database, "node.alert_raised")
    assert not await hear(database, later, LinkBeat(new, later, COOL), process_id=elsewhere)


async def test_both_links_of_a_node_in_one_process_are_told_apart(database: Database, now: Instant) -> None:
    (old,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    new = await relinked(database, old, HERE, now)
    beats = (LinkBeat(old, now, HOT), LinkBeat(new, now, COOL))
    assert await hear(database, now, *beats, links=(old, new)) == [SupersededLink(old, removed=False)]
    assert await beats_of(database, old.node_id) == [COOL]


async def test_a_removed_node_is_told_so_and_leaves_no_trace(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await remove(database, link.node_id, now)
    assert await hear(database, now, LinkBeat(link, now, HOT)) == [SupersededLink(link, removed=True)]
    assert await beats_of(database, link.node_id) == []


async def test_a_node_that_never_was_is_superseded_and_fails_nobody(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    strange = NodeLink(UUID(int=1), 1)
    assert await hear(database, now, LinkBeat(strange, now, COOL), LinkBeat(link, now, COOL)) == [
        SupersededLink(strange, removed=False)
    ]
    assert await beats_of(database, link.node_id) == [COOL]


async def test_a_link_that_is_over_is_freed_for_others(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    async with database.connection() as connection:
        await presence.note_gone(connection, UUID(int=8), [link])
        assert (await row_of(database, link.node_id))["process_id"] == HERE, "another process says nothing about it"
        await presence.note_gone(connection, HERE, [link])
    assert (await row_of(database, link.node_id))["process_id"] is None


async def test_a_lost_process_holds_no_links_and_takes_them_back_when_it_returns(
    database: Database, now: Instant
) -> None:
    await processes.register(database, Process(HERE, "here", 1, "1", "", now, now, "running"), IDS)
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    async with database.connection() as connection:
        assert await presence.free(connection, 100) == 0
    await processes.lose(database, Instant(now + 1), 100, IDS, now)
    async with database.connection() as connection:
        assert await presence.free(connection, 100) == 1
    assert (await row_of(database, link.node_id))["process_id"] is None
    await processes.seen(database, HERE, IDS, now)
    later = Instant(now + SECOND)
    assert not await hear(database, later, LinkBeat(link, later, COOL))
    row = await row_of(database, link.node_id)
    assert (row["process_id"], row["linked_at"], row["offline_since"]) == (HERE, later, None)


async def test_a_hot_device_is_told_once_and_cleared_when_it_has_been_cool(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    for second in range(0, 280, 20):
        at = Instant(now + second * SECOND)
        await hear(database, at, LinkBeat(link, at, HOT if second % 40 == 0 else COOL))
    assert len(await told(database, "node.alert_raised")) == 1, "a device that flickers is told once"
    assert not await told(database, "node.alert_cleared")
    async with database.connection() as connection:
        (open_,) = (await node_alerts.of_nodes(connection, [link.node_id]))[link.node_id]
    assert "91 °C" in open_.sentence
    at = Instant(now + 301 * SECOND)
    await hear(database, at, LinkBeat(link, at, COOL))
    (cleared,) = await told(database, "node.alert_cleared")
    assert cleared.subject == f"node:{link.node_id}"


async def test_processes_that_write_the_same_nodes_at_once_never_block_each_other(
    database: Database, now: Instant
) -> None:
    links = await nodes_of(database, await an_owner(database, now), 200, HERE, now)

    async def storm(order: int) -> None:
        for _ in range(5):
            await hear(database, now, *(LinkBeat(link, now, COOL) for link in links[::order]), links=tuple(links))

    await asyncio.wait_for(asyncio.gather(*(storm(order) for order in (1, -1, 2, -2))), 30)


async def test_a_second_of_five_thousand_nodes_costs_little(database: Database, now: Instant) -> None:
    """A budget of a few milliseconds of our own CPU, measured generously: the machine is shared."""
    links = await nodes_of(database, await an_owner(database, now), 5_000, HERE, now)
    batches = [[LinkBeat(link, now, COOL) for link in links[start : start + 170]] for start in range(0, 1_700, 170)]
    await hear(database, now, *batches[0])
    began = time.process_time()
    for batch in batches:
        await hear(database, now, *batch)
    assert (time.process_time() - began) / len(batches) < 0.05


async def test_beats_are_read_newest_first_page_by_page(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    ats = [Instant(now + number * 30 * SECOND) for number in range(5)]
    for number, at in enumerate(ats):
        await hear(database, at, LinkBeat(link, at, replace(COOL, cpu_pct=number)))
    async with database.connection() as connection:
        found = await telemetry.recent(connection, link.node_id, None, 2)
        older = await telemetry.recent(connection, link.node_id, found[-1].at, 2)
    assert [one.beat.cpu_pct for one in (*found, *older)] == [4, 3, 2, 1]


async def test_old_days_are_dropped_and_never_come_back(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await hear(database, now, LinkBeat(link, now, COOL))
    async with database.connection() as connection:
        assert len(await telemetry.forget(connection, now)) == 1, "yesterday"
        assert not await telemetry.forget(connection, now)
        made = await partitions.create(connection, now, now, now)
        assert not [name for name in made if name.startswith("telemetry")]
        assert await beats_of(database, link.node_id) == [COOL]
        made = await partitions.create(connection, now, now, Instant(now + DAY))
        assert len([name for name in made if name.startswith("telemetry")]) == 1, "a day ahead, every day"
        assert await telemetry.forget(connection, Instant(now + DAY))
    assert await beats_of(database, link.node_id) == []


@pytest.mark.parametrize("table", ["event", "transfer", "audit_trail", "presence", "node; DROP TABLE node"])
async def test_the_program_can_drop_no_record(database: Database, now: Instant, table: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.PostgresError, match="not kept by the day"):
            await connection.fetch("SELECT drop_days($1, $2)", table, Instant(now + 9_000 * DAY))


async def test_the_program_can_rewrite_no_beat(database: Database) -> None:
    async with database.connection() as connection:
        for statement in ("UPDATE telemetry SET cpu_pct = 0", "DELETE FROM telemetry", "TRUNCATE telemetry"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)


async def test_days_are_made_while_somebody_reads_and_writes(
    database: Database, urls: DatabaseUrls, now: Instant
) -> None:
    """A backup reads every table for a long time: beats must not wait for it, nor for what waits for it."""
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    async with database.transaction() as reader, database.connection() as other:
        await reader.execute("SELECT count(*) FROM telemetry")
        assert await partitions.create(other, now, now, Instant(now + DAY))
        with pytest.raises(asyncpg.LockNotAvailableError):
            await telemetry.forget(other, now)
        async with asyncio.timeout(30):
            assert not await hear(database, now, LinkBeat(link, now, COOL))
