"""What is for sale, what is quoted, and that it is placed and paid within the quote; and what customers then see."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import SIDE, World, make_world, result_of, result_sha256
from tests.worlds.databases.node_rows import told
from tidemill.control.terms import selling_terms, work_terms
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.jobs.job import JobState
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.plans import job_changes
from tidemill.core.jobs.plans.job_changes import JobExtension, JobPlan, LockedJob
from tidemill.core.jobs.quotes import Order, Quote, parse_order, quote
from tidemill.core.jobs.quotes.quote import quote_json, rules_of
from tidemill.core.jobs.quotes.tasks import OrderTerms, divide
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.money import AmountObjection
from tidemill.core.placement.supply import Supply
from tidemill.core.refusals import Refusal
from tidemill.store.database import Database
from tidemill.store.jobs import abandoned_work, job_views, jobs
from tidemill.store.jobs.jobs import Draft
from tidemill.store.placement import supply

ASKED: dict[str, Any] = {
    "kind": "matmul",
    "parameters": {"m": SIDE, "n": SIDE, "k": SIDE, "element": "int8", "seed": 0},
    "tasks": 3,
    "expected": [result_sha256(seed).hex() for seed in range(3)],
}


class Held(NamedTuple):
    """The hold of a job."""

    id: UUID
    left_uc: int
    expires_at: Instant


@dataclass
class Shop:
    """A world in which somebody buys."""

    world: World

    async def look(self) -> Supply:
        parts = self.world.parts
        return await supply.read(parts.loop_database, selling_terms(parts.settings), "0.1", self.world.now)

    async def quoted(self, body: dict[str, Any] = ASKED) -> tuple[UUID, Quote]:
        """A job with its price."""
        order, world, now = parse_order(body), self.world, self.world.now
        assert isinstance(order, Order), order
        parts = divide(order, ())
        assert not isinstance(parts, TaskObjection)
        settings = world.parts.settings
        rules = rules_of(work_terms(settings).plan, settings.money, settings.market, settings.jobs, settings.containers)
        made = quote(order, parts, await self.look(), rules, world.customer, now)
        job_id = world.parts.ids.new(now)
        async with world.parts.loop_database.transaction() as transaction:
            await jobs.make(transaction, Draft(job_id, world.customer, order.kind, body), now)
            kept = await jobs.set_quote(transaction, job_id, quote_json(made), made.expires_at)
            assert kept == await job_views.get(transaction, job_id, None)
        return job_id, made

    async def confirmed(self, body: dict[str, Any] = ASKED) -> tuple[UUID, Quote]:
        job_id, made = await self.quoted(body)
        plan = await self.plan(job_id)
        assert isinstance(plan, JobPlan), plan
        parts = self.world.parts
        async with parts.loop_database.transaction() as transaction:
            confirmed = await jobs.confirm(transaction, plan, parts.ids, self.world.now)
            assert confirmed == await job_views.get(transaction, job_id, None)
        return job_id, made

    async def plan(
        self, job_id: UUID, at_most_uc: int | None = None, at: Instant | None = None
    ) -> JobPlan | Refusal | TaskObjection:
        """What would follow if the customer confirmed the job."""
        parts = self.world.parts
        settings = parts.settings
        terms = OrderTerms(settings.market, settings.jobs, settings.containers, bytes(32))
        async with parts.loop_database.transaction() as transaction:
            locked = await jobs.lock(transaction, job_id)
        assert isinstance(locked, LockedJob), locked
        return job_changes.confirm(locked, {}, at_most_uc, terms, parts.ids, at or self.world.now)

    async def job(self, job_id: UUID, owner: UUID | None = None) -> job_views.Job:
        async with self.world.parts.loop_database.connection() as connection:
            found = await job_views.get(connection, job_id, owner)
        assert found
        return found

    async def hold(self, job_id: UUID) -> Held:
        async with self.world.parts.loop_database.connection() as connection:
            row = await connection.fetchrow(
                "SELECT h.id, h.amount_uc - h.captured_uc - h.released_uc AS left_uc, h.expires_at "
                "FROM job AS j JOIN hold AS h ON h.id = j.hold_id WHERE j.id = $1",
                job_id,
            )
        assert row
        return Held(*row)

    async def held_in_all_uc(self) -> int:
        async with self.world.parts.loop_database.connection() as connection:
            return await connection.fetchval("SELECT sum(amount_uc - captured_uc - released_uc)::bigint FROM hold") or 0

    async def extend(self, job_id: UUID, more: JobExtension, owner: UUID | None = None) -> Refusal | None:
        async with self.world.parts.loop_database.transaction() as transaction:
            return await jobs.extend(transaction, job_id, owner, more, self.world.parts.ids, self.world.now)

    async def call_off(self, job_id: UUID, owner: UUID | None = None) -> JobRefusal | None:
        parts, now = self.world.parts, self.world.now
        async with parts.loop_database.transaction() as transaction:
            refusal = await jobs.call_off(transaction, job_id, owner, parts.ids, now)
        await abandoned_work.sweep(parts.loop_database, 1_000, work_terms(parts.settings), parts.ids, now)
        return refusal


@pytest.fixture
async def shop(database: Database, tmp_path: Path) -> AsyncIterator[Shop]:
    world = await make_world(database, tmp_path)
    yield Shop(world)
    await world.parts.poster.close()


async def test_nodes_that_may_get_work_are_for_sale_at_their_price(shop: Shop) -> None:
    cheap, dear = await shop.world.node(price_uc=500_000), await shop.world.node(price_uc=2_000_000)
    paused = await shop.world.node()
    await shop.world.value("UPDATE node SET suspended_reason = 'a test' WHERE id = $1", paused.id)
    found = {seller.node_id: seller for seller in (await shop.look()).sellers}
    assert {node_id: node.price_uc for node_id, node in found.items()} == {cheap.id: 500_000, dear.id: 2_000_000}
    assert found[cheap.id].candidate.kinds == {"matmul", "script", "embed"}
    assert found[cheap.id].core_ops_per_s == 10**10 / found[cheap.id].size.cores


async def test_what_is_quoted_is_placed_on_every_node_of_the_quote_and_paid_within_it(shop: Shop) -> None:
    nodes = [await shop.world.node(price_uc=price_uc) for price_uc in (500_000, 700_000, 3_000_000)]
    job_id, made = await shop.confirmed()
    assert made.nodes == len(nodes)
    offers = await shop.world.place()
    assert len(offers) == 3
    at_work = await shop.job(job_id)
    assert (at_work.state, at_work.placed, at_work.held_uc) == (JobState.RUNNING, 3, made.high_uc)
    await shop.world.deliver(*offers)
    over = await shop.job(job_id)
    assert (over.state, over.completed, over.held_uc) == (JobState.COMPLETED, 3, 0)
    assert made.low_uc <= over.spent_uc <= made.high_uc


async def test_a_customer_sees_who_worked_and_gets_every_result(shop: Shop) -> None:
    node = await shop.world.node()
    job_id, _ = await shop.confirmed()
    offers = await shop.world.place()
    async with shop.world.parts.loop_database.connection() as connection:
        at_work = await job_views.attempt_uses(connection, job_id, None, 10)
    assert {(one.node_id, one.state, one.ended_at) for one in at_work} == {(node.id, "offered", None)}
    await shop.world.deliver(*offers)
    async with shop.world.parts.loop_database.connection() as connection:
        used = await job_views.attempt_uses(connection, job_id, None, 10)
        results = await job_views.results(connection, job_id, -1, 10)
        rest = await job_views.results(connection, job_id, 0, 10)
    assert sorted(one.task for one in used) == [0, 1, 2]
    assert all(one.paid_uc > 0 and one.device == "a processor" for one in used)
    assert [one.task for one in results] == [0, 1, 2]
    assert [one.task for one in rest] == [1, 2]
    for seed, result in enumerate(results):
        assert result.receipt
        assert (result.ended, result.receipt.inline) == ("completed", result_of(seed))


async def test_what_is_called_off_half_way_pays_and_keeps_what_was_delivered(shop: Shop) -> None:
    await shop.world.node()
    job_id, made = await shop.confirmed()
    [first, *_] = await shop.world.place()
    await shop.world.deliver(first)
    assert await shop.call_off(job_id) is None
    over = await shop.job(job_id)
    assert (over.state, over.completed, over.cancelled, over.held_uc) == (JobState.CANCELLED, 1, 2, 0)
    assert 0 < over.spent_uc <= made.high_uc
    async with shop.world.parts.loop_database.connection() as connection:
        results = await job_views.results(connection, job_id, -1, 10)
    assert sorted((one.ended, one.receipt is not None) for one in results) == [
        *[("cancelled", False)] * 2,
        ("completed", True),
    ]
    assert await shop.call_off(job_id) is JobRefusal.JOB_OVER


async def test_nobody_changes_a_job_that_is_not_theirs(shop: Shop) -> None:
    job_id, _ = await shop.confirmed()
    stranger = UUID(int=5)
    assert await shop.call_off(job_id, stranger) is JobRefusal.UNKNOWN_JOB
    assert await shop.extend(job_id, JobExtension(time_us=1), stranger) is JobRefusal.UNKNOWN_JOB
    async with shop.world.parts.loop_database.connection() as connection:
        assert await job_views.get(connection, job_id, stranger) is None
        assert await job_views.listed(connection, stranger, None, None, 10) == []


async def test_a_deadline_moves_and_the_money_is_held_for_longer_if_need_be(shop: Shop) -> None:
    job_id, _ = await shop.confirmed()
    before, first = (await shop.job(job_id)).deadline_at, await shop.hold(job_id)
    assert before
    assert await shop.extend(job_id, JobExtension(time_us=DAY)) is None
    assert await shop.hold(job_id) == first, "it is held for long enough"
    assert await shop.extend(job_id, JobExtension(time_us=40 * DAY)) is None
    assert (await shop.job(job_id)).deadline_at == before + 41 * DAY
    longer = await shop.hold(job_id)
    assert longer.id != first.id
    assert (longer.left_uc, longer.expires_at) == (first.left_uc, before + 71 * DAY)
    assert await shop.held_in_all_uc() == first.left_uc, "nothing is held twice"
    assert why(await shop.extend(job_id, JobExtension(time_us=60 * DAY))) is JobRefusal.DEADLINE_TOO_FAR
    assert await shop.extend(job_id, JobExtension(budget_uc=10**9)) is JobRefusal.BUDGET_HELD
    events = await told(shop.world.parts.loop_database, "job.extended")
    assert [event.body["deadline_at_us"] for event in events] == [before + DAY, before + 41 * DAY]
    assert await shop.call_off(job_id) is None
    assert await shop.held_in_all_uc() == 0, "the longer hold goes back as well"


async def test_a_job_that_was_never_confirmed_is_called_off_at_once(shop: Shop) -> None:
    job_id, _ = await shop.quoted()
    assert await shop.extend(job_id, JobExtension(time_us=SECOND)) is JobRefusal.JOB_NOT_CONFIRMED
    assert await shop.extend(job_id, JobExtension(budget_uc=7)) is None
    assert why(await shop.extend(job_id, JobExtension(budget_uc=7))) is JobRefusal.BUDGET_NOT_LARGER
    assert await shop.call_off(job_id) is None
    assert (await shop.job(job_id)).state is JobState.CANCELLED
    [event] = await told(shop.world.parts.loop_database, "job.ended")
    assert event.body["state"] == "cancelled"


async def test_a_job_is_confirmed_once_at_its_price_and_before_its_quote_expires(shop: Shop) -> None:
    job_id, made = await shop.quoted()
    assert await shop.plan(job_id, at=made.expires_at) is JobRefusal.QUOTE_EXPIRED
    assert why(await shop.plan(job_id, at_most_uc=made.high_uc - 1)) is JobRefusal.PRICE_ABOVE_CONFIRMED
    plan = await shop.plan(job_id, at_most_uc=made.high_uc)
    assert isinstance(plan, JobPlan)
    assert plan.hold.amount_uc == made.high_uc
    job_id, _ = await shop.confirmed()
    assert await shop.plan(job_id) is JobRefusal.JOB_NOT_QUOTED


async def test_jobs_that_were_never_confirmed_are_bounded_and_forgotten(shop: Shop) -> None:
    parts, now, customer = shop.world.parts, shop.world.now, shop.world.customer
    _, made = await shop.quoted()
    called_off, _ = await shop.quoted()
    kept, _ = await shop.confirmed()
    async with parts.loop_database.transaction() as transaction:
        assert await jobs.call_off(transaction, called_off, customer, parts.ids, now) is None

    async def refused(account_id: UUID, **bounds: int) -> JobRefusal | None:
        market = replace(parts.settings.market, **bounds)
        async with parts.loop_database.transaction() as transaction:
            return await jobs.room_for_another(transaction, account_id, market)

    assert await refused(customer, unconfirmed_max=2) is JobRefusal.TOO_MANY_UNCONFIRMED
    assert await refused(customer, unconfirmed_max=3) is None
    assert await refused(customer, unconfirmed_max_bytes=1_000) is JobRefusal.UNCONFIRMED_TOO_LARGE
    assert await refused(UUID(int=5), unconfirmed_max=1) is None
    assert not await jobs.forget_unconfirmed(parts.loop_database, made.expires_at, 100)
    assert await jobs.forget_unconfirmed(parts.loop_database, Instant(made.expires_at + 1), 100) == 2
    assert await refused(customer, unconfirmed_max=1) is None
    assert (await shop.job(kept)).state is JobState.QUEUED


async def test_jobs_are_listed_newest_first_and_counted_in_the_queue(shop: Shop) -> None:
    waiting, _ = await shop.confirmed()
    quoted, _ = await shop.quoted()
    async with shop.world.parts.loop_database.connection() as connection:
        found = await job_views.listed(connection, shop.world.customer, None, None, 10)
        behind = await job_views.listed(connection, None, None, found[0].id, 10)
        only = await job_views.listed(connection, None, JobState.QUEUED, None, 10)
        queue = await job_views.queue_state(connection)
    assert [job.id for job in found] == [quoted, waiting]
    assert [job.id for job in behind] == [job.id for job in only] == [waiting]
    assert (found[1].waiting, queue.waiting, queue.jobs) == (3, {"high": 0, "normal": 3, "low": 0}, 1)


def why(answer: object) -> Refusal:
    """The refusal in an answer that names amounts."""
    assert isinstance(answer, AmountObjection), answer
    return answer.refusal
