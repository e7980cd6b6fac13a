"""Nodes that say much: what they make the pool keep is bounded, whatever they say."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worlds.databases.dispatch_world import World, body_of, demand_of_body, make_world, signed_by
from tests.worlds.databases.node_rows import told
from tidemill.control.operations.housekeeping import DemandDuty
from tidemill.core.clock import DAY, HOUR, SECOND, Instant
from tidemill.core.nodes.reports import EVENTS_SAVED
from tidemill.core.placement.task_demand import stored_form
from tidemill.store.database import Database
from tidemill.store.jobs import tasks
from tidemill.wire.messages import DeclinedMessage


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


async def test_receipts_that_cannot_be_taken_fill_no_log(world: World) -> None:
    honest, flooding = await world.node(), await world.node(price_uc=9_000_000)
    await world.job(1)
    [offer] = await world.place()
    stolen = signed_by(honest, world.receipt(offer))
    for _ in range(3):
        await world.say(flooding, *[stolen] * 100)
    assert len(await told(world.parts.loop_database, "node.receipts_refused")) == EVENTS_SAVED
    world.later(61)
    await world.say(flooding, *[stolen] * 100)
    assert len(await told(world.parts.loop_database, "node.receipts_refused")) == EVENTS_SAVED + 2
    await world.deliver(offer)
    assert await world.earned(honest) > 0


async def test_a_node_that_declines_a_task_gets_it_more_and_more_seldom(world: World) -> None:
    node = await world.node()
    await world.job(1)
    until = Instant(world.now + HOUR)
    while world.now < until:
        for offer in await world.place():
            await world.say(node, DeclinedMessage(offer.attempt_id.bytes, offer.lease, "not today"))
        world.later(29)
    attempts = await world.value("SELECT count(*) FROM attempt")
    assert attempts == 7, "after 30 s, 2 min, 4.5 min, 8 min, 12.5 min, 18 min"
    world.later(DAY // SECOND)
    assert len(await world.place()) == 1, "it is never left out for good"


async def test_what_no_open_task_demands_is_forgotten_after_a_day(world: World) -> None:
    duty, demands = DemandDuty(world.parts), "SELECT count(*) FROM demand"
    await world.node()
    await world.job(1)
    await world.deliver(*await world.place())
    await duty.perform(world.now)
    assert await world.value(demands) == 1, "the next job may ask the same"
    await duty.perform(world.later(2 * DAY // SECOND))
    assert await world.value(demands) == 0
    await world.job(1)
    await duty.perform(world.later(2 * DAY // SECOND))
    assert await world.value(demands) == 1, "an open task demands it"


async def test_a_demand_that_a_job_is_just_confirmed_with_is_not_forgotten(world: World) -> None:
    duty, demand = DemandDuty(world.parts), demand_of_body(body_of(0))
    await world.node()
    await world.job(1)
    await world.deliver(*await world.place())
    world.later(2 * DAY // SECOND)
    async with world.parts.loop_database.transaction() as transaction:
        kept = {"ids": [demand.id], "bodies": [stored_form(demand)]}
        await tasks._KEEP_DEMANDS.run(transaction, **kept, now=world.now)
        assert await duty.perform(world.now) == 0
    assert await duty.perform(world.now) == 0, "it was used a moment ago"
    assert await duty.perform(world.later(2 * DAY // SECOND)) == 1
