"""Nodes hear of what they are offered, each once, whoever placed it and whatever the database takes for lost."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.link.ends import Agent, MemoryRegistry, served, soon
from tests.store.dispatch_world import Node, World, make_world
from tidemill.control.loops.offering import OfferingLoop
from tidemill.link.server import Links
from tidemill.store.database import Database
from tidemill.wire.link import Ordered
from tidemill.wire.messages import Offer


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


def offered(agent: Agent) -> list[UUID]:
    """The attempts that an agent has heard of."""
    orders = [order for event in agent.events if isinstance(event, Ordered) for order in event.orders]
    return [UUID(bytes=order.attempt_id) for order in orders if isinstance(order, Offer)]


async def placed_on(world: World, node: Node, tasks: int) -> list[UUID]:
    """The attempts that this node alone could get."""
    others = [other for other in world.nodes if other != node.id]
    async with world.parts.database.connection() as connection:
        await connection.execute("UPDATE node SET life = 'inactive' WHERE id = ANY ($1::uuid[])", others)
        await connection.execute("UPDATE node SET life = 'active' WHERE id = $1", node.id)
    before = {one.attempt_id for one in await world.offers()}
    await world.job(tasks)
    return [one.attempt_id for one in await world.place() if one.attempt_id not in before]


def offering(world: World, links: Links) -> OfferingLoop:
    return OfferingLoop(world.parts, links)


async def test_an_offer_is_told_also_where_the_database_takes_the_nodes_link_for_lost(world: World) -> None:
    lost, known = await world.node(), await world.node()
    registry = MemoryRegistry(nodes={node.identity.key: node.id for node in (lost, known)})
    async with served(registry=registry) as pool:
        first, _ = await pool.welcomed(lost.identity)
        second, _ = await pool.welcomed(known.identity)
        loop = offering(world, pool.links)
        await loop.tick(world.now)
        to_lost = await placed_on(world, lost, 2)
        to_known = await placed_on(world, known, 2)
        async with world.parts.database.connection() as connection:
            await connection.execute(
                "UPDATE presence SET process_id = NULL, linked_at = NULL WHERE node_id = $1", lost.id
            )
        await loop.tick(world.now)
        await soon(lambda: offered(first) == to_lost and offered(second) == to_known)


async def test_what_is_placed_here_is_told_once_also_when_another_placed_something_before(world: World) -> None:
    node = await world.node()
    async with served(registry=MemoryRegistry(nodes={node.identity.key: node.id})) as pool:
        agent, _ = await pool.welcomed(node.identity)
        loop = offering(world, pool.links)
        await loop.tick(world.now)
        by_another = await placed_on(world, node, 1)
        here = await placed_on(world, node, 2)
        loop.placed([one for one in await world.offers() if one.attempt_id in here], world.now)
        await loop.tick(world.now)
        await loop.tick(world.now)
        await soon(lambda: len(offered(agent)) >= 3)
        assert sorted(offered(agent)) == sorted([*by_another, *here])


async def test_who_links_anew_hears_all_that_it_holds_and_nobody_else_does(world: World) -> None:
    node = await world.node()
    async with served(registry=MemoryRegistry(nodes={node.identity.key: node.id})) as pool:
        loop = offering(world, pool.links)
        held = await placed_on(world, node, 3)
        await loop.tick(world.now)
        agent, _ = await pool.welcomed(node.identity)
        await loop.tick(world.now)
        await soon(lambda: offered(agent) == held)
        again, _ = await pool.welcomed(node.identity)
        await loop.tick(world.now)
        await soon(lambda: offered(again) == held)
        assert offered(agent) == held
