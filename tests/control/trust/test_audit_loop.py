"""Results that nobody can prove, on a real server: executed again by the house, compared, and only then paid."""

import asyncio
import hashlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import (
    Node,
    World,
    a_customer,
    body_of,
    make_world,
    result_of,
    result_sha256,
    signed_by,
)
from tests.worlds.databases.verifying import verifying
from tidemill.artefacts.store import ArtefactStore
from tidemill.artefacts.store_choice import open_store
from tidemill.control.jobs.reaping_loop import ReapingLoop
from tidemill.control.trust.verifying_loop import LEASE_US, VerifyingLoop
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs import result_archives
from tidemill.core.jobs.job import JobHappening
from tidemill.core.jobs.kinds.task_body import Task, read_task, task_bytes
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.sandboxes import MIB, RunLimits
from tidemill.core.ledger import AccountKind, LedgerAccount
from tidemill.core.settings.sections.artefacts import ArtefactsSettings
from tidemill.core.trust.checks.check_requests import ProofRequest
from tidemill.store import checks
from tidemill.store.database import Database
from tidemill.store.jobs import job_views, jobs
from tidemill.store.jobs.job_views import AttemptUse, TaskResult
from tidemill.store.jobs.leases import AttemptAssignment
from tidemill.wire.messages import DeclinedMessage, LogLines

SCRIPT = task_bytes(Task("script", {"program": "print(1)", "seconds": 5}, RunLimits(seconds=10)))
EMBEDDING = task_bytes(Task("embed", {"texts": ["a mill"]}, RunLimits(seconds=10)))
HERE, ELSEWHERE = "device; this processor", "device; another processor"
RIGHT, WRONG = b"the right answer", b"a wrong answer"
WAIT_S = 86_400


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[World]:
    made = await make_world(database, tmp_path)
    yield made
    await made.parts.poster.close()


@pytest.fixture
async def loop(world: World, tmp_path: Path) -> AsyncIterator[VerifyingLoop]:
    opened: ArtefactStore = open_store(ArtefactsSettings(), tmp_path)
    async with verifying(world.parts, opened) as made:
        yield made
    await opened.close()


def receipt(world: World, offer: AttemptAssignment, answer: bytes, numeric_class: str = HERE) -> Receipt:
    result = result_archives.archive({PurePosixPath("answer.txt"): answer})
    return Receipt(
        task_id=offer.task_id,
        attempt_id=offer.attempt_id,
        node_id=offer.node_id,
        lease=offer.lease,
        result_sha256=hashlib.sha256(result).digest(),
        artefact=None,
        inline=result,
        envelopes=(),
        started_at=Instant(world.now - SECOND // 10),
        finished_at=world.now,
        device_ms=100,
        numeric_class=numeric_class,
        proof=b"",
        outcome=AttemptOutcome.DONE,
        exit_code=0,
        reason="",
    )


def crash(world: World, offer: AttemptAssignment, reason: str) -> Receipt:
    done = receipt(world, offer, RIGHT)
    return done._replace(result_sha256=b"", inline=b"", outcome=AttemptOutcome.FAILED, exit_code=1, reason=reason)


async def says(world: World, offer: AttemptAssignment, answer: bytes, numeric_class: str = HERE) -> None:
    node = world.nodes[offer.node_id]
    await world.say(node, signed_by(node, receipt(world, offer, answer, numeric_class)))


async def crashes(world: World, offer: AttemptAssignment, reason: str = "The program ended with exit code 1.") -> None:
    node = world.nodes[offer.node_id]
    await world.say(node, signed_by(node, crash(world, offer, reason)))


async def delivered(world: World, answer: bytes, numeric_class: str = HERE) -> tuple[UUID, Node, AttemptAssignment]:
    """A job of one script, whose result an owner's node has delivered."""
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    assert offer.node_id == node.id
    await says(world, offer, answer, numeric_class)
    return job_id, node, offer


async def audit(world: World, loop: VerifyingLoop) -> AttemptAssignment:
    """The second execution, as a house node is offered it."""
    await loop.tick(world.now)
    [offer] = await world.place()
    return offer


async def state(world: World, job_id: UUID) -> object:
    return await world.value("SELECT state FROM job WHERE id = $1", job_id)


async def refunded(world: World) -> bool:
    """Whether nothing of the customer's money is gone or held."""
    held = await world.value("SELECT coalesce(sum(amount_uc - captured_uc - released_uc), 0) FROM hold")
    spent = await world.value("SELECT coalesce(sum(spent_uc), 0) FROM job")
    return (held, spent) == (0, 0)


async def used(world: World, job_id: UUID) -> list[AttemptUse]:
    async with world.parts.loop_database.connection() as connection:
        return list(await job_views.attempt_uses(connection, job_id, None, 100))


async def only_result(world: World, job_id: UUID) -> TaskResult:
    async with world.parts.loop_database.connection() as connection:
        [result] = await job_views.results(connection, job_id, -1, 10)
        return result


async def is_sound(world: World) -> bool:
    """Whether every open task waits or is somebody's, and every job has counted what ended."""
    async with world.parts.loop_database.connection() as connection:
        work = await checks._WORK.only(connection)
    return (work.adrift, work.miscounted, work.held) == (0, 0, 0)


async def test_an_owners_result_is_executed_again_by_the_house_and_then_paid(world: World, loop: VerifyingLoop) -> None:
    job_id, node, offer = await delivered(world, RIGHT)
    account = LedgerAccount(AccountKind.CUSTOMER, world.customer)
    before_uc = await world.balance(account)
    house = await world.node(house=True)
    again = await audit(world, loop)
    assert again.node_id == house.id
    assert (again.body, again.lease) == (offer.body, 1), "nothing in an offer tells an audit from a task"
    assert again.task_id not in (offer.task_id, offer.attempt_id, job_id)
    await world.say(house, LogLines(again.attempt_id.bytes, again.lease, 0, ["a line"]))
    assert await world.value("SELECT count(*) FROM attempt_log") == 0, "what an audit prints is nobody's to read"
    assert await world.earned(node) == 0, "nothing is paid before the verdict"
    assert await is_sound(world)
    await says(world, again, RIGHT)
    assert await state(world, job_id) == "running"
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    spent = await world.value("SELECT spent_uc FROM job WHERE id = $1", job_id)
    assert isinstance(spent, int)
    assert before_uc - await world.balance(account) == spent
    assert 0 < await world.earned(node) < spent
    assert await world.earned(house) == 0, "the pool pays itself nothing"
    result = await only_result(world, job_id)
    assert (result.attempt_id, result.verdict) == (offer.attempt_id, "pass")
    assert "same result" in result.reason
    assert [one.attempt_id for one in await used(world, job_id)] == [offer.attempt_id]
    assert await is_sound(world)


async def test_a_house_nodes_own_result_needs_no_audit(world: World, loop: VerifyingLoop) -> None:
    house = await world.node(house=True)
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    await says(world, offer, RIGHT)
    assert await state(world, job_id) == "completed"
    assert await world.earned(house) > 0
    assert await world.value("SELECT count(*) FROM audit") == 0


async def test_a_liar_is_not_paid_and_another_node_tries(world: World, loop: VerifyingLoop) -> None:
    job_id, liar, _ = await delivered(world, WRONG)
    house = await world.node(house=True)
    await says(world, await audit(world, loop), RIGHT)
    await says(world, await audit(world, loop), RIGHT)
    honest = await world.node(price_uc=1)
    await loop.tick(world.now)
    assert await state(world, job_id) == "running"
    [second] = await world.place()
    assert second.node_id in (honest.id, house.id)
    await says(world, second, RIGHT)
    if second.node_id == honest.id:
        await says(world, await audit(world, loop), RIGHT)
        await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    assert await world.earned(liar) == 0
    [wrong, right] = await used(world, job_id)
    assert (wrong.verdict, right.verdict) == ("fail", "pass")
    assert "answer.txt" in wrong.reason
    result = await only_result(world, job_id)
    assert result.receipt
    assert RIGHT in result.receipt.inline


async def test_a_result_waits_for_a_house_node_and_its_customer_is_told(world: World, loop: VerifyingLoop) -> None:
    job_id, _, _ = await delivered(world, RIGHT)
    await loop.tick(world.now)
    assert await world.place() == []
    [one] = await used(world, job_id)
    assert (one.state, "waits for a house node" in one.reason) == ("submitted", True)
    await world.node(house=True)
    [again] = await world.place()
    [one] = await used(world, job_id)
    assert "runs the task again" in one.reason
    await says(world, again, RIGHT)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"


async def test_a_house_that_never_comes_costs_the_customer_nothing(world: World, loop: VerifyingLoop) -> None:
    job_id, _node, _ = await delivered(world, RIGHT)
    await loop.tick(world.now)
    await loop.tick(world.later(WAIT_S - 10))
    assert await state(world, job_id) == "running"
    await loop.tick(world.later(20))
    assert await state(world, job_id) == "failed"
    assert await refunded(world)
    [one] = await used(world, job_id)
    assert (one.verdict, "nobody can tell" in one.reason) == ("review", True)
    assert await is_sound(world)


async def test_a_house_node_that_vanishes_or_declines_is_no_verdict(world: World, loop: VerifyingLoop) -> None:
    job_id, node, _ = await delivered(world, RIGHT)
    house = await world.node(house=True)
    again = await audit(world, loop)
    await world.say(house, DeclinedMessage(again.attempt_id.bytes, again.lease, "too hot"))
    world.later(31)
    [again] = await world.place()
    async with world.parts.loop_database.transaction() as transaction:
        await transaction.execute("UPDATE presence SET offline_since = $2 WHERE node_id = $1", house.id, world.now)
    await ReapingLoop(world.parts, world.receiving).tick(world.now)
    assert (await loop.tick(world.now)).applied == 0
    other = await world.node(house=True)
    [again] = await world.place()
    assert again.node_id == other.id
    await says(world, again, RIGHT)
    await loop.tick(world.now)
    assert (await state(world, job_id), await world.earned(node) > 0) == ("completed", True)


@pytest.mark.parametrize("is_own", [True, False], ids=["own program", "one of ours"])
async def test_a_program_that_fails_each_time_the_house_runs_it_is_paid_for_and_a_task_of_ours_given_back(
    world: World, loop: VerifyingLoop, is_own: bool
) -> None:
    """A program that printed its result and failed from then on cost nothing."""
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT if is_own else EMBEDDING)
    [offer] = await world.place()
    world.later(2)
    await says(world, offer, RIGHT)
    await world.node(house=True, price_uc=10**9)
    await crashes(world, await audit(world, loop))
    assert (await loop.tick(world.now)).applied == 0
    [again] = await world.place()
    await crashes(world, again)
    await loop.tick(world.now)
    assert await state(world, job_id) == "failed"
    assert await refunded(world) is not is_own
    assert (await world.earned(node) > 0) is is_own
    assert "exit code 1" in (await used(world, job_id))[0].reason
    assert await world.value("SELECT count(*) FROM owner_record WHERE wrong > 0") == 0
    assert await is_sound(world)


async def test_a_job_that_is_called_off_pays_what_was_delivered_once_it_is_checked(
    world: World, loop: VerifyingLoop
) -> None:
    job_id, node, _ = await delivered(world, RIGHT)
    await world.node(house=True)
    await loop.tick(world.now)
    async with world.parts.loop_database.transaction() as transaction:
        assert await jobs.close(transaction, job_id, JobHappening.CALLED_OFF) is None
    await ReapingLoop(world.parts, world.receiving).tick(world.now)
    [again] = await world.place()
    await ReapingLoop(world.parts, world.receiving).tick(world.now)
    await says(world, again, RIGHT)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    assert await world.earned(node) > 0


async def test_what_differs_in_another_numeric_class_blames_nobody_and_the_house_carries_it_out(
    world: World, loop: VerifyingLoop
) -> None:
    job_id, node, _ = await delivered(world, WRONG, ELSEWHERE)
    house = await world.node(house=True, price_uc=10_000_000)
    await says(world, await audit(world, loop), RIGHT)
    await loop.tick(world.now)
    await world.node(price_uc=1)
    [again] = await world.place()
    assert again.node_id == house.id, "the cheaper node of an owner is not asked"
    await says(world, again, RIGHT)
    assert await state(world, job_id) == "completed"
    assert (await world.earned(node), await world.earned(house) > 0) == (0, True)
    [unsure, _] = await used(world, job_id)
    assert unsure.verdict == "review"


async def test_two_owners_with_the_same_wrong_result_are_both_wrong(world: World, loop: VerifyingLoop) -> None:
    """Two agreeing wrong results failed scripts, although the house disagreed."""
    job_id, _first, _ = await delivered(world, WRONG)
    await world.node(house=True, price_uc=10**9)
    for _ in range(2):
        await says(world, await audit(world, loop), RIGHT)
    second = await world.node()
    await loop.tick(world.now)
    [offer] = await world.place()
    assert offer.node_id == second.id
    await says(world, offer, WRONG)
    for _ in range(2):
        await says(world, await audit(world, loop), RIGHT)
    await loop.tick(world.now)
    assert await state(world, job_id) == "running"
    assert [one.verdict for one in await used(world, job_id)] == ["fail", "fail"]
    assert await is_sound(world)


async def test_a_program_that_gives_another_result_each_time_marks_no_node_and_is_paid_for(
    world: World, loop: VerifyingLoop
) -> None:
    """Random output cost nothing, and marked an honest node."""
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    world.later(2)
    await says(world, offer, b"one")
    await world.node(house=True, price_uc=10**9)
    for answer in (b"two", b"three"):
        await says(world, await audit(world, loop), answer)
    await loop.tick(world.now)
    assert await state(world, job_id) == "failed"
    [one] = await used(world, job_id)
    assert (one.verdict, "another result each time" in one.reason) == ("review", True)
    assert await world.earned(node) > 0
    assert await world.value("SELECT spent_uc FROM job") > await world.earned(node), "and for two runs by the house"
    assert await world.value("SELECT count(*) FROM owner_record WHERE wrong > 0") == 0
    assert await is_sound(world)


async def test_bytes_that_are_not_those_that_were_signed_are_wrong_without_an_audit(
    world: World, loop: VerifyingLoop
) -> None:
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    right = receipt(world, offer, RIGHT)
    await world.say(node, signed_by(node, right._replace(inline=result_archives.archive({PurePosixPath("x"): b"no"}))))
    await loop.tick(world.now)
    assert await world.value("SELECT count(*) FROM audit") == 0
    [one] = await used(world, job_id)
    assert (one.verdict, "signed" in one.reason) == ("fail", True)


async def test_a_result_that_was_never_uploaded_is_wrong_even_if_its_hash_is_right(
    world: World, loop: VerifyingLoop
) -> None:
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    right = receipt(world, offer, RIGHT)
    somewhere = Digest(right.result_sha256.hex())
    await world.say(node, signed_by(node, right._replace(inline=b"", artefact=somewhere)))
    await loop.tick(world.now)
    assert (await used(world, job_id))[0].verdict == "fail"
    assert await world.earned(node) == 0


async def test_many_who_verify_at_once_begin_one_audit_and_pay_once(world: World, loop: VerifyingLoop) -> None:
    job_id, _node, _ = await delivered(world, RIGHT)
    await world.node(house=True)
    await asyncio.gather(*(loop.tick(world.now) for _ in range(4)))
    await asyncio.gather(*(loop.tick(world.later(LEASE_US / SECOND + 1)) for _ in range(4)))
    assert await world.value("SELECT count(*) FROM audit") == 1
    [again] = await world.place()
    await says(world, again, RIGHT)
    await asyncio.gather(*(loop.tick(world.now) for _ in range(4)))
    assert await state(world, job_id) == "completed"
    paid = await world.value("SELECT count(*) FROM transfer WHERE kind = 'reward'")
    assert paid == 1


async def test_what_the_house_uploads_for_an_audit_takes_no_room_of_the_customers(
    world: World, loop: VerifyingLoop
) -> None:
    large = Task(
        "script", {"program": "print(1)", "seconds": 5, "disk_mib": 900}, RunLimits(seconds=10, disk_bytes=MIB)
    )
    await world.node()
    await world.job(1, expected=False, body=task_bytes(large))
    [offer] = await world.place()
    await says(world, offer, RIGHT)
    house = await world.node(house=True)
    again = await audit(world, loop)
    whose = await world.value("SELECT account_id FROM artefact_grant WHERE attempt_id = $1", again.attempt_id)
    assert whose == house.owner_id
    mine = await world.value("SELECT account_id FROM artefact_grant WHERE attempt_id = $1", offer.attempt_id)
    assert mine == world.customer


async def test_an_operator_who_is_a_customer_is_checked_by_their_own_house(world: World, loop: VerifyingLoop) -> None:
    job_id, _, _ = await delivered(world, RIGHT)
    await world.node(house=True, owner_id=world.customer)
    await says(world, await audit(world, loop), RIGHT)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"


async def test_strangers_cannot_fail_a_job_that_the_house_can_carry_out(world: World) -> None:
    """Two free accounts with one cheap node each sent the same made-up failure, and failed anybody's jobs."""
    liars = [await world.node() for _ in range(2)]
    house = await world.node(house=True, price_uc=10**9)
    script, product = await world.job(1, expected=False, body=SCRIPT), await world.job(1)
    told = 0
    for _ in range(3):
        for offer in await world.place():
            if offer.node_id == house.id:
                result = receipt(world, offer, RIGHT) if b"script" in offer.body else world.receipt(offer)
                await world.say(house, signed_by(house, result))
            else:
                await crashes(world, offer)
                told += 1
    assert (await state(world, script), await state(world, product)) == ("completed", "completed")
    assert await world.value("SELECT sum(crashed) FROM owner_record") == told > 0
    assert [await world.earned(liar) for liar in liars] == [0, 0]


async def test_a_program_that_fails_on_a_house_node_too_is_at_fault_and_its_time_is_paid(world: World) -> None:
    """A program that ended with an exit code cost nothing."""
    node = await world.node()
    job_id = await world.job(1, expected=False, body=SCRIPT)
    [offer] = await world.place()
    world.later(2)
    await crashes(world, offer)
    await world.node(house=True, price_uc=10**9)
    [second] = await world.place()
    await crashes(world, second)
    assert await state(world, job_id) == "failed"
    assert "itself is at fault" in (await used(world, job_id))[-1].reason
    assert await world.earned(node) > 0
    assert await world.value("SELECT count(*) FROM owner_record WHERE crashed > 0") == 0
    assert await is_sound(world)


async def test_a_result_with_another_hash_is_looked_at_by_another_node_whatever_its_times(world: World) -> None:
    node = await world.node()
    await world.job(1)
    [offer] = await world.place()
    lie = world.receipt(offer, sha256=bytes(32))
    assert lie.result_sha256 != result_sha256(0)
    await world.say(node, signed_by(node, lie._replace(started_at=Instant(world.now - 60 * SECOND))))
    assert await world.value("SELECT verdict FROM attempt") == "review"


async def test_a_check_that_takes_long_delays_neither_a_tick_nor_another_customers_result(
    world: World, tmp_path: Path
) -> None:
    """Products of one customer were checked one after the other, and others waited."""
    await world.node()
    large = await world.job(1, expected=False, body=body_of(0, 9_000))
    [offer] = await world.place()
    node = world.nodes[offer.node_id]
    store = open_store(ArtefactsSettings(), tmp_path)
    async with verifying(world.parts, store, patience_s=0.01) as loop:
        await loop._judge._checks.check(UUID(int=1), *a_small_check())  # a process is there
        stopped = loop._judge._checks._idle[0]
        os.kill(stopped.pid, signal.SIGSTOP)  # whatever it is asked takes long
        await world.say(node, signed_by(node, world.receipt(offer, sha256=hashlib.sha256(result_of(0)).digest())))
        assert (await loop.tick(world.now)).applied == 0
        assert loop._in_hand
        small = await world.job(1, expected=False, customer=await a_customer(world.parts))
        await world.deliver(*await world.place())
        async with asyncio.timeout(30):
            while await state(world, small) != "completed":
                await loop.tick(world.now)
        assert await state(world, large) == "running"
        os.kill(stopped.pid, signal.SIGCONT)
        async with asyncio.timeout(30):
            while loop._in_hand:
                await loop.tick(world.now)
    assert await world.value("SELECT verdict FROM attempt WHERE task_id = $1", offer.task_id) == "fail"
    await store.close()


def a_small_check() -> tuple[ProofRequest, list[BinaryIO]]:
    task = read_task(body_of(0))
    assert isinstance(task, Task)
    nothing = Receipt(
        *(UUID(int=1), UUID(int=2), UUID(int=3), 1, bytes(32), None, b"", ()),
        *(Instant(0), Instant(1), 1, "exact", b"", AttemptOutcome.DONE, 0, ""),
    )
    return ProofRequest(task, nothing, b"s" * 32), [cast("BinaryIO", open(os.devnull, "rb", buffering=0))]


async def test_a_customer_whose_tasks_sleep_does_not_keep_the_house_from_others(
    world: World, loop: VerifyingLoop
) -> None:
    """Eight tasks that sleep and write random bytes: a script of another customer waited for 322 s instead of 2."""
    node = await world.node(price_uc=1)
    await world.job(8, expected=False, body=SCRIPT)
    for offer in await world.place():
        await says(world, offer, os.urandom(8))
    house = await world.node(house=True, price_uc=10**9)
    await loop.tick(world.now)
    sleeping = await world.place()
    assert [offer.node_id for offer in sleeping] == [house.id] * 4, "half of its eight cores"
    modest = await a_customer(world.parts)
    job_id = await world.job(1, expected=False, body=SCRIPT, customer=modest)
    started = {offer.attempt_id for offer in sleeping}
    [script] = [offer for offer in await world.place() if offer.attempt_id not in started]
    assert script.node_id == node.id
    await says(world, script, RIGHT)
    await loop.tick(world.now)
    [again] = [offer for offer in await world.place() if offer.attempt_id not in started]
    assert again.node_id == house.id, "another process that places knows what the sleeping ones have"
    await says(world, again, RIGHT)
    await loop.tick(world.now)
    assert await state(world, job_id) == "completed"
    assert len(await world.place()) == 4, "and the sleeping ones still have no more"
