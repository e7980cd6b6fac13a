"""Statements that change a few leases or waiting tasks find each by its key, whatever PostgreSQL knew of the tables.

These two tables fill and empty all the time, and a plan is kept for as long as nothing tells of a change. One that was
made while they were empty must not read all of them for each row of a batch when they are not empty any more.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.store.test_queries import every_query
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, connect
from tidemill.store.jobs import leases
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
    "placement/queue/waiting",
)


def declared(name: str) -> Query[Any]:
    """The query that the store declares: a second one would count as another declaration."""
    [query] = [query for query in every_query() if query.name == name]
    return query


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
        scans = list(_scans(await _kept_plan(transaction, declared(name))))
    assert scans
    assert not [scan for scan in scans if "Index Cond" not in scan]


@pytest.mark.parametrize("name", BATCHES)
def test_queries_of_batches_look_their_rows_up_by_key(name: str) -> None:
    assert declared(name).by_key


async def test_a_query_that_looks_up_by_key_does_so_until_its_transaction_ends(database: Database) -> None:
    async with database.transaction() as transaction:
        assert await transaction.fetchval("SHOW enable_seqscan") == "on"
        await leases.of_nodes(transaction, [])
        assert await transaction.fetchval("SHOW enable_seqscan") == "off"
    async with database.transaction() as transaction:
        assert await transaction.fetchval("SHOW enable_seqscan") == "on"
        await leases.of_nodes(transaction, [])
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
