"""The loops that look after nodes, with the clock in the test's hand and several copies at once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.control.test_loops import parts_of
from tests.worlds.clocks import HandClock
from tests.worlds.databases.node_rows import COOL, IDS, an_owner, nodes_of, told
from tidemill.control.nodes.loops import NodeAlertDuty, NodeHealthLoop, TelemetryDuty
from tidemill.control.nodes.node_registry import alert_limits
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.nodes.health.alerts import LASTS_US
from tidemill.store.database import Database
from tidemill.store.nodes import presence
from tidemill.store.nodes.presence import LinkBeat, NodeLink
from tidemill.store.operations import processes
from tidemill.store.operations.processes import Process

GONE = UUID(int=8)


@pytest.fixture
async def parts(database: Database, tmp_path: Path) -> AsyncIterator[Parts]:
    made = await parts_of(database, IDS, tmp_path)
    now = made.clock.now()
    await processes.register(database, Process(made.process_id, "here", 1, "1", "", now, now), IDS)
    yield made
    await made.poster.close()


def later(parts: Parts, seconds: float) -> Instant:
    assert isinstance(parts.clock, HandClock)
    parts.clock.at = Instant(int(parts.clock.at + seconds * SECOND))
    return parts.clock.at


async def beat(parts: Parts, *links: NodeLink) -> None:
    now = parts.clock.now()
    limits = alert_limits(parts.settings)
    async with parts.loop_database.transaction() as transaction:
        beats = [LinkBeat(link, now, COOL) for link in links]
        assert not await presence.note_heard(transaction, parts.process_id, beats, [], limits=limits, ids=IDS, now=now)


async def test_copies_of_the_loop_find_the_silent_node_after_five_minutes_and_tell_it_once(parts: Parts) -> None:
    owner = await an_owner(parts.loop_database, parts.clock.now())
    silent, alive = await nodes_of(parts.loop_database, owner, 2, parts.process_id, parts.clock.now())
    copies = [NodeHealthLoop(parts) for _ in range(3)]
    found_after_s = 0
    for second in range(5, 400, 5):
        now = later(parts, 5)
        await beat(parts, alive)
        ticks = await asyncio.gather(*(copy.tick(now) for copy in copies))
        if any(tick.applied for tick in ticks):
            found_after_s = second
            break
    assert found_after_s in range(300, 311)
    assert [event.subject for event in await told(parts.loop_database, "node.offline")] == [f"node:{silent.node_id}"]


async def test_the_links_of_a_process_that_said_goodbye_or_was_lost_are_freed(parts: Parts) -> None:
    now = parts.clock.now()
    await processes.register(parts.loop_database, Process(GONE, "there", 1, "1", "", now, now), IDS)
    owner = await an_owner(parts.loop_database, now)
    await nodes_of(parts.loop_database, owner, 3, GONE, now)
    await nodes_of(parts.loop_database, owner, 2, UUID(int=9), now)  # a process that nobody remembers
    (kept,) = await nodes_of(parts.loop_database, owner, 1, parts.process_id, now)
    loop = NodeHealthLoop(parts)
    assert (await loop.tick(now)).applied == 2
    await processes.stop(parts.loop_database, GONE, IDS, now)
    assert (await loop.tick(later(parts, 5))).applied == 3
    async with parts.loop_database.connection() as connection:
        held = await connection.fetch("SELECT node_id FROM presence WHERE process_id IS NOT NULL")
    assert [row["node_id"] for row in held] == [kept.node_id]


async def test_alerts_that_are_over_are_cleared_by_one_process_a_minute(parts: Parts) -> None:
    now = parts.clock.now()
    (link,) = await nodes_of(parts.loop_database, await an_owner(parts.loop_database, now), 1, parts.process_id, now)
    async with parts.loop_database.connection() as connection:
        await connection.execute(
            "INSERT INTO node_alert (node_id, kind, device, sentence, since) VALUES ($1, 'failing_device', 0, 'x', $2)",
            link.node_id,
            now,
        )
    duties = [NodeAlertDuty(parts) for _ in range(3)]
    ticks = [await duty.tick(later(parts, LASTS_US / SECOND)) for duty in duties[:1]]
    ticks += await asyncio.gather(*(duty.tick(parts.clock.now()) for duty in duties))
    assert sum(tick.applied for tick in ticks) == 1
    assert len(await told(parts.loop_database, "node.alert_cleared")) == 1


async def test_beats_are_forgotten_after_the_days_that_the_settings_say(parts: Parts) -> None:
    now = parts.clock.now()
    (link,) = await nodes_of(parts.loop_database, await an_owner(parts.loop_database, now), 1, parts.process_id, now)
    await beat(parts, link)
    await TelemetryDuty(parts).tick(now)
    for days, kept in ((1, 1), (5, 1), (3, 0)):
        await TelemetryDuty(parts).tick(later(parts, days * DAY / SECOND))
        async with parts.loop_database.connection() as connection:
            assert await connection.fetchval("SELECT count(*) FROM telemetry") == kept
