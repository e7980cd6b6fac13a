"""Explanations on a real server: true of what was decided then, shared by what is alike, and bounded."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import COST_MAX_UC, World, body_of, make_world, signed_by
from tidemill.core.clock import SECOND
from tidemill.core.placement.explainer import LOOK_EVERY_US, SHARED_MAX, TELL_EVERY_US
from tidemill.store.database import Database
from tidemill.store.placement import explanations
from tidemill.store.placement.explanations import StoredExplanation, WaitExplanation
from tidemill.wire.messages import DeclinedMessage


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


async def kept_of(world: World, node_id: UUID) -> list[StoredExplanation]:
    async with world.parts.loop_database.connection() as connection:
        return list(await explanations.of_node(connection, node_id, None, 100))


async def waiting(world: World, job_id: UUID) -> list[WaitExplanation]:
    async with world.parts.loop_database.connection() as connection:
        return list(await explanations.waiting(connection, job_id, 100))


async def test_the_chosen_node_is_explained_by_what_was_true_before_it_was_taken(world: World) -> None:
    cheap, dear = await world.node(price_uc=500_000), await world.node(price_uc=1_000_000)
    job_id = await world.job(1)
    [offer] = await world.place()
    [kept] = await kept_of(world, dear.id)
    first, second = kept.weighing.candidates
    assert (first.node_id, second.node_id) == (cheap.id, dear.id)
    assert offer.node_id == cheap.id
    assert first.terms["load"] == 0, "it was idle when it was chosen"
    assert first.score is not None
    assert second.score is not None
    assert first.score > second.score
    assert (kept.job_id, list(kept.task_ids)) == (job_id, [offer.task_id])
    assert kept.weighing.nodes == 2


async def test_what_is_placed_again_is_explained_with_the_node_that_must_not_have_it(world: World) -> None:
    liar = await world.node(price_uc=1)
    job_id = await world.job(1)
    [offer] = await world.place()
    await world.say(liar, signed_by(liar, world.receipt(offer, sha256=bytes(32))))
    honest = await world.node()
    [again] = await world.place()
    async with world.parts.loop_database.connection() as connection:
        found = await explanations.of_job(connection, job_id, [world.now])
    weighing = found[0, world.now].weighing
    assert again.lease == 2
    assert [one.node_id for one in weighing.candidates] == [honest.id, liar.id]
    assert weighing.candidates[1].objections == ("excluded",)


async def test_a_node_that_is_gone_is_named_as_excluded_all_the_same(world: World) -> None:
    gone = await world.node(price_uc=1)
    await world.job(1)
    [offer] = await world.place()
    await world.say(gone, DeclinedMessage(offer.attempt_id.bytes, offer.lease, "no"))
    async with world.parts.loop_database.transaction() as transaction:
        await transaction.execute("UPDATE presence SET process_id = NULL, linked_at = NULL WHERE node_id = $1", gone.id)
    await world.node()
    await world.place()
    newest = (await kept_of(world, gone.id))[0]
    assert newest.weighing.candidates[-1].objections == ("excluded",)
    assert newest.weighing.nodes == 1


async def test_too_dear_a_node_is_told_as_such(world: World) -> None:
    dear, cheap = await world.node(price_uc=10**14), await world.node()
    await world.job(1)
    await world.place()
    [kept] = await kept_of(world, dear.id)
    assert [(one.node_id, one.objections) for one in kept.weighing.candidates] == [
        (cheap.id, ()),
        (dear.id, ("above_quote",)),
    ]


async def test_alike_tasks_that_are_placed_together_share_one_explanation(world: World) -> None:
    node = await world.node()
    await world.job(8)
    offers = await world.place()
    [kept] = await kept_of(world, node.id)
    assert set(kept.task_ids) == {one.task_id for one in offers}
    assert len(offers) == 8


async def test_a_thousand_attempts_are_explained_by_a_few_rows(world: World) -> None:
    node = await world.node()
    await world.job(1_000)
    placing = world.placing()
    for _ in range(130):
        await placing.tick(world.later(0.1))
        await world.deliver(*await world.offers())
    assert await world.value("SELECT count(*) FROM attempt") == 1_000
    kept = await kept_of(world, node.id)
    assert 1 < len(kept) <= 13 * 2 + 2, "the first, and two a second of thirteen seconds"
    assert all(len(one.task_ids) <= SHARED_MAX for one in kept)
    await explanations.forget(world.parts.loop_database, 5)
    assert [one.id for one in await kept_of(world, node.id)] == [one.id for one in kept[:5]], "the newest stay"
    assert await world.value("SELECT count(*) FROM waiting_for") == 0


async def test_each_first_attempt_of_a_job_is_explained_whatever_else_is_placed(world: World) -> None:
    nodes = [await world.node() for _ in range(3)]
    placing = world.placing()
    jobs = [await world.job(1) for _ in range(20)]
    await placing.tick(world.later(1))
    rows = await world.value("SELECT count(DISTINCT job_id) FROM explanation")
    assert (rows, len(await world.offers())) == (len(jobs), 20)
    await world.deliver(*await world.offers())
    assert sum([await world.earned(node) > 0 for node in nodes]) == 3


async def test_a_job_that_waits_is_told_what_for_and_since_when(world: World) -> None:
    busy, small = await world.node(), await world.node(price_uc=10**14)
    await world.job(8)
    await world.place()
    since = world.now
    job_id = await world.job(2)
    await world.place()
    [told] = await waiting(world, job_id)
    assert told.since == since
    assert (told.nodes, told.looked, told.soon) == (2, 2, 1)
    assert told.counts == {"processor_busy": 1, "above_quote": 1}
    assert {busy.id, small.id} == set(world.nodes)


async def test_a_pool_without_nodes_and_a_task_that_is_too_large_are_told_apart(world: World) -> None:
    job_id = await world.job(1)
    await world.place()
    [told] = await waiting(world, job_id)
    assert (told.nodes, told.soon, told.counts) == (0, 0, {})
    await world.node()
    large = body_of(1).replace(b'"cpu_share":1.0', b'"cpu_share":64.0')
    assert large != body_of(1)
    too_large = await world.job(1, body=large)
    await world.place()
    [told] = await waiting(world, too_large)
    assert told.counts == {"processor_busy": 1}
    assert told.soon == 0, "it will never be free enough"


async def test_what_is_placed_in_the_end_is_no_longer_said_to_wait(world: World) -> None:
    job_id = await world.job(1)
    placing = world.placing()
    await placing.tick(world.later(1))
    assert await waiting(world, job_id)
    await world.node()
    await placing.tick(world.later(16))
    assert await world.offers()
    assert await waiting(world, job_id) == []
    async with world.parts.loop_database.connection() as connection:
        assert await explanations.queue(connection) == []
    await explanations.forget(world.parts.loop_database, 100)
    assert await world.value("SELECT count(*) FROM waiting_for") == 0


async def test_a_queue_that_waits_is_written_down_seldom_while_nothing_changes(world: World) -> None:
    await world.job(50)
    await world.job(1, cost_max_uc=COST_MAX_UC - 1)
    placing = world.placing()
    first = world.later(1)
    await placing.tick(first)
    assert await world.value("SELECT count(*) FROM waiting_for") == 2, "one of each sort"
    for _ in range(10):
        await placing.tick(world.later(LOOK_EVERY_US / SECOND / 2))
    assert await world.value("SELECT max(at) FROM waiting_for") == first
    await placing.tick(world.later(TELL_EVERY_US / SECOND))
    assert await world.value("SELECT min(at) FROM waiting_for") == world.now


async def test_the_queue_is_told_by_objection_for_all_customers_together(world: World) -> None:
    await world.node()
    await world.job(8)
    await world.place()
    await world.job(1)
    await world.job(1)
    await world.place()
    async with world.parts.loop_database.connection() as connection:
        assert await explanations.queue(connection) == [("processor_busy", 2, 1), ("soon", 2, 1)]


async def test_what_was_not_applied_is_not_explained(world: World) -> None:
    node = await world.node()
    job_id = await world.job(1)
    placing = world.placing()
    apply = placing._apply

    async def too_late(plan, now):  # type: ignore[no-untyped-def]
        async with world.parts.loop_database.transaction() as transaction:
            await transaction.execute("DELETE FROM task_queue")
        return await apply(plan, now)

    placing._apply = too_late  # type: ignore[method-assign]
    await placing.tick(world.later(1))
    assert await kept_of(world, node.id) == []
    assert await waiting(world, job_id) == []
