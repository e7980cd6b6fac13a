"""What wakes loops: the events that they name, and no others."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from uuid import UUID, uuid4

import pytest

from tests.tidy.source import import_everything, is_ours, modules
from tests.worlds.agents.link_ends import served
from tests.worlds.databases.dispatch_world import Node, World, make_world
from tidemill.control.events.feed import EventFeed
from tidemill.control.loops.frame import Loop, LoopRunner, Tick
from tidemill.control.loops.wake_ups import EventDispatcher
from tidemill.control.parts import Parts
from tidemill.control.placement.assignment_loop import AssignmentLoop
from tidemill.core.clock import Instant
from tidemill.core.events.log import KINDS, LOG_START, Event, ProcessLost, ProcessStarted, ProcessStopped, RecordedEvent
from tidemill.core.ids import Ids
from tidemill.core.jobs.events import JobConfirmed, JobEnded, TasksPlaced
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import accounts
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.nodes import nodes
from tidemill.store.placement import sellers
from tidemill.store.query import Connection

A_PROCESS = UUID(int=7)
AN_HOUR_S = 3600.0


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


class Sleeping(Loop):
    """Ticks once an hour, and when a process is no longer there; keeps what it hears."""

    name = "sleeping"
    wakes_on = frozenset({ProcessStopped, ProcessLost})

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=AN_HOUR_S)
        self.ticks = 0
        self.batches: list[Sequence[RecordedEvent]] = []

    def heard(self, recorded: Sequence[RecordedEvent]) -> bool:
        self.batches.append(recorded)
        return True

    async def tick(self, now: Instant) -> Tick:
        self.ticks += 1
        return Tick()


class Deaf(Sleeping):
    """Ticks once an hour, whatever happens."""

    name = "deaf"
    wakes_on = frozenset()


def recorded(event: Event, at: int = 0) -> RecordedEvent:
    """An event as the log would hold it."""
    facts = (event.kind, event.subject, event.body(), event.public, list(event.accounts))
    return RecordedEvent(0, 0, 0, uuid4(), Instant(at), *facts)


async def append(world: World, *new: Event) -> None:
    async with world.parts.loop_database.transaction() as transaction:
        await events.append(transaction, new, world.parts.ids, world.now)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def running(loop: Loop) -> AsyncIterator[LoopRunner]:
    runner = LoopRunner(loop, Random(1))
    task = asyncio.create_task(runner.run())
    yield runner
    runner.stop()
    await asyncio.wait_for(task, 5)


def followed(world: World, *runners: LoopRunner) -> EventFeed:
    """A feed whose events wake these loops."""
    feed = EventFeed(world.parts, world.parts.loop_database)
    feed.on_events = EventDispatcher(runners).dispatch
    return feed


def loop_classes(base: type[Loop] = Loop) -> Iterator[type[Loop]]:
    for subclass in base.__subclasses__():
        yield subclass
        yield from loop_classes(subclass)


def test_every_loop_names_kinds_that_something_records() -> None:
    import_everything()
    source = "\n".join(module.text for module in modules())
    named = {kind for loop in loop_classes() if is_ours(loop) for kind in loop.wakes_on}
    assert named
    for kind in named:
        assert kind in KINDS.values(), f"{kind.__name__} is no kind of event"
        recorded = rf"(?<!class )\b{kind.__name__}\(|Query\([^)]*, {kind.__name__}\)"
        assert re.search(recorded, source), f"nothing records {kind.__name__}"


async def test_a_loop_ticks_on_an_event_of_its_set_and_on_no_other(world: World) -> None:
    loop = Sleeping(world.parts)
    async with running(loop) as runner:
        feed = followed(world, runner)
        await feed.tick(world.now)
        await until(lambda: loop.ticks == 1)
        await append(world, ProcessStarted(A_PROCESS, "host", "1"))
        await feed.tick(world.now)
        await asyncio.sleep(0.05)
        assert (loop.ticks, loop.batches) == (1, [])
        await append(world, ProcessLost(A_PROCESS))
        await feed.tick(world.now)
        await until(lambda: loop.ticks == 2)


async def test_a_loop_is_told_once_of_all_its_events_of_a_batch(world: World) -> None:
    concerned, deaf = Sleeping(world.parts), Deaf(world.parts)
    dispatcher = EventDispatcher([LoopRunner(loop, Random(1)) for loop in (concerned, deaf)])
    lost, started, stopped = (
        recorded(event)
        for event in (ProcessLost(A_PROCESS), ProcessStarted(A_PROCESS, "host", "1"), ProcessStopped(A_PROCESS))
    )
    dispatcher.dispatch([lost, started, stopped])
    assert concerned.batches == [[lost, stopped]]
    assert deaf.batches == []


async def test_a_confirmed_job_is_placed_at_once(world: World) -> None:
    await world.node()
    placing = world.placing()
    placing.every_s = AN_HOUR_S
    async with running(placing) as runner:
        feed = followed(world, runner)
        await feed.tick(world.now)
        await until(lambda: b'{loop="placing",outcome="done"} 1.0' in world.parts.metrics.exposition())
        job_id = await world.job(3)
        await append(world, JobConfirmed(world.customer, job_id, 3, 1, 1))
        await feed.tick(world.now)
        async with asyncio.timeout(5):
            while len(await world.offers()) < 3:
                await asyncio.sleep(0.005)


async def test_tasks_that_wait_for_the_first_node_get_it_also_if_no_event_tells_of_it(world: World) -> None:
    placing = world.placing()
    await world.job(1)
    await placing.tick(world.now)
    await world.node()
    await placing.tick(world.now)
    assert len(await world.offers()) == 1


async def suspend(transaction: Connection, node: Node, ids: Ids, now: Instant) -> object:
    return await nodes.suspend(transaction, node.id, suspended=True, reason="test", by="test", ids=ids, now=now)


async def block(transaction: Connection, node: Node, ids: Ids, now: Instant) -> object:
    return await accounts.set_blocked(
        transaction, node.owner_id, blocked=True, reason="test", by="test", ids=ids, now=now
    )


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("forbid", [suspend, block])
async def test_a_node_that_may_no_longer_work_gets_nothing_more(
    world: World,
    forbid: Callable[[Connection, Node, Ids, Instant], Awaitable[object]],
    large: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if large:
        monkeypatch.setattr(sellers, "PAGE", 1)
    node = await world.node()
    placing = world.placing()
    feed = followed(world, LoopRunner(placing, Random(1)))
    await feed.tick(world.now)
    await world.job(1)
    await placing.tick(world.now)
    assert len(await world.offers()) == 1
    async with world.parts.loop_database.transaction() as transaction:
        assert not isinstance(await forbid(transaction, node, world.parts.ids, world.now), Refusal)
    await feed.tick(world.now)
    await world.job(1)
    await placing.tick(world.now)
    assert len(await world.offers()) == 1


async def test_what_is_placed_here_does_not_wake_who_has_sent_it_already(world: World) -> None:
    await world.node()
    customer, job_id = world.customer, await world.job(2)
    async with served() as pool:
        assignment = AssignmentLoop(world.parts, pool.links)
        await world.placing(on_placed=assignment.placed).tick(world.now)
    async with world.parts.loop_database.connection() as connection:
        [placed] = [event for event in await events.read(connection, LOG_START, 100) if event.kind == TasksPlaced.kind]
    elsewhere = recorded(TasksPlaced(customer, job_id, 2, 1), placed.at + 1)
    over = recorded(JobEnded(customer, job_id, "cancelled", 0, 0, 2, 0))
    assert not assignment.heard([placed])
    assert assignment.heard([placed, elsewhere])
    assert assignment.heard([placed, over])
