"""Results in the hands of whoever checks them: nobody else's, until that process is gone."""

from pathlib import Path
from uuid import UUID

from tests.worlds.databases.dispatch_world import World, make_world
from tidemill.core.clock import SECOND
from tidemill.store.database import Database
from tidemill.store.operations import processes
from tidemill.store.operations.processes import Process
from tidemill.store.trust import unchecked_results

LEASE_US = 300 * SECOND


async def started(world: World) -> UUID:
    """A process that runs."""
    process_id = world.parts.ids.new(world.now)
    running = Process(process_id, "host", 1, "0.1", "", world.now, world.now, "running")
    await processes.register(world.parts.loop_database, running, world.parts.ids)
    return process_id


async def taken(world: World, process_id: UUID, *, mine: bool = False) -> int:
    database = world.parts.loop_database
    return len(await unchecked_results.take(database, process_id, 10, lease_us=LEASE_US, now=world.later(1), mine=mine))


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
