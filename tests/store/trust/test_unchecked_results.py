"""Results in the hands of whoever checks them: nobody else's, until that process is gone."""

import asyncio
from collections import Counter
from pathlib import Path
from uuid import UUID

from tests.worlds.databases.dispatch_world import World, a_customer, make_world
from tidemill.core.clock import SECOND
from tidemill.store.database import Database
from tidemill.store.operations import processes
from tidemill.store.operations.processes import Process
from tidemill.store.trust import unchecked_results
from tidemill.store.trust.unchecked_results import HandLimits

LEASE_US = 300 * SECOND


async def started(world: World) -> UUID:
    """A process that runs."""
    process_id = world.parts.ids.new(world.now)
    running = Process(process_id, "host", 1, "0.1", "", world.now, world.now, "running")
    await processes.register(world.parts.loop_database, running, world.parts.ids)
    return process_id


async def taken(world: World, process_id: UUID, *, mine: bool = False) -> int:
    database = world.parts.loop_database
    limits = HandLimits(10, 10)
    return len(
        await unchecked_results.take(database, process_id, limits, lease_us=LEASE_US, now=world.later(1), mine=mine)
    )


async def test_what_a_process_has_in_hand_is_somebody_elses_at_once_when_that_is_gone(
    database: Database, tmp_path: Path
) -> None:
    world = await make_world(database, tmp_path)
    await world.job(3, expected=False)
    await world.node()
    await world.deliver(*await world.place())
    first, second = await started(world), await started(world)
    assert await taken(world, first) == 3
    assert await taken(world, first) == 0
    assert await taken(world, second, mine=True) == 0
    assert await taken(world, first, mine=True) == 3
    await processes.stop(database, first, world.parts.ids, world.now)
    assert await taken(world, second) == 3
    assert await taken(world, await started(world)) == 0
    world.later(400)
    assert await taken(world, second) == 3


async def test_results_are_taken_in_turns_by_customer(database: Database, tmp_path: Path) -> None:
    """A thousand results of one customer delay no other's; of one customer, no more are in hand than may be."""
    world = await make_world(database, tmp_path)
    for _ in range(6):
        await world.node()
    await world.job(40, expected=False)
    await world.deliver(*await world.place())
    many, few = world.customer, await a_customer(world.parts)
    await world.job(2, expected=False, customer=few)
    await world.deliver(*await world.place())
    process_id = await started(world)

    async def take(most: int, in_hand: dict[UUID, UUID]) -> dict[UUID, UUID]:
        limits = HandLimits(most, 8, in_hand)
        taken = await unchecked_results.take(database, process_id, limits, lease_us=LEASE_US, now=world.later(1))
        return {one.attempt_id: one.customer_id for one in taken}

    first = await take(4, {})
    assert Counter(first.values()) == {many: 2, few: 2}
    second = await take(12, first)
    assert Counter(second.values()) == {many: 6}, "eight of one customer are in hand"
    assert await take(12, first | second) == {}
    third = await take(12, dict.fromkeys(list(first)[:2], many))
    assert len(third) == 6


async def test_many_who_take_at_once_take_each_result_once(database: Database, tmp_path: Path) -> None:
    world = await make_world(database, tmp_path)
    for _ in range(6):
        await world.node()
    await world.job(40, expected=False)
    await world.deliver(*await world.place())
    takers = [await started(world) for _ in range(8)]
    now = world.now
    taken = await asyncio.gather(
        *(
            unchecked_results.take(database, process_id, HandLimits(10, 10), lease_us=LEASE_US, now=now)
            for process_id in takers
        )
    )
    attempts = [one.attempt_id for results in taken for one in results]
    assert len(attempts) == len(set(attempts)) >= 10
