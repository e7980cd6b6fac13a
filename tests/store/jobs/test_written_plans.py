"""The store writes what is in a plan, and nothing else: every table is compared before and after."""

import secrets
from collections import Counter
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.store.jobs.test_work_plans import IDS, QUOTED_MS, TERMS, Pool
from tidemill.core.jobs.attempt import Happening
from tidemill.core.jobs.job import JobHappening
from tidemill.core.jobs.plans.happenings import AttemptHappening, call_offs
from tidemill.core.jobs.plans.job_ends import JobsPlan, counts_of
from tidemill.core.jobs.plans.work_plan import WorkPlan, follow
from tidemill.core.settlement.pay import UsedTime
from tidemill.store.database import Database
from tidemill.store.jobs import jobs, leases, work_plans
from tidemill.store.query import Connection

OUTCOMES = [
    (Happening.ACCEPTED,),
    (Happening.STARTED,),
    (Happening.DECLINED,),
    (Happening.DELIVERED, Happening.PASSED),
    (Happening.DELIVERED, Happening.FAILED),
    (Happening.CRASHED,),
    (Happening.NODE_LOST,),
    (Happening.FAULTED,),
]
Rows = dict[str, Counter[str]]


async def rows_of(connection: Connection) -> Rows:
    """Every row of every table, as text."""
    names = await connection.fetch(
        "SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
        "WHERE nspname = 'public' AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname"
    )
    return {
        name: Counter(row["text"] for row in await connection.fetch(f'SELECT r::text AS text FROM "{name}" AS r'))
        for (name,) in names
    }


def changed(before: Rows, after: Rows) -> dict[str, tuple[int, int]]:
    """How many rows each table lost and gained; a row that changed is one of each."""
    differences = {name: ((before[name] - after[name]).total(), (after[name] - before[name]).total()) for name in after}
    return {name: difference for name, difference in differences.items() if difference != (0, 0)}


def expected(plan: WorkPlan, concluded: JobsPlan) -> dict[str, tuple[int, int]]:
    """What a plan says that tables lose and gain. The ledger's own tables follow from the obligations."""
    counted = len(counts_of(plan.task_ends))
    said = {
        "lease": (len(plan.changes) + len(plan.ends), len(plan.changes) + len(plan.resumed)),
        "attempt": (0, len(plan.ends)),
        "task": (len(plan.task_ends), len(plan.task_ends)),
        "task_queue": (0, len(plan.waiting)),
        "call_off": (0, len(plan.called_off)),
        "job": (counted, counted),
        "transfer": (0, len(concluded.obligations)),
        "hold_release": (0, len(concluded.ended_hold_ids)),
    }
    return {name: difference for name, difference in said.items() if difference != (0, 0)}


LEDGERS_OWN = {"hold", "ledger_account", "ledger_number", "owner_record", "event"}
"""These follow from the entries and the events, and are looked at below."""


async def compare(pool: Pool, plan: WorkPlan) -> None:
    async with pool.database.transaction() as transaction:
        before = await rows_of(transaction)
        concluded = await work_plans.write(transaction, plan, TERMS, IDS, pool.now)
        differences = changed(before, await rows_of(transaction))
    found = {name: difference for name, difference in differences.items() if name not in LEDGERS_OWN}
    assert found == expected(plan, concluded)
    posted = bool(concluded.obligations or concluded.ended_hold_ids)
    announced = len(plan.events) + len(concluded.events) + posted
    assert differences.get("event", (0, 0)) == (0, announced)
    if not posted:
        assert not differences.keys() & {"hold", "ledger_account", "ledger_number"}
    await _compare_money(pool, concluded)


async def _compare_money(pool: Pool, concluded: JobsPlan) -> None:
    async with pool.database.connection() as connection:
        for owed in concluded.obligations:
            row = await connection.fetchrow(
                "SELECT debit_id, credit_id, amount_uc, kind, cause, hold_id FROM transfer WHERE id = $1", owed.id
            )
            assert row, "what is owed was posted"
            told: tuple[Any, ...] = (owed.payer.id, owed.payee.id, owed.amount_uc, owed.kind, owed.cause, owed.hold_id)
            assert tuple(row) == told


@pytest.fixture
async def pool(database: Database) -> Pool:
    return await Pool.make(database)


async def test_nothing_is_written_that_is_not_in_the_plan(pool: Pool) -> None:
    seed = secrets.randbits(32)
    dice = Random(seed)
    for _ in range(3):
        await pool.job(5)
    made: dict[UUID, UUID] = {}
    for _ in range(6):
        made |= {placed.attempt_id: placed.node_id for placed in await pool.place(limit=6)}
        async with pool.database.transaction() as transaction:
            locked = await leases.lock(transaction, made.items())
        happenings = [
            AttemptHappening(
                id_,
                lease.tries,
                lease.node_id,
                dice.choice(OUTCOMES),
                "why",
                "",
                UsedTime(ms := dice.randint(1, QUOTED_MS), ms),
            )
            for id_, lease in locked.items()
        ]
        plan = follow(happenings, locked, TERMS, IDS, pool.now)
        await compare(pool, plan)
        async with pool.database.transaction() as transaction:
            again = await leases.lock(transaction, made.items())
        ended = {end.attempt_id for end in plan.ends}
        assert not ended & again.keys(), f"seed {seed}: what ended holds no lease"


async def test_a_closing_job_writes_what_its_plan_says(pool: Pool) -> None:
    job_id = await pool.job(4)
    await pool.place(limit=4)
    async with pool.database.transaction() as transaction:
        assert await jobs.close(transaction, job_id, JobHappening.CALLED_OFF) is None
    async with pool.database.transaction() as transaction:
        locked = await leases.lock_unwanted(transaction, 100)
    assert len(locked) == 4
    await compare(pool, follow(call_offs(locked.values(), {}), locked, TERMS, IDS, pool.now))
