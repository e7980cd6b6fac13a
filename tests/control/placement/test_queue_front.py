"""The front of the queue in a placer's memory: it never says more than the queue does, and forgets what changes."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import World, body_of, make_world
from tidemill.control.placement import queue_front
from tidemill.control.placement.queue_front import DemandMemory, QueueFront
from tidemill.store.database import Database
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.wire.messages import DeclinedMessage


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


async def looked_at(world: World, front: QueueFront) -> list[UUID]:
    await front.look(world.now)
    return [one.queued_task.task_id for one in front.page(10_000, ())]


async def queued(world: World) -> list[UUID]:
    async with world.parts.loop_database.connection() as connection:
        rows = await connection.fetch("SELECT task_id FROM task_queue ORDER BY rank, task_id")
    return [row["task_id"] for row in rows]


async def test_what_waits_is_seen_in_the_order_of_the_queue_and_what_left_it_is_not(world: World) -> None:
    front = QueueFront(world.parts.loop_database, DemandMemory())
    await world.job(5)
    assert await looked_at(world, front) == await queued(world)
    await world.job(3)
    oldest, *_, newest = await queued(world)
    async with world.parts.loop_database.connection() as connection:
        await connection.execute("UPDATE task_queue SET rank = 0 WHERE task_id = $1", newest)
        await connection.execute("DELETE FROM task_queue WHERE task_id = $1", oldest)
    seen = await looked_at(world, front)
    assert len(seen) == 7
    assert seen == await queued(world)
    assert seen[0] == newest


async def test_what_was_decided_is_forgotten_until_it_waits_again(world: World) -> None:
    front = QueueFront(world.parts.loop_database, DemandMemory())
    await world.job(3)
    await front.look(world.now)
    first, *_ = front.page(10, ())
    front.forget([first.queued_task])
    assert len(front) == 2
    assert len(await looked_at(world, front)) == 3


async def test_of_a_sort_that_finds_no_room_one_task_of_each_job_is_seen(world: World) -> None:
    front = QueueFront(world.parts.loop_database, DemandMemory())
    jobs = [await world.job(4), await world.job(4)]
    await world.job(2, cost_max_uc=1_000_001)
    await front.look(world.now)
    first = front.page(2, ())
    hopeless = {one.demand_class for one in first}
    rest = front.page(10_000, hopeless)
    assert len(hopeless) == 1
    assert [one.queued_task.job_id for one in rest if one.demand_class in hopeless] == [jobs[1]]
    assert len([one for one in rest if one.demand_class not in hopeless]) == 2


async def test_memory_is_bounded_however_large_tasks_are(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_front, "AT_ONCE", 2)
    monkeypatch.setattr(queue_front, "BODIES_MAX_BYTES", 100)
    front = QueueFront(world.parts.loop_database, DemandMemory())
    await world.job(9)
    seen = await looked_at(world, front)
    assert seen == (await queued(world))[:2]


async def test_a_placer_that_remembers_the_queue_does_not_ask_who_declined_until_it_may(world: World) -> None:
    node = await world.node()
    loop = world.placing()
    await world.job(1)
    await loop.tick(world.later(1))
    [offer] = await world.offers()
    await world.say(node, DeclinedMessage(offer.attempt_id.bytes, offer.lease, "The queue is full."))
    await loop.tick(world.later(0.3))
    assert await world.offers() == []
    await loop.tick(world.later(60))
    [again] = await world.offers()
    assert again.lease == 2


async def test_what_is_placed_is_told_with_the_numbers_that_others_find_it_by(world: World) -> None:
    for _ in range(2):
        await world.node()
    told: list[AttemptAssignment] = []
    loop = world.placing(on_placed=lambda offers, _: told.extend(offers))
    await world.job(6)
    await loop.tick(world.later(1))
    assert len(told) == 6
    assert told == await world.offers()


async def test_demands_that_were_forgotten_are_found_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One page asks for what is known and for what is new, and there is room for one."""
    monkeypatch.setattr(queue_front, "NUMBERS_MAX", 1)
    await world.job(1, body=body_of(1))
    front = QueueFront(world.parts.loop_database, DemandMemory())
    await front.look(world.now)
    await world.job(1, body=body_of(1, side=128))
    await world.job(1, body=body_of(2))
    await front.look(world.later(1))
    assert [task.queued_task.demand is not None for task in front.page(10, ())] == [True] * 3
