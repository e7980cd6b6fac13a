"""Offline is what was silent while we listened: not what we could not hear, and not what came back elsewhere."""

import asyncio
from uuid import UUID

import pytest

from tests.worlds.databases.node_rows import COOL, IDS, LIMITS, an_owner, nodes_of, now_of, relinked, remove, told
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.health.silence import HealthRules
from tidemill.store.database import Database
from tidemill.store.nodes import node_alerts, node_health, presence
from tidemill.store.nodes.node_health import HealthTick
from tidemill.store.nodes.presence import LinkBeat, NodeLink
from tidemill.store.operations import processes
from tidemill.store.operations.processes import Process

RULES = HealthRules(tick_us=5 * SECOND, beat_us=30 * SECOND, offline_after_us=300 * SECOND)
HERE, THERE = UUID(int=7), UUID(int=8)


class Days:
    """A pool whose time a test lets pass."""

    def __init__(self, database: Database, now: Instant) -> None:
        self.database = database
        self.now = now

    async def tick(self) -> HealthTick:
        async with self.database.transaction() as transaction:
            return await node_health.tick(transaction, RULES, 1_000, IDS, self.now)

    async def beat(self, *links: NodeLink, process_id: UUID = HERE) -> None:
        beats = [LinkBeat(link, self.now, COOL) for link in links]
        async with self.database.transaction() as transaction:
            assert not await presence.note_heard(
                transaction, process_id, beats, [], limits=LIMITS, ids=IDS, now=self.now
            )

    async def pass_(self, seconds: int, *beating: NodeLink, process_id: UUID = HERE) -> list[UUID]:
        """Let time pass, with a tick every 5 s and a beat of these every 30. Answers who went offline."""
        offline: list[UUID] = []
        for second in range(5, seconds + 1, 5):
            self.now = Instant(self.now + 5 * SECOND)
            if second % 30 == 0 and beating:
                await self.beat(*beating, process_id=process_id)
            offline += (await self.tick()).offline
        return offline

    def sleep(self, seconds: int) -> None:
        """Our own outage: nobody ticks."""
        self.now = Instant(self.now + seconds * SECOND)


@pytest.fixture
async def days(database: Database) -> Days:
    made = Days(database, await now_of(database))
    await made.tick()
    return made


async def test_a_node_that_is_silent_while_we_listen_is_offline_once_and_its_owner_is_told(days: Days) -> None:
    owner = await an_owner(days.database, days.now)
    silent, alive = await nodes_of(days.database, owner, 2, HERE, days.now)
    assert await days.pass_(300, alive) == []
    assert await days.pass_(60, alive) == [silent.node_id]
    assert await days.pass_(600, alive) == []
    (event,) = await told(days.database, "node.offline")
    assert (event.subject, event.accounts) == (f"node:{silent.node_id}", [owner])
    async with days.database.connection() as connection:
        (open_,) = (await node_alerts.of_nodes(connection, [silent.node_id]))[silent.node_id]
    assert open_.kind == "offline"


async def test_it_is_online_with_the_next_beat_and_when_is_kept(days: Days) -> None:
    silent, alive = await nodes_of(days.database, await an_owner(days.database, days.now), 2, HERE, days.now)
    await days.pass_(360, alive)
    await days.beat(silent)
    await days.beat(silent)
    (event,) = await told(days.database, "node.online")
    assert event.subject == f"node:{silent.node_id}"
    async with days.database.connection() as connection:
        row = await connection.fetchrow("SELECT * FROM presence WHERE node_id = $1", silent.node_id)
        assert not await node_alerts.of_nodes(connection, [silent.node_id])
    assert row
    assert (row["offline_since"], row["back_online_at"]) == (None, days.now)
    assert await days.pass_(250, alive) == []


async def test_our_outage_of_ten_minutes_blames_nobody(days: Days) -> None:
    one = await nodes_of(days.database, await an_owner(days.database, days.now), 3, HERE, days.now)
    other = await nodes_of(days.database, await an_owner(days.database, days.now), 3, HERE, days.now)
    await days.pass_(60, *one, *other)
    for _ in range(3):
        days.sleep(600)
        assert await days.pass_(60) == [], "they need a while to come back"
        assert await days.pass_(60, *one, *other) == []
    assert not await told(days.database, "node.offline", "pool.deaf")


async def test_an_outage_of_a_pool_with_one_node_blames_it_neither(days: Days) -> None:
    (link,) = await nodes_of(days.database, await an_owner(days.database, days.now), 1, HERE, days.now)
    for _ in range(5):
        days.sleep(600)
        assert await days.pass_(30) == []
    await days.beat(link)
    assert await days.pass_(240) == []


async def test_many_outages_in_a_row_do_not_add_up_to_blame(days: Days) -> None:
    """A process that starts and dies again and again has not listened, however often it looks."""
    await nodes_of(days.database, await an_owner(days.database, days.now), 1, HERE, days.now)
    for _ in range(100):
        days.sleep(600)
        assert not (await days.tick()).offline


async def test_when_all_fall_silent_at_once_we_are_deaf_and_say_so_once(days: Days) -> None:
    links = [
        *await nodes_of(days.database, await an_owner(days.database, days.now), 1, HERE, days.now),
        *await nodes_of(days.database, await an_owner(days.database, days.now), 1, HERE, days.now),
    ]
    assert await days.pass_(1_200) == []
    assert len(await told(days.database, "pool.deaf")) == 1
    await days.beat(links[0])
    assert await days.pass_(150, links[0]) == []
    assert len(await told(days.database, "pool.hears_again")) == 1
    assert await days.pass_(150, links[0]) == [links[1].node_id], "who stays silent then is offline after all"


async def test_nodes_of_a_killed_process_come_back_elsewhere_and_are_not_blamed(days: Days) -> None:
    database = days.database
    await processes.register(database, Process(THERE, "there", 1, "1", "", days.now, days.now, "running"), IDS)
    links = await nodes_of(database, await an_owner(database, days.now), 20, THERE, days.now)
    await days.pass_(60, *links, process_id=THERE)
    await processes.lose(database, Instant(days.now + 1), 10, IDS, days.now)
    async with database.connection() as connection:
        assert await presence.free(connection, 100) == 20
    assert await days.pass_(30) == []
    back = [await relinked(database, link, HERE, days.now) for link in links]
    assert await days.pass_(600, *back) == []
    assert not await told(database, "node.offline", "node.online")


async def test_ticks_of_many_processes_at_once_count_once(days: Days) -> None:
    silent, alive = await nodes_of(days.database, await an_owner(days.database, days.now), 2, HERE, days.now)
    before = (await days.tick()).listening
    assert before
    for _ in range(80):
        days.now = Instant(days.now + 5 * SECOND)
        await days.beat(alive)
        ticks = await asyncio.gather(*(days.tick() for _ in range(4)))
        assert any(tick.listening for tick in ticks)
    after = (await days.tick()).listening
    assert after
    assert after.listened_us - before.listened_us == 400 * SECOND
    assert len(await told(days.database, "node.offline")) == 1
    assert (await told(days.database, "node.offline"))[0].subject == f"node:{silent.node_id}"


async def test_a_removed_node_is_neither_missed_nor_alerted(days: Days) -> None:
    gone, alive = await nodes_of(days.database, await an_owner(days.database, days.now), 2, HERE, days.now)
    await remove(days.database, gone.node_id, days.now)
    assert await days.pass_(600, alive) == []


async def test_a_node_that_never_called_is_not_missed(days: Days) -> None:
    never, alive = await nodes_of(days.database, await an_owner(days.database, days.now), 2, HERE, days.now)
    async with days.database.connection() as connection:
        await connection.execute("UPDATE presence SET heard_at = NULL WHERE node_id = $1", never.node_id)
    assert await days.pass_(600, alive) == []


async def test_hearing_and_marking_at_once_leave_a_node_in_one_state(days: Days) -> None:
    links = await nodes_of(days.database, await an_owner(days.database, days.now), 50, HERE, days.now)
    (alive,) = await nodes_of(days.database, await an_owner(days.database, days.now), 1, HERE, days.now)
    await days.pass_(295, alive)
    days.now = Instant(days.now + 10 * SECOND)
    await days.beat(alive)
    await asyncio.gather(days.tick(), days.beat(*links), days.tick(), days.beat(*reversed(links)))
    await days.beat(*links)
    offline, online = await told(days.database, "node.offline"), await told(days.database, "node.online")
    assert sorted(event.subject for event in offline) == sorted(event.subject for event in online)
    async with days.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM presence WHERE offline_since IS NOT NULL") == 0
        assert await connection.fetchval("SELECT count(*) FROM node_alert") == 0
