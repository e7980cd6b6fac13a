"""Statements that change a few leases or waiting tasks find each by its key, whatever PostgreSQL knew of the tables.

These two tables fill and empty all the time, and a plan is kept for as long as nothing tells of a change. One that was
made while they were empty must not read all of them for each row of a batch when they are not empty any more.
"""

import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.settlement.rewards import RewardPlan
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, connect
from tidemill.store.jobs import job_closures, leases, outcomes, tasks
from tidemill.store.query import Connection, Query

COMING_AND_GOING = ("lease", "task_queue")

BATCHES = (
    "jobs/lease/change",
    "jobs/lease/end",
    "jobs/lease/lock",
    "jobs/lease/of_nodes",
    "jobs/lease/assignments",
    "jobs/lease/reserved",
    "jobs/task/place",
    "jobs/task/waiting",
)


@pytest.mark.parametrize("name", BATCHES)
async def test_rows_are_found_by_their_keys_also_by_a_plan_that_was_made_while_tables_were_empty(
    name: str, urls: DatabaseUrls, database: Database
) -> None:
    owner = await connect(urls.owner)
    try:
        await owner.execute(f"VACUUM (ANALYZE) {', '.join(COMING_AND_GOING)}")
    finally:
        await owner.close()
    async with database.transaction() as transaction:
        await transaction.find_by_key()
        scans = list(_scans(await _kept_plan(transaction, Query(name))))
    assert scans
    assert not [scan for scan in scans if "Index Cond" not in scan]


LOOK_UPS: Sequence[Callable[[Connection], Awaitable[object]]] = (
    lambda transaction: job_closures.sweep(transaction, 10, RewardPlan(), Ids(secrets.randbits), Instant(0)),
    lambda transaction: leases.of_nodes(transaction, []),
    lambda transaction: leases.assignments(transaction, []),
    lambda transaction: leases.reserved(transaction, []),
    lambda transaction: outcomes.lock(transaction, []),
    lambda transaction: tasks.place(transaction, [], Instant(0)),
    lambda transaction: tasks.waiting(transaction, []),
)


@pytest.mark.parametrize("look_up", LOOK_UPS)
async def test_whoever_looks_rows_up_has_them_found_by_their_keys(
    look_up: Callable[[Connection], Awaitable[object]], database: Database
) -> None:
    async with database.transaction() as transaction:
        await look_up(transaction)
        assert await transaction.fetchval("SHOW enable_seqscan") == "off"


async def _kept_plan(transaction: Connection, query: Query[Any]) -> Mapping[str, Any]:
    """The plan that serves for any values."""
    await transaction.execute("SET LOCAL plan_cache_mode = force_generic_plan")
    await transaction.execute(f"PREPARE kept AS {query.sql}")
    values = ", ".join("NULL" for _ in query.names)
    said = await transaction.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE kept ({values})")
    plan: Mapping[str, Any] = json.loads(said)[0]["Plan"]
    return plan


def _scans(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if plan.get("Relation Name") in COMING_AND_GOING and plan["Node Type"].endswith("Scan"):
        yield plan
    for inner in plan.get("Plans", ()):
        yield from _scans(inner)
