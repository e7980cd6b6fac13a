"""Nodes as they sell their time: who is a newcomer, who has copies of inputs, and whose work another has placed."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import World, make_world
from tidemill.control.terms import selling_terms
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import DAY, SECOND
from tidemill.core.jobs.kinds.task_body import Input, Task, task_bytes
from tidemill.core.jobs.sandboxes import MIB, RunLimits
from tidemill.store.database import Database
from tidemill.store.jobs import leases
from tidemill.store.placement import sellers


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


async def newcomers(world: World) -> set[UUID]:
    found = await sellers.every(
        world.parts.loop_database, selling_terms(world.parts.settings), "0.1", nothing_between, world.now
    )
    return {one.node_id for one in found if one.candidate.newcomer}


async def nothing_between() -> None:
    return None


async def have_verified(world: World, results: int) -> None:
    """As if so many results of every owner had been verified."""
    async with world.parts.loop_database.transaction() as transaction:
        await transaction.execute(
            "INSERT INTO owner_record SELECT DISTINCT account_id, $1::bigint, 0, 0, 0, 0 FROM node "
            "ON CONFLICT (owner_id) DO UPDATE SET verified = excluded.verified",
            results,
        )


async def test_an_owner_is_new_until_enough_results_were_verified_and_each_that_is_paid_counts(world: World) -> None:
    node, _ = await world.node(), world.later(8 * DAY / SECOND)
    await have_verified(world, 48)
    await world.job(2)
    for offer in await world.place():
        assert await newcomers(world) == {node.id}
        await world.deliver(offer)
    assert await newcomers(world) == set()


async def test_an_owner_is_new_for_a_week_whatever_nodes_join_or_go(world: World) -> None:
    old, left = await world.node(), await world.node()
    await have_verified(world, 50)
    async with world.parts.loop_database.transaction() as transaction:
        await transaction.execute(
            "UPDATE node SET removed_at = $2, removed_reason = 'gone', life = 'deregistered' WHERE id = $1",
            *(left.id, world.now),
        )
    assert old.id in await newcomers(world)
    world.later(8 * DAY / SECOND)
    young, back = await world.node(owner_id=old.owner_id), await world.node(owner_id=left.owner_id)
    new, house = await world.node(), await world.node(house=True)
    found = await newcomers(world)
    assert new.id in found
    assert found.isdisjoint({old.id, young.id, back.id, house.id})


async def test_what_another_process_has_placed_is_known_with_its_customer(world: World) -> None:
    await world.node()
    await world.job(2)
    offers = await world.place()
    async with world.parts.loop_database.transaction() as transaction:
        found = await leases.reserved(transaction, [one.attempt_id.bytes for one in offers])
    assert {(reserved.attempt_id, reserved.account_id) for reserved in found} == {
        (one.attempt_id, world.customer) for one in offers
    }


async def test_a_task_goes_to_the_node_that_says_it_has_the_inputs(world: World) -> None:
    nodes = [await world.node() for _ in range(6)]
    digest = Digest("ab" * 32)
    async with world.parts.loop_database.transaction() as transaction:
        await transaction.execute("INSERT INTO node_cache (node_id, digest) VALUES ($1, $2)", nodes[4].id, digest.text)
    limits = RunLimits(seconds=10.0, memory_bytes=100 * MIB, disk_bytes=MIB, file_bytes=MIB)
    inputs = (Input("a", digest, 200), Input("b", digest, 200))
    parameters = {"m": 8, "n": 8, "k": 8, "element": "int8"}
    await world.job(1, body=task_bytes(Task("matmul", parameters, limits, inputs=inputs)))
    assert [one.node_id for one in await world.place()] == [nodes[4].id]
