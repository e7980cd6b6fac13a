"""Nodes get their assignments, each once, whoever placed it and whatever the database takes for lost."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.agents.link_ends import Agent, MemoryRegistry, served, soon
from tests.worlds.databases.dispatch_world import Node, World, make_world
from tidemill.control.placement.assignment_loop import AssignmentLoop
from tidemill.control.terms import work_terms
from tidemill.core.jobs.plans.work_plan import CallOff, WorkPlan
from tidemill.link.held.server import Links
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, connect
from tidemill.store.jobs import work_plans
from tidemill.wire.link import Instructed
from tidemill.wire.messages import Assignment, Cancel

T = TypeVar("T")


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


def orders(agent: Agent, kind: type[T]) -> list[T]:
    heard = [order for event in agent.events if isinstance(event, Instructed) for order in event.instructions]
    return [order for order in heard if isinstance(order, kind)]


def offered(agent: Agent) -> list[UUID]:
    """The attempts that an agent has heard of."""
    return [UUID(bytes=order.attempt_id) for order in orders(agent, Assignment)]


async def placed_on(world: World, node: Node, tasks: int) -> list[UUID]:
    """The attempts that this node alone could get."""
    others = [other for other in world.nodes if other != node.id]
    async with world.parts.loop_database.connection() as connection:
        await connection.execute("UPDATE node SET life = 'inactive' WHERE id = ANY ($1::uuid[])", others)
        await connection.execute("UPDATE node SET life = 'active' WHERE id = $1", node.id)
    before = {one.attempt_id for one in await world.offers()}
    await world.job(tasks)
    return [one.attempt_id for one in await world.place() if one.attempt_id not in before]


def assignment_loop(world: World, links: Links) -> AssignmentLoop:
    return AssignmentLoop(world.parts, links)


async def test_an_offer_is_told_also_where_the_database_takes_the_nodes_link_for_lost(world: World) -> None:
    lost, known = await world.node(), await world.node()
    registry = MemoryRegistry(nodes={node.identity.key: node.id for node in (lost, known)})
    async with served(registry=registry) as pool:
        first, _ = await pool.welcomed(lost.identity)
        second, _ = await pool.welcomed(known.identity)
        loop = assignment_loop(world, pool.links)
        await loop.tick(world.now)
        to_lost = await placed_on(world, lost, 2)
        to_known = await placed_on(world, known, 2)
        async with world.parts.loop_database.connection() as connection:
            await connection.execute(
                "UPDATE presence SET process_id = NULL, linked_at = NULL WHERE node_id = $1", lost.id
            )
        await loop.tick(world.now)
        await soon(lambda: offered(first) == to_lost and offered(second) == to_known)


async def test_what_is_placed_here_is_told_once_also_when_another_placed_something_before(world: World) -> None:
    node = await world.node()
    async with served(registry=MemoryRegistry(nodes={node.identity.key: node.id})) as pool:
        agent, _ = await pool.welcomed(node.identity)
        loop = assignment_loop(world, pool.links)
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
        loop = assignment_loop(world, pool.links)
        held = await placed_on(world, node, 3)
        await loop.tick(world.now)
        agent, _ = await pool.welcomed(node.identity)
        await loop.tick(world.now)
        await soon(lambda: offered(agent) == held)
        again, _ = await pool.welcomed(node.identity)
        await loop.tick(world.now)
        await soon(lambda: offered(again) == held)
        assert offered(agent) == held


async def test_what_a_node_is_to_stop_is_not_lost_when_offers_cannot_be_read(world: World, urls: DatabaseUrls) -> None:
    node, owner = await world.node(), await connect(urls.owner)
    async with served(registry=MemoryRegistry(nodes={node.identity.key: node.id})) as pool:
        agent, _ = await pool.welcomed(node.identity)
        loop = assignment_loop(world, pool.links)
        await loop.tick(world.now)
        [stopped] = await placed_on(world, node, 1)
        plan = WorkPlan(called_off=[CallOff(stopped, node.id, 1, "Nobody wants it.")])
        async with world.parts.loop_database.transaction() as transaction:
            await work_plans.write(transaction, plan, work_terms(world.parts.settings), world.parts.ids, world.now)
        await owner.execute("ALTER TABLE task RENAME TO away")
        with pytest.raises(asyncpg.UndefinedTableError):
            await loop.tick(world.now)
        await owner.execute("ALTER TABLE away RENAME TO task")
        await owner.close()
        await loop.tick(world.now)
        await soon(lambda: [UUID(bytes=one.attempt_id) for one in orders(agent, Cancel)] == [stopped])
