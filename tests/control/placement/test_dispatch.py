"""Dispatch on a real server: what waits is placed, what is delivered is judged and paid, whoever lies or dies."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from tests.worlds.databases.dispatch_world import (
    COST_MAX_UC,
    Node,
    World,
    make_world,
    result_of,
    signed_by,
)
from tests.worlds.databases.node_rows import told
from tests.worlds.databases.verifying import verifying
from tidemill.artefacts.store import ArtefactStore
from tidemill.artefacts.store_choice import open_store
from tidemill.control.jobs.reaping_loop import ReapingLoop
from tidemill.control.loops.frame import Tick
from tidemill.control.placement.placing_loop import LEASE_US, PlacingLoop
from tidemill.core.clock import SECOND
from tidemill.core.ledger import AccountKind, LedgerAccount
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.link.held.registry import LinkGeneration, ReportsArrival
from tidemill.store.address import DatabaseUrls
from tidemill.store.checks import checks
from tidemill.store.database import Database
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.store.ledger import adjustments
from tidemill.store.operations import duties
from tidemill.wire.messages import AcceptedMessage, DeclinedMessage, LogLines, ProgressMessage, Reports


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


@pytest.fixture
async def artefacts(tmp_path: Path) -> AsyncIterator[ArtefactStore]:
    opened = open_store(ArtefactsSettings(), tmp_path)
    yield opened
    await opened.close()


async def verify(world: World, artefacts: ArtefactStore) -> Tick:
    async with verifying(world.parts, artefacts) as loop:
        return await loop.tick(world.now)


async def open_work(world: World) -> tuple[object, object]:
    return await world.value("SELECT count(*) FROM task_queue"), await world.value("SELECT count(*) FROM lease")


async def test_a_job_is_placed_delivered_judged_and_paid(world: World) -> None:
    node = await world.node()
    job_id = await world.job(3)
    offers = await world.place()
    assert len(offers) == 3
    assert await world.value("SELECT state FROM job WHERE id = $1", job_id) == "running"
    await world.deliver(*offers)
    assert await world.value("SELECT state FROM job WHERE id = $1", job_id) == "completed"
    assert await open_work(world) == (0, 0)
    spent = await world.value("SELECT spent_uc FROM job WHERE id = $1", job_id)
    assert isinstance(spent, int)
    assert 0 < await world.earned(node) < spent <= 3 * COST_MAX_UC
    events = await told(world.parts.loop_database, "tasks.placed", "tasks.ended", "attempts.paid", "job.ended")
    assert [one.kind for one in events] == ["tasks.placed", "tasks.ended", "attempts.paid", "job.ended"]
    assert events[-1].body["completed"] == 3


async def test_what_is_delivered_twice_is_paid_once(world: World) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await world.deliver(offer)
    earned = await world.earned(node)
    await world.deliver(offer)
    assert await world.earned(node) == earned > 0
    assert await world.value("SELECT count(*) FROM receipt_batch") == 1, "receipts of nothing are not kept"


async def test_one_batch_that_comes_twice_at_once_is_kept_and_paid_once(world: World) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    batch = signed_by(node, world.receipt(offer))
    await world.say(node, batch, batch)
    assert await world.earned(node) > 0
    assert await world.value("SELECT count(*) FROM receipt_batch") == 1


@pytest.mark.parametrize("then", ["nothing", "declines"])
async def test_a_node_may_tell_of_progress_before_it_accepts(world: World, then: str) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    which = (offer.attempt_id.bytes, offer.lease)
    await world.say(node, ProgressMessage(*which, 1), AcceptedMessage(*which))
    if then == "declines":
        await world.say(node, DeclinedMessage(*which, "It is busy."))
        assert await open_work(world) == (1, 0)
        assert await world.value("SELECT broke_its_word FROM owner_record") == 1
    else:
        assert await world.receiving.write_begun(world.later(10)) == 1
        assert await world.value("SELECT state FROM lease") == "running"
        assert await world.receiving.write_begun(world.later(10)) == 0


async def test_whoever_names_a_late_attempt_of_another_node_does_not_hide_its_result(
    world: World, artefacts: ArtefactStore
) -> None:
    late, thief = await world.node(price_uc=1), await world.node()
    await world.job(1)
    [offer] = await world.place()
    assert offer.node_id == late.id
    await too_late(world)
    named = signed_by(thief, world.receipt(offer)._replace(node_id=thief.id))
    told = ((thief, named), (late, signed_by(late, world.receipt(offer))))
    await world.registry.reported(
        [ReportsArrival(LinkGeneration(node.id, node.generation), Reports(1, [said])) for node, said in told]
    )
    await verify(world, artefacts)
    assert (await world.earned(late) > 0, await world.earned(thief)) == (True, 0)


async def test_a_result_that_the_customer_does_not_expect_is_not_paid_and_another_node_tries(world: World) -> None:
    liar = await world.node(price_uc=1)
    await world.job(1)
    [offer] = await world.place()
    await world.say(liar, signed_by(liar, world.receipt(offer, sha256=bytes(32))))
    assert await world.earned(liar) == 0
    honest = await world.node()
    [again] = await world.place()
    assert (again.node_id, again.lease) == (honest.id, 2)
    await world.deliver(again)
    assert await world.earned(honest) > 0


async def test_what_another_node_signed_is_no_receipt_and_harms_nobody(world: World) -> None:
    honest = await world.node()
    await world.job(1)
    [offer] = await world.place()
    thief = await world.node()
    stolen = signed_by(honest, world.receipt(offer))
    await world.say(thief, stolen)
    [event] = await told(world.parts.loop_database, "node.receipts_refused")
    assert event.subject == f"node:{thief.id}"
    assert event.body["severe"]
    moved = signed_by(thief, world.receipt(offer)._replace(node_id=thief.id))
    await world.say(thief, moved, DeclinedMessage(offer.attempt_id.bytes, offer.lease, "not mine"))
    await world.say(honest, stolen)
    assert (await world.earned(honest) > 0, await world.earned(thief)) == (True, 0)


async def test_a_receipt_of_another_task_under_the_own_lease_counts_for_nothing(world: World) -> None:
    node = await world.node()
    await world.job(2)
    one, other = await world.place()
    await world.say(node, signed_by(node, world.receipt(one)._replace(task_id=other.task_id)))
    assert await world.earned(node) == 0
    assert await open_work(world) == (0, 2)


async def test_nobody_is_offered_their_own_job(world: World) -> None:
    await world.node(owner_id=world.customer)
    await world.job(1)
    assert await world.place() == []


async def test_a_task_never_goes_where_it_would_cost_more_than_was_held(world: World) -> None:
    await world.node(price_uc=10**12)
    cheap = await world.node()
    await world.job(2)
    assert {one.node_id for one in await world.place()} == {cheap.id}


async def test_a_node_is_never_promised_twice_and_gets_more_when_it_has_delivered(world: World) -> None:
    await world.node()
    await world.job(20)
    placing = world.placing()
    await placing.tick(world.later(1))
    first = await world.offers()
    assert len(first) == 8, "it has eight cores"
    assert (await placing.tick(world.later(0.1))).applied == 0
    await world.deliver(*first[:5])
    assert (await placing.tick(world.later(0.1))).applied == 5


async def test_a_successor_knows_what_is_reserved(world: World) -> None:
    await world.node()
    await world.job(20)
    await world.placing().tick(world.later(1))
    successor = world.placing()
    assert (await successor.tick(world.later(1))).applied == 0
    await world.deliver(*(await world.offers())[:3])
    assert (await successor.tick(world.later(0.1))).applied == 3


async def test_one_places_at_a_time_and_another_goes_on_within_a_second(world: World) -> None:
    await world.node()
    first, second = world.placing(), world.placing()
    await world.job(1)
    assert (await first.tick(world.later(1))).applied == 1
    await world.job(1)
    assert (await second.tick(world.now)).applied == 0
    assert LEASE_US < SECOND
    assert (await second.tick(world.later(LEASE_US / SECOND + 0.01))).applied == 1
    await world.job(1)
    assert (await first.tick(world.now)).applied == 0, "whoever was away is no longer in charge"


async def test_many_placers_at_once_place_each_task_once(world: World) -> None:
    for _ in range(4):
        await world.node()
    await world.job(30)
    loops = [world.placing() for _ in range(5)]
    now = world.later(1)
    ticks = await asyncio.gather(*(loop.tick(now) for loop in loops))
    assert sum(tick.applied for tick in ticks) == 30


async def test_a_placer_whose_duty_was_taken_changes_nothing(world: World) -> None:
    await world.node()
    sleeper = world.placing()
    await sleeper.tick(world.later(1))
    await world.job(1)
    now = world.later(2)
    taken = await duties.take(
        world.parts.loop_database, PlacingLoop.name, world.parts.ids.new(now), every_us=0, lease_us=LEASE_US, now=now
    )
    assert taken
    assert (await sleeper.tick(now)).applied == 0


async def test_who_declines_is_not_asked_again_at_once(world: World) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await world.say(node, DeclinedMessage(offer.attempt_id.bytes, offer.lease, "The queue is full."))
    assert await open_work(world) == (1, 0)
    assert await world.place() == []
    world.later(60)
    assert len(await world.place()) == 1


async def test_no_reason_of_a_node_fails_a_batch(world: World) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await world.say(
        node, DeclinedMessage(offer.attempt_id.bytes, offer.lease, 'zero \0, "quoted", back\\slash, line\nline')
    )
    assert await open_work(world) == (1, 0)


async def test_what_an_attempt_prints_is_kept_for_its_holder_only(world: World) -> None:
    node, stranger = await world.node(), await world.node(owner_id=world.customer)
    await world.job(1)
    [offer] = await world.place()
    printed = LogLines(offer.attempt_id.bytes, offer.lease, 0, ["one", "zero \0"])
    await world.say(stranger, printed)
    await world.say(node, printed, LogLines(offer.attempt_id.bytes, offer.lease, 10_000, ["too much"]))
    await world.say(node, LogLines(offer.attempt_id.bytes, offer.lease + 1, 2, ["of another lease"]))
    assert await world.value("SELECT string_agg(text, '|') FROM attempt_log") == "one\nzero \N{REPLACEMENT CHARACTER}"


async def test_what_is_accepted_is_written_only_when_it_lasts(world: World) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await world.say(node, AcceptedMessage(offer.attempt_id.bytes, offer.lease))
    reaping = ReapingLoop(world.parts, world.receiving)
    await reaping.tick(world.now)
    assert await world.value("SELECT state FROM lease") == "offered"
    await reaping.tick(world.later(3))
    assert await world.value("SELECT state FROM lease") == "accepted"


async def test_batches_that_are_decided_at_once_wait_for_each_other_and_never_in_a_circle(world: World) -> None:
    nodes = [await world.node() for _ in range(4)]
    for _ in range(30):
        first, second = await world.job(8), await world.job(8)
        offers = await world.place()
        assert len(offers) == 16
        by_node = {node.id: [one for one in offers if one.node_id == node.id] for node in nodes}
        await asyncio.gather(
            world.registry.reported([heard(world, node, by_node[node.id]) for node in nodes[:2]]),
            world.registry.reported([heard(world, node, by_node[node.id][::-1]) for node in nodes[:1:-1]]),
        )
        for job_id in (first, second):
            assert await world.value("SELECT completed FROM job WHERE id = $1", job_id) == 8
    counted = await world.value("SELECT sum(verified) FROM owner_record")
    assert counted == 30 * 16
    assert await world.value("SELECT count(*) FROM attempt WHERE state = 'judged' AND paid_uc > 0") == counted


def heard(world: World, node: Node, offers: Sequence[AttemptAssignment]) -> ReportsArrival:
    """What a node delivers, in this order."""
    receipts = [world.receipt(one) for one in offers]
    node.sent += 1
    return ReportsArrival(LinkGeneration(node.id, node.generation), Reports(node.sent, [signed_by(node, *receipts)]))


async def test_a_late_node_loses_its_task_to_another(world: World) -> None:
    node = await world.node()
    await world.job(1)
    assert len(await world.place()) == 1
    await too_late(world)
    assert await open_work(world) == (1, 0)
    other = await world.node()
    [again] = await world.place()
    assert (again.node_id, again.lease) == (other.id, 2)
    assert node.id != other.id


async def too_late(world: World) -> None:
    """So much time passes while we listen that whoever has a task is late."""
    world.later(3_000)
    async with world.parts.loop_database.connection() as connection:
        await connection.execute("UPDATE listening SET listened_us = listened_us + 3000000000")
    await ReapingLoop(world.parts, world.receiving).tick(world.now)


@pytest.mark.parametrize("placed_again", [False, True])
async def test_a_late_result_is_taken_until_another_has_delivered(
    world: World, artefacts: ArtefactStore, placed_again: bool
) -> None:
    late = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await too_late(world)
    if placed_again:
        other = await world.node()
        [again] = await world.place()
        assert again.node_id == other.id
    await world.deliver(offer)
    assert await open_work(world) == (0, 1)
    assert await world.value("SELECT count(*) FROM call_off") == int(placed_again)
    await verify(world, artefacts)
    earned = await world.earned(late)
    assert earned > 0
    if placed_again:
        await world.deliver(again)
        assert (await world.earned(other), await world.earned(late)) == (0, earned)
    assert await open_work(world) == (0, 0)


async def test_a_late_result_that_is_wrong_leaves_its_task_as_often_tried_as_it_was(
    world: World, artefacts: ArtefactStore
) -> None:
    late = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await too_late(world)
    await world.node()
    [again] = await world.place()
    assert again.lease == 2
    await world.say(late, signed_by(late, world.receipt(offer, sha256=bytes(32))))
    await verify(world, artefacts)
    assert await world.value("SELECT tries FROM task_queue") == 2


async def test_a_late_result_is_worth_nothing_when_another_was_first(world: World) -> None:
    late = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await too_late(world)
    other = await world.node()
    [again] = await world.place()
    await world.deliver(again)
    await world.deliver(offer)
    assert (await world.earned(other) > 0, await world.earned(late)) == (True, 0)


@pytest.mark.parametrize("says", ["delivers", "declines"])
async def test_who_is_late_and_who_has_the_task_now_may_speak_at_once_and_one_of_them_is_paid(
    world: World, artefacts: ArtefactStore, says: str
) -> None:
    late = await world.node()
    await world.job(1)
    [offer] = await world.place()
    await too_late(world)
    other = await world.node()
    [again] = await world.place()
    declined = DeclinedMessage(again.attempt_id.bytes, again.lease, "It is busy.")
    said = signed_by(other, world.receipt(again)) if says == "delivers" else declined
    heard = ((late, signed_by(late, world.receipt(offer))), (other, said))
    await world.registry.reported(
        [ReportsArrival(LinkGeneration(node.id, node.generation), Reports(1, [one])) for node, one in heard]
    )
    await verify(world, artefacts)
    winner, loser = (other, late) if says == "delivers" else (late, other)
    assert (await world.earned(winner) > 0, await world.earned(loser)) == (True, 0)
    paid = "SELECT sum(paid_uc) = (SELECT sum(amount_uc) FROM transfer WHERE kind = 'reward') FROM attempt"
    assert await world.value(paid)
    assert await open_work(world) == (0, 0)


async def test_a_job_whose_time_is_up_is_closed_and_its_money_goes_back(world: World) -> None:
    await world.node()
    job_id = await world.job(20)
    await world.place()
    reaping = ReapingLoop(world.parts, world.receiving)
    world.later(3_601)
    await reaping.tick(world.now)
    assert await world.value("SELECT state FROM job WHERE id = $1", job_id) == "expired"
    assert await open_work(world) == (0, 0)
    assert await world.value("SELECT count(*) FROM hold WHERE captured_uc + released_uc < amount_uc") == 0
    assert await world.value("SELECT count(*) FROM call_off") == 8


async def test_a_customer_whose_account_is_frozen_blocks_no_node(world: World) -> None:
    node = await world.node()
    await world.job(2)
    offers = await world.place()
    account = LedgerAccount(AccountKind.CUSTOMER, world.customer)
    await freeze(world, account)
    await world.deliver(*offers)
    assert await world.earned(node) == 0
    assert await world.value("SELECT count(*) FROM lease WHERE state = 'submitted'") == 2


async def freeze(world: World, account: LedgerAccount, *, frozen: bool = True) -> None:
    async with world.parts.loop_database.transaction() as transaction:
        await adjustments.set_frozen(
            transaction,
            account.id,
            frozen=frozen,
            reason="A test asks for it.",
            by="test",
            ids=world.parts.ids,
            now=world.now,
        )


async def test_a_house_node_is_believed(world: World) -> None:
    node: Node = await world.node(house=True)
    await world.job(1, expected=False)
    await world.deliver(*await world.place())
    assert await world.earned(node) > 0


async def test_a_product_that_nobody_knows_is_checked_and_paid(world: World, artefacts: ArtefactStore) -> None:
    node = await world.node()
    await world.job(2, expected=False)
    await world.deliver(*await world.place())
    assert (await world.earned(node), await open_work(world)) == (0, (0, 2))
    tick = await verify(world, artefacts)
    assert (tick.applied, await open_work(world)) == (2, (0, 0))
    assert await world.earned(node) > 0


async def test_copies_of_the_check_pay_a_result_once(world: World, artefacts: ArtefactStore) -> None:
    await world.node()
    job_id = await world.job(6, expected=False)
    await world.deliver(*await world.place())
    ticks = await asyncio.gather(*(verify(world, artefacts) for _ in range(4)))
    assert sum(tick.applied for tick in ticks) == 6
    assert await world.value("SELECT state FROM job WHERE id = $1", job_id) == "completed"


@pytest.mark.parametrize("seed", [1, None])
async def test_a_wrong_product_is_not_paid(world: World, artefacts: ArtefactStore, seed: int | None) -> None:
    """Another task's right result, signed with its own hash; and a hash without a result."""
    node = await world.node()
    await world.job(1, expected=False)
    [offer] = await world.place()
    wrong = b"" if seed is None else result_of(seed)
    receipt = world.receipt(offer)._replace(inline=wrong, result_sha256=hashlib.sha256(wrong).digest())
    await world.say(node, signed_by(node, receipt))
    await verify(world, artefacts)
    assert await world.earned(node) == 0
    assert await world.value("SELECT verdict FROM attempt") == "fail"
    assert await open_work(world) == (1, 0)


async def test_what_could_not_be_paid_is_paid_when_the_account_is_free_again(
    world: World, artefacts: ArtefactStore
) -> None:
    node = await world.node()
    await world.job(2)
    offers = await world.place()
    account = LedgerAccount(AccountKind.CUSTOMER, world.customer)
    await freeze(world, account)
    await world.deliver(*offers)
    assert (await verify(world, artefacts)).applied == 0
    await freeze(world, account, frozen=False)
    world.later(600)
    assert (await verify(world, artefacts)).applied == 2
    assert await world.earned(node) > 0


async def test_the_check_of_the_database_finds_what_is_stuck(world: World, urls: DatabaseUrls) -> None:
    await world.node()
    await world.job(12)
    await world.deliver(*(await world.place())[:3])
    assert await work_check(urls) == (True, "9 tasks are open, each in one place.")
    async with world.parts.loop_database.connection() as connection:
        await connection.execute("DELETE FROM lease WHERE attempt_id = (SELECT min(attempt_id::text)::uuid FROM lease)")
        await connection.execute("UPDATE job SET completed = 4")
    ok, told = await work_check(urls)
    assert not ok
    assert told == "1 tasks are neither waiting nor anybody's, or both; 1 jobs have counted their tasks wrongly."


async def work_check(urls: DatabaseUrls) -> tuple[bool, str]:
    [found] = [one for one in await checks(urls) if one.name == "work"]
    return found.ok, found.detail
