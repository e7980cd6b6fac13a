"""Right results with times that cannot be true, on a real server: frozen until the house or an operator has looked."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.control.trust.test_audit_loop import WAIT_S, audit, is_sound, state, used
from tests.worlds.databases.dispatch_world import Node, World, make_world, signed_by
from tests.worlds.databases.node_rows import told
from tests.worlds.databases.verifying import verifying
from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import pool_in
from tidemill.artefacts.store_choice import open_store
from tidemill.control.trust.verifying_loop import VerifyingLoop
from tidemill.core.clock import SECOND, Instant
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.core.trust.checks.judgement import NOBODY_LOOKED
from tidemill.core.trust.reviews import ReviewDecision, ReviewRefusal
from tidemill.store.database import Database
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.trust import reviews
from tidemill.store.trust.reviews import Review


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


async def doubtful(world: World, *, expected: bool = True) -> tuple[UUID, Node, AttemptAssignment]:
    """A job of one product, whose right result has times that cannot be true."""
    node = await world.node()
    job_id = await world.job(1, expected=expected)
    [offer] = await world.place()
    honest = world.receipt(offer)
    await world.say(node, signed_by(node, honest._replace(started_at=Instant(world.now - 60 * SECOND))))
    return job_id, node, offer


@pytest.mark.parametrize("expected", [True, False])
async def test_times_that_cannot_be_true_are_not_paid_before_the_house_has_looked(
    world: World, loop: VerifyingLoop, expected: bool
) -> None:
    """700,000 s were told of 59 ms; the doubt was written down, and the result was paid."""
    job_id, node, offer = await doubtful(world, expected=expected)
    assert await state(world, job_id) == "running"
    house = await world.node(house=True, price_uc=10**9)
    again = await audit(world, loop)
    assert again.node_id == house.id
    assert (await state(world, job_id), await world.earned(node)) == ("running", 0)
    await world.deliver(again)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    [one] = await used(world, job_id)
    assert "only" in one.reason
    [event] = await told(world.parts.loop_database, "node.times_doubted")
    assert event.body["attempt_id"] == str(offer.attempt_id)
    assert await world.earned(node) > 0, "a right result is right"
    assert await is_sound(world)


async def reviewed(world: World, loop: VerifyingLoop) -> tuple[UUID, Node, AttemptAssignment]:
    """A doubtful result about which an operator is asked, since no house node came."""
    job_id, node, offer = await doubtful(world)
    await loop.tick(world.now)
    await loop.tick(world.later(WAIT_S + 10))
    await loop.tick(world.later(1))
    async with world.parts.loop_database.connection() as connection:
        [review] = await reviews.listed(connection, None, 10)
    assert (review.attempt_id, review.node_id, review.job_id) == (offer.attempt_id, node.id, job_id)
    assert "only" in review.doubt
    [event] = await told(world.parts.loop_database, "node.review_asked")
    assert event.body["attempt_id"] == str(offer.attempt_id)
    return job_id, node, offer


async def decide(world: World, attempt_id: UUID, verdict: ReviewDecision, reason: str = "I asked them") -> object:
    async with world.parts.loop_database.transaction() as transaction:
        return await reviews.decide(
            transaction, attempt_id, verdict, reason=reason, by="operator:1", ids=world.parts.ids, now=world.now
        )


async def test_without_a_house_an_operator_decides_and_until_then_nobody_is_paid(
    world: World, loop: VerifyingLoop
) -> None:
    job_id, node, offer = await reviewed(world, loop)
    for _ in range(3):
        await loop.tick(world.later(WAIT_S // 4))
    assert (await state(world, job_id), await world.earned(node)) == ("running", 0)
    [one] = await used(world, job_id)
    assert "an operator decides" in one.reason
    assert await is_sound(world)
    assert await decide(world, offer.task_id, ReviewDecision.PASS) is ReviewRefusal.REVIEW_UNKNOWN
    assert await decide(world, offer.attempt_id, ReviewDecision.PASS, " ") is ReasonRefusal.REASON_MISSING
    assert isinstance(await decide(world, offer.attempt_id, ReviewDecision.PASS), Review)
    assert await decide(world, offer.attempt_id, ReviewDecision.FAIL) is ReviewRefusal.REVIEW_UNKNOWN
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    assert await world.earned(node) > 0
    [event] = await told(world.parts.loop_database, "node.review_decided")
    assert (event.body["verdict"], event.body["by"]) == ("pass", "operator:1")
    [one] = await used(world, job_id)
    assert "An operator decided: I asked them" in one.reason


async def test_a_result_that_an_operator_fails_is_not_paid_and_another_node_tries(
    world: World, loop: VerifyingLoop
) -> None:
    job_id, node, offer = await reviewed(world, loop)
    await decide(world, offer.attempt_id, ReviewDecision.FAIL)
    await loop.tick(world.now)
    assert (await state(world, job_id), await world.earned(node)) == ("running", 0)
    assert await world.value("SELECT wrong FROM owner_record WHERE owner_id = $1", node.owner_id) == 1
    assert await world.value("SELECT count(*) FROM task_queue") == 1
    async with world.parts.loop_database.connection() as connection:
        assert await reviews.listed(connection, None, 10) == []


async def test_a_result_on_which_nobody_decides_goes_on_elsewhere_after_a_day(
    world: World, loop: VerifyingLoop
) -> None:
    """Where there is neither a house nor an operator who looks, the job waited without end."""
    job_id, node, offer = await reviewed(world, loop)
    await loop.tick(world.later(WAIT_S - 60))
    assert await state(world, job_id) == "running"
    for _ in range(2):
        await loop.tick(world.later(61))
    [one] = await used(world, job_id)
    assert (one.verdict, one.reason.startswith(NOBODY_LOOKED), one.paid_uc) == ("review", True, 0)
    assert await world.earned(node) == 0
    assert await world.value("SELECT count(*) FROM owner_record WHERE crashed + wrong + late > 0") == 0
    assert await decide(world, offer.attempt_id, ReviewDecision.PASS) is ReviewRefusal.REVIEW_UNKNOWN
    other = await world.node()
    [again] = await world.place()
    assert again.node_id == other.id, "another node, and it need not be a house node"
    await world.deliver(again)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    assert (await world.earned(node), await world.earned(other) > 0) == (0, True)
    assert await is_sound(world)


def test_operators_see_what_waits_for_them_by_command_and_over_http() -> None:
    nobody = str(UUID(int=1))
    with reachable_directory() as home, pool_in(home) as pool:
        up = pool.up()
        up.until_ready()
        page = up.get("/api/v1/admin/reviews", headers=up.operator).json()
        assert page == {"items": [], "has_more": False, "after": None}
        asked = {"verdict": "pass", "reason": "I asked them"}
        answer = up.post(f"/api/v1/admin/reviews/{nobody}/decide", json=asked, headers=up.operator)
        assert (answer.status_code, answer.json()["code"]) == (404, "review_unknown")
        assert "No result waits" in pool.run("trust", "reviews").stdout
        refused = pool.run("trust", "decide", nobody, "fail", "--reason", "I asked them")
        assert (refused.returncode, "tidemill trust reviews" in refused.stderr) == (1, True)
