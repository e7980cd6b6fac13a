"""Ways to have work done for nothing, or to be paid for none, on a real server: by failures, call-offs and waiting."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.control.trust.test_audit_loop import (
    RIGHT,
    SCRIPT,
    audit,
    crash,
    crashes,
    is_sound,
    receipt,
    refunded,
    says,
    state,
    used,
)
from tests.worlds.databases.dispatch_world import World, body_of, make_world, signed_by
from tests.worlds.databases.verifying import verifying
from tidemill.artefacts.store_choice import open_store
from tidemill.control.jobs.reaping_loop import ReapingLoop
from tidemill.control.trust.verifying_loop import VerifyingLoop
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.job import JobHappening
from tidemill.core.jobs.kinds.task_body import Task, task_bytes
from tidemill.core.jobs.plans.task_bills import GIVEN_UP
from tidemill.core.jobs.sandboxes import RunLimits
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.store.database import Database
from tidemill.store.jobs import jobs
from tidemill.wire.messages import LogLines

LONG_SCRIPT = task_bytes(Task("script", {"program": "print(1)", "seconds": 3_600}, RunLimits(seconds=3_610)))
SHARE_UC = 1_000_000 // 8
"""What an hour of one of a node's eight cores costs."""


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


@pytest.fixture
async def loop(world: World, tmp_path: Path) -> AsyncIterator[VerifyingLoop]:
    opened = open_store(ArtefactsSettings(), tmp_path)
    async with verifying(world.parts, opened) as made:
        yield made
    await opened.close()


async def closed(world: World, job_id: UUID, why: JobHappening) -> None:
    async with world.parts.loop_database.transaction() as transaction:
        assert await jobs.close(transaction, job_id, why) is None
    await ReapingLoop(world.parts, world.receiving).tick(world.now)


@pytest.mark.parametrize("why", [JobHappening.CALLED_OFF, JobHappening.TIME_UP])
@pytest.mark.parametrize("is_repeated", [True, False], ids=["at the house", "waiting"])
async def test_who_calls_off_what_has_failed_before_the_house_looked_pays_for_its_time(
    world: World, why: JobHappening, is_repeated: bool
) -> None:
    """A program printed its result and failed, and its job was called off before the house looked: for nothing."""
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    await world.say(node, LogLines(offer.attempt_id.bytes, offer.lease, 0, ["the answer is 42"]))
    world.later(3)
    await crashes(world, offer)
    if is_repeated:
        await world.node(house=True, price_uc=10**9)
        assert len(await world.place()) == 1
    await closed(world, job_id, why)
    spent_uc = await world.value("SELECT spent_uc FROM job WHERE id = $1", job_id)
    assert isinstance(spent_uc, int)
    assert spent_uc >= SHARE_UC * 3 // 3_600
    assert await world.earned(node) == 0, "nobody has shown whose fault it was"
    assert await is_sound(world)


async def test_who_calls_off_a_task_of_ours_pays_for_no_failure_that_a_node_made_up(world: World) -> None:
    await world.node()
    job_id = await world.job(1)
    [offer] = await world.place()
    world.later(3)
    await crashes(world, offer)
    await closed(world, job_id, JobHappening.CALLED_OFF)
    assert await refunded(world)


async def test_a_program_that_fails_while_its_job_is_called_off_is_paid_for(world: World) -> None:
    await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    world.later(3)
    async with world.parts.loop_database.transaction() as transaction:
        assert await jobs.close(transaction, job_id, JobHappening.CALLED_OFF) is None
    world_receipt = crash(world, offer, "exit code 3")._replace(started_at=Instant(world.now - 2 * SECOND))
    await world.say(world.nodes[offer.node_id], signed_by(world.nodes[offer.node_id], world_receipt))
    assert await state(world, job_id) == "cancelled"
    assert not await refunded(world)
    assert await is_sound(world)


async def spent_uc(world: World, job_id: UUID) -> int:
    spent = await world.value("SELECT spent_uc FROM job WHERE id = $1", job_id)
    assert isinstance(spent, int)
    return spent


async def blamed(world: World) -> object:
    return await world.value("SELECT count(*) FROM owner_record WHERE crashed + wrong + late > 0")


async def test_without_a_house_a_program_that_fails_three_times_is_paid_for(world: World) -> None:
    """Three runs with their logs cost nothing, as often as somebody wanted."""
    job_id = await world.job(1, expected=False, body=SCRIPT)
    nodes = [await world.node() for _ in range(3)]
    for _ in nodes:
        [offer] = await world.place()
        world.later(3)
        told = crash(world, offer, "exit code 3")._replace(started_at=Instant(world.now - 3 * SECOND))
        await world.say(world.nodes[offer.node_id], signed_by(world.nodes[offer.node_id], told))
    assert await state(world, job_id) == "failed"
    assert await spent_uc(world, job_id) >= 3 * (SHARE_UC * 3 // 3_600)
    assert [await world.earned(node) for node in nodes] == [0, 0, 0], "nobody has shown whose fault it was"
    assert await blamed(world) == 0
    assert (await used(world, job_id))[-1].reason.endswith(GIVEN_UP)
    assert await is_sound(world)


async def test_without_a_house_a_wrong_expectation_ends_after_three_owners_have_missed_it(world: World) -> None:
    """A product, whose code is ours, was computed twenty times for an order that nobody could meet, for nothing."""
    job_id = await world.job(1, body=body_of(0, 3_000))
    nodes = [await world.node() for _ in range(2)]
    nodes += [await world.node(owner_id=nodes[0].owner_id), await world.node()]
    for number, _ in enumerate(nodes):
        assert await state(world, job_id) == ("running" if number else "queued"), "one owner counts once"
        [offer] = await world.place()
        world.later(3)
        told = world.receipt(offer, sha256=bytes(32))
        await world.say(world.nodes[offer.node_id], signed_by(world.nodes[offer.node_id], told))
        if len({world.nodes[one.node_id].owner_id for one in await used(world, job_id)}) == 3:
            break
    assert await state(world, job_id) == "failed"
    assert await spent_uc(world, job_id) > 0
    assert [await world.earned(node) for node in nodes] == [0] * 4
    assert await blamed(world) == 0
    assert (await used(world, job_id))[-1].reason.endswith(GIVEN_UP)
    assert await is_sound(world)


async def test_what_a_house_node_could_not_do_is_not_billed(world: World) -> None:
    """A product that fails on a house node is the pool's own fault, whatever strangers told before."""
    job_id = await world.job(1)
    for house in (False, False, True):
        await world.node(house=house, price_uc=10**9 if house else 10**6)
        [offer] = await world.place()
        world.later(3)
        await crashes(world, offer)
    assert await state(world, job_id) == "failed"
    assert await refunded(world)


@pytest.mark.parametrize("told_s", [3_600, 4])
async def test_a_node_that_keeps_its_receipt_back_is_not_paid_for_it(
    world: World, loop: VerifyingLoop, told_s: int
) -> None:
    """It did the work of a moment, waited for as long as was quoted, and was paid for all of it."""
    node = await world.node()
    job_id = await world.job(1, expected=False, body=LONG_SCRIPT)
    [offer] = await world.place()
    world.later(told_s)
    waited = receipt(world, offer, RIGHT)._replace(started_at=Instant(world.now - told_s * SECOND))
    await world.say(node, signed_by(node, waited))
    await world.node(house=True, price_uc=10**9)
    await says(world, await audit(world, loop), RIGHT)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    spent_uc = await world.value("SELECT spent_uc FROM job WHERE id = $1", job_id)
    assert isinstance(spent_uc, int)
    shown_uc, whole_uc = SHARE_UC * 5_150 // 3_600_000 + 1, SHARE_UC * told_s // 3_600
    assert 0 < await world.earned(node) <= min(shown_uc, whole_uc + 1)
    assert spent_uc >= 1.1 * whole_uc, "whether the node waited or the program, its customer pays"
    assert await is_sound(world)
