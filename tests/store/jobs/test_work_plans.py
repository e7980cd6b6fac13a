"""Jobs, tasks and attempts on a real server: placed once, judged once, paid once, whoever else is at it."""

import asyncio
import secrets
from dataclasses import dataclass, field
from typing import Self
from uuid import UUID

import pytest

from tests.worlds.databases.dispatch_world import body_of, demand_of_body
from tests.worlds.databases.node_rows import an_owner, nodes_of, now_of
from tidemill.core.clock import SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt import AttemptState, Happening
from tidemill.core.jobs.job import JobHappening, JobState
from tidemill.core.jobs.plans.happenings import AttemptHappening, WorkTerms
from tidemill.core.jobs.plans.job_changes import JobPlan, NewTask
from tidemill.core.jobs.plans.work_plan import WorkPlan
from tidemill.core.jobs.refusals import JobRefusal
from tidemill.core.jobs.task import Blame, RetryLimits
from tidemill.core.ledger import AccountKind, LedgerAccount, PostingRefusal, Transfer
from tidemill.core.settlement.obligations import PlannedHold
from tidemill.core.settlement.pay import PayTerms, RewardPlan, UsedTime
from tidemill.core.settlement.rewards import customer_account
from tidemill.core.trust.owner_record import AttemptCounts
from tidemill.store.database import Database
from tidemill.store.jobs import abandoned_work, jobs, leases, tasks, work_plans
from tidemill.store.jobs.job_views import Job
from tidemill.store.jobs.jobs import Draft
from tidemill.store.jobs.tasks import NewLease
from tidemill.store.ledger import books, ledger
from tidemill.store.placement import queue
from tidemill.store.trust import owner_records

IDS = Ids(secrets.randbits)
"""Its own: ids only grow, and other tests go into the future."""
TERMS = WorkTerms(RetryLimits(), RewardPlan())
DELIVERED_AND_RIGHT = (Happening.DELIVERED, Happening.PASSED)
PROCESS = UUID(int=7)
HOURLY_UC = 3_600_000_000
QUOTED_MS = 1_000
COST_UC = 1_100_000


@dataclass
class Pool:
    """A customer with money, and nodes of two owners."""

    database: Database
    now: Instant
    customer: UUID
    owners: list[UUID]
    nodes: list[UUID]
    whose: dict[UUID, UUID] = field(default_factory=dict)

    @classmethod
    async def make(cls, database: Database) -> Self:
        now = await now_of(database)
        customer, *owners = [await an_owner(database, now) for _ in range(3)]
        made = cls(database, now, customer, owners, [])
        for owner_id in owners:
            for link in await nodes_of(database, owner_id, 2, PROCESS, now):
                made.nodes.append(link.node_id)
                made.whose[link.node_id] = owner_id
        bank, account = LedgerAccount(AccountKind.EXTERNAL, name="bank"), LedgerAccount(AccountKind.CUSTOMER, customer)
        async with database.transaction() as transaction:
            await ledger.open_accounts(transaction, [bank, account], now)
            deposit = Transfer(IDS.new(now), bank.id, account.id, 100 * COST_UC, "credit", "deposit", "test")
            await ledger.post(transaction, [deposit], IDS, now)
        return made

    async def job(self, count: int, kind: str = "matmul") -> UUID:
        """A confirmed job of so many tasks."""
        job_id = IDS.new(self.now)
        async with self.database.transaction() as transaction:
            await jobs.make(transaction, Draft(job_id, self.customer, kind, {"kind": kind}), self.now)
            await jobs.set_quote(transaction, job_id, {}, Instant(self.now + 60 * SECOND))
            assert isinstance(await jobs.confirm(transaction, self.plan(job_id, count), IDS, self.now), Job)
        return job_id

    def plan(self, job_id: UUID, count: int) -> JobPlan:
        later = Instant(self.now + 3_600 * SECOND)
        new = [NewTask(IDS.new(self.now), b"{}", demand_of_body(body_of(1)), COST_UC) for _ in range(count)]
        payer = customer_account(self.customer)
        hold = PlannedHold(IDS.new(self.now), payer, COST_UC * count, later, f"job:{job_id}")
        return JobPlan(job_id, self.customer, new, rank=1, deadline_at=later, hold=hold)

    async def place(self, limit: int = 100, hourly_uc: int = HOURLY_UC, first_node: int = 0) -> list[NewLease]:
        async with self.database.transaction() as transaction:
            waiting = await queue.waiting(transaction, await queue.front(transaction, limit))
        wanted = [
            self.placement(one.rank, one.task_id, number)._replace(terms=PayTerms(hourly_uc, QUOTED_MS))
            for number, one in enumerate(waiting, start=first_node)
        ]
        async with self.database.transaction() as transaction:
            placed = await tasks.place(transaction, wanted, self.now)
        return [one for one in wanted if one.attempt_id in placed]

    def placement(self, rank: int, task_id: UUID, number: int) -> NewLease:
        node_id = self.nodes[number % len(self.nodes)]
        deadline = Instant(self.now + 60 * SECOND)
        owner_id = self.whose[node_id]
        return NewLease(
            rank, task_id, IDS.new(self.now), node_id, owner_id, False, PayTerms(HOURLY_UC, QUOTED_MS), deadline
        )

    async def apply(self, said: list[AttemptHappening]) -> WorkPlan:
        async with self.database.transaction() as transaction:
            return await work_plans.apply(transaction, said, TERMS, IDS, self.now)

    async def balance(self, account: LedgerAccount) -> int:
        async with self.database.connection() as connection:
            [balance] = await books.balances(connection, ids=[account.id])
            return balance.posted_uc

    async def database_lease(self, attempt_id: UUID) -> int:
        async with self.database.connection() as connection:
            return await connection.fetchval("SELECT tries FROM lease WHERE attempt_id = $1", attempt_id) or 0

    async def state(self, job_id: UUID) -> JobState:
        async with self.database.connection() as connection:
            return JobState(await connection.fetchval("SELECT state FROM job WHERE id = $1", job_id))


@pytest.fixture
async def pool(database: Database) -> Pool:
    return await Pool.make(database)


def said(one: NewLease, *happenings: Happening, used_ms: int = QUOTED_MS) -> AttemptHappening:
    return AttemptHappening(one.attempt_id, 1, one.node_id, happenings, "because", "pass", UsedTime(used_ms, used_ms))


async def test_a_job_is_placed_judged_and_paid_and_the_rest_of_its_hold_goes_back(pool: Pool) -> None:
    job_id = await pool.job(4)
    placed = await pool.place()
    applied = await pool.apply([said(one, *DELIVERED_AND_RIGHT) for one in placed])
    assert set(applied.states.values()) == {AttemptState.JUDGED}
    assert await pool.state(job_id) is JobState.COMPLETED
    rewards = [await pool.balance(LedgerAccount(AccountKind.PROVIDER_LOCKED, one)) for one in pool.owners]
    assert rewards == [2_000_000, 2_000_000]
    async with pool.database.connection() as connection:
        assert [await owner_records.find(connection, owner_id) for owner_id in pool.owners] == [AttemptCounts(2)] * 2
    assert await pool.balance(LedgerAccount(AccountKind.BONUS_FUND)) == 80_000
    assert await pool.balance(LedgerAccount(AccountKind.CUSTOMER, pool.customer)) == 96 * COST_UC
    async with pool.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM hold WHERE captured_uc + released_uc < amount_uc") == 0
        assert await connection.fetchval("SELECT count(*) FROM task_queue") == 0
        assert await connection.fetchval("SELECT count(*) FROM lease") == 0
        paid = await connection.fetch(
            "SELECT t.amount_uc, sum(a.paid_uc) AS paid_uc "
            "FROM attempt AS a JOIN transfer AS t ON t.id = a.transfer_id GROUP BY t.id, t.amount_uc"
        )
        assert [row["amount_uc"] for row in paid] == [row["paid_uc"] for row in paid] == [2_000_000, 2_000_000]


async def test_whoever_works_for_nothing_completes_a_task_and_is_paid_nothing(pool: Pool) -> None:
    job_id = await pool.job(1)
    [placed] = await pool.place(hourly_uc=0)
    await pool.apply([said(placed, *DELIVERED_AND_RIGHT)])
    assert await pool.state(job_id) is JobState.COMPLETED
    assert await pool.balance(LedgerAccount(AccountKind.CUSTOMER, pool.customer)) == 100 * COST_UC


async def test_what_comes_twice_is_paid_once(pool: Pool) -> None:
    await pool.job(1)
    [one] = await pool.place()
    assert (await pool.apply([said(one, *DELIVERED_AND_RIGHT)])).states == {one.attempt_id: AttemptState.JUDGED}
    assert (await pool.apply([said(one, *DELIVERED_AND_RIGHT)])).states == {}
    assert await pool.balance(LedgerAccount(AccountKind.PROVIDER_LOCKED, one.owner_id)) == 1_000_000


async def test_many_who_bring_the_same_results_at_once_are_paid_once(pool: Pool) -> None:
    await pool.job(20)
    placed = await pool.place()
    brought = [said(one, *DELIVERED_AND_RIGHT) for one in placed]
    answers = await asyncio.gather(*(pool.apply(secrets.SystemRandom().sample(brought, 20)) for _ in range(6)))
    assert sum(len(one.states) for one in answers) == 20
    assert await pool.balance(LedgerAccount(AccountKind.CUSTOMER, pool.customer)) == 80 * COST_UC


async def test_many_who_place_the_same_tasks_at_once_place_each_once(pool: Pool) -> None:
    await pool.job(50)
    answers = await asyncio.gather(*(pool.place() for _ in range(6)))
    placed = [one.task_id for answer in answers for one in answer]
    assert len(placed) == len(set(placed)) == 50


async def test_a_node_cannot_speak_for_another_or_for_an_older_lease(pool: Pool) -> None:
    await pool.job(1)
    [one] = await pool.place()
    other = next(node for node in pool.nodes if node != one.node_id)
    assert (await pool.apply([AttemptHappening(one.attempt_id, 1, other, DELIVERED_AND_RIGHT)])).states == {}
    assert (await pool.apply([AttemptHappening(one.attempt_id, 2, one.node_id, DELIVERED_AND_RIGHT)])).states == {}


async def test_a_task_whose_node_is_lost_waits_for_another(pool: Pool) -> None:
    await pool.job(1)
    [one] = await pool.place()
    await pool.apply([said(one, Happening.NODE_LOST)])
    async with pool.database.transaction() as transaction:
        [waiting] = await queue.waiting(transaction, await queue.front(transaction, 10))
    assert (waiting.failures, waiting.tries) == (0, 1)


async def test_three_failures_end_a_customers_program_and_give_the_money_back(pool: Pool) -> None:
    job_id = await pool.job(1, kind="script")
    for lease in (1, 2, 3):
        [one] = await pool.place()
        crashed = AttemptHappening(one.attempt_id, lease, one.node_id, (Happening.CRASHED,), "exit code 1")
        assert (await pool.apply([crashed])).blames == [], "nobody is blamed for a program that fails everywhere"
    assert await pool.state(job_id) is JobState.FAILED
    assert await pool.balance(LedgerAccount(AccountKind.CUSTOMER, pool.customer)) == 100 * COST_UC


async def test_failures_are_recorded_once_another_node_has_succeeded(pool: Pool) -> None:
    await pool.job(1)
    for lease in (1, 2):
        [one] = await pool.place(first_node=0)
        crashed = AttemptHappening(one.attempt_id, lease, one.node_id, (Happening.CRASHED,), "made up")
        assert (await pool.apply([crashed])).blames == []
    other = next(number for number, node_id in enumerate(pool.nodes) if pool.whose[node_id] != one.owner_id)
    [right] = await pool.place(first_node=other)
    passed = AttemptHappening(right.attempt_id, 3, right.node_id, DELIVERED_AND_RIGHT, used=UsedTime(1, 1))
    assert (await pool.apply([passed])).blames == [(one.owner_id, Blame.CRASHED)] * 2
    async with pool.database.connection() as connection:
        records = [await owner_records.find(connection, owner_id) for owner_id in (one.owner_id, right.owner_id)]
    assert [(record.verified, record.crashed) for record in records] == [(0, 2), (1, 0)]


async def test_a_result_that_waits_for_its_verdict_keeps_its_lease(pool: Pool) -> None:
    await pool.job(1)
    [one] = await pool.place()
    batch_id = IDS.new(pool.now)
    brought = AttemptHappening(one.attempt_id, 1, one.node_id, (Happening.DELIVERED,), batch_id=batch_id, place=3)
    assert (await pool.apply([brought])).states == {one.attempt_id: AttemptState.SUBMITTED}
    judged = AttemptHappening(
        one.attempt_id, 1, one.node_id, (Happening.PASSED,), "right", "pass", UsedTime(QUOTED_MS, QUOTED_MS)
    )
    assert (await pool.apply([judged])).states == {one.attempt_id: AttemptState.JUDGED}
    async with pool.database.connection() as connection:
        row = await connection.fetchrow("SELECT batch_id, place FROM attempt")
    assert row
    assert (row["batch_id"], row["place"]) == (batch_id, 3)


async def test_a_task_is_not_placed_on_a_node_that_has_lost_its_link(pool: Pool) -> None:
    await pool.job(1)
    async with pool.database.connection() as connection:
        await connection.execute("UPDATE presence SET process_id = NULL, linked_at = NULL")
    assert await pool.place() == []
    async with pool.database.transaction() as transaction:
        assert len(await queue.waiting(transaction, await queue.front(transaction, 10))) == 1


async def test_a_job_is_confirmed_only_with_money(pool: Pool) -> None:
    poor = IDS.new(pool.now)
    async with pool.database.transaction() as transaction:
        await jobs.make(transaction, Draft(poor, pool.customer, "matmul", {}), pool.now)
        await jobs.set_quote(transaction, poor, {}, Instant(pool.now + 60 * SECOND))
        refused = await jobs.confirm(transaction, pool.plan(poor, 1_000), IDS, pool.now)
    assert refused is PostingRefusal.INSUFFICIENT_FUNDS


async def test_a_job_that_is_called_off_pays_what_was_delivered_and_stops_the_rest(pool: Pool) -> None:
    job_id = await pool.job(4)
    first, second = await pool.place(limit=2)
    await pool.apply(
        [AttemptHappening(first.attempt_id, 1, first.node_id, (Happening.DELIVERED,), batch_id=IDS.new(pool.now))]
    )
    async with pool.database.transaction() as transaction:
        assert await jobs.close(transaction, job_id, JobHappening.CALLED_OFF) is None
        assert await jobs.close(transaction, job_id, JobHappening.CALLED_OFF) is JobRefusal.JOB_OVER
    swept = await abandoned_work.sweep(pool.database, 100, TERMS, IDS, pool.now)
    assert swept.states == {second.attempt_id: AttemptState.CANCELLED}
    async with pool.database.connection() as connection:
        [told] = await leases.take_call_offs(connection, PROCESS)
        assert (told.attempt_id, told.node_id, told.lease) == (second.attempt_id, second.node_id, 1)
        assert await leases.take_call_offs(connection, PROCESS) == []
    assert await pool.state(job_id) is JobState.QUEUED
    await pool.apply([said(first, Happening.PASSED)])
    assert await pool.state(job_id) is JobState.CANCELLED
    assert await pool.balance(LedgerAccount(AccountKind.CUSTOMER, pool.customer)) == 99 * COST_UC


async def test_jobs_called_off_while_their_tasks_are_placed_judged_and_put_back_all_end(pool: Pool) -> None:
    made = [await pool.job(6) for _ in range(5)]

    async def work() -> None:
        for _ in range(12):
            for one in await pool.place(limit=3):
                what = secrets.choice([DELIVERED_AND_RIGHT, (Happening.NODE_LOST,), (Happening.CRASHED,)])
                lease = await pool.database_lease(one.attempt_id)
                await pool.apply(
                    [AttemptHappening(one.attempt_id, lease, one.node_id, what, used=UsedTime(QUOTED_MS, QUOTED_MS))]
                )

    async def call_off() -> None:
        for job_id in made:
            async with pool.database.transaction() as transaction:
                await jobs.close(transaction, job_id, JobHappening.CALLED_OFF)
            await sweep()

    async def sweep() -> None:
        await abandoned_work.sweep(pool.database, 100, TERMS, IDS, pool.now)

    await asyncio.gather(work(), work(), call_off(), work())
    await sweep()
    assert {await pool.state(job_id) for job_id in made} <= {JobState.CANCELLED, JobState.COMPLETED, JobState.FAILED}
    async with pool.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM hold WHERE captured_uc + released_uc < amount_uc") == 0
        assert await connection.fetchval("SELECT (SELECT count(*) FROM lease) + (SELECT count(*) FROM task_queue)") == 0


async def listen(pool: Pool, listened_s: int) -> None:
    async with pool.database.connection() as connection:
        await connection.execute("UPDATE listening SET listened_us = listened_us + $1", listened_s * SECOND)


async def given_up(pool: Pool) -> list[AttemptHappening]:
    async with pool.database.connection() as connection:
        return await leases.lost_attempts(connection, 100)


async def test_an_attempt_is_late_only_by_time_in_which_we_listened(pool: Pool) -> None:
    await pool.job(1)
    [one] = await pool.place()
    await listen(pool, 59)
    assert await given_up(pool) == []
    await listen(pool, 2)
    assert [(late.attempt_id, late.happenings) for late in await given_up(pool)] == [
        (one.attempt_id, (Happening.TIME_UP,))
    ]


async def test_the_attempts_of_a_node_that_is_offline_are_given_up(pool: Pool) -> None:
    await pool.job(1)
    [one] = await pool.place()
    await listen(pool, 100)
    async with pool.database.connection() as connection:
        await connection.execute("UPDATE presence SET offline_since = $1", pool.now)
    [lost] = await given_up(pool)
    assert lost.happenings == (Happening.NODE_LOST,)
    assert (await pool.apply([lost])).states == {one.attempt_id: AttemptState.LOST}


async def test_offers_are_found_by_number_and_whole_for_who_is_newly_linked(pool: Pool) -> None:
    await pool.job(8)
    placed = await pool.place()
    async with pool.database.transaction() as transaction:
        every = await leases.placed_behind(transaction, 0, 100)
        assert [one.attempt_id for one in every] == [one.attempt_id for one in placed]
        assert await leases.placed_behind(transaction, every[2].number, 2) == every[3:5]
        assert await leases.placed_behind(transaction, every[-1].number, 100) == []
        again = await leases.of_nodes(transaction, [pool.nodes[0], UUID(int=8)])
        assert [one.node_id for one in again] == [pool.nodes[0]] * 2
        told = await leases.assignments(transaction, [one.attempt_id for one in reversed(again)])
        assert [one.number for one in told] == sorted(one.number for one in again)
