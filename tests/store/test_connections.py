"""Connections that several use one after the other."""

import pytest

from tidemill.core.faults import DatabaseFault
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, DatabaseLimits

LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"


async def test_what_somebody_failed_with_is_cleaned_up_before_another_gets_the_connection(urls: DatabaseUrls) -> None:
    database = await Database.open(urls.program, DatabaseLimits(connections=1, statement_s=0.5, lock_s=10), "test")
    try:
        with pytest.raises(DatabaseFault):
            async with database.connection() as connection:
                process_id = connection.get_server_pid()
                await connection.execute("SELECT pg_advisory_lock(1)")
                await connection.execute("SELECT pg_sleep(30)")
        async with database.connection() as connection:
            assert connection.get_server_pid() == process_id
            assert await connection.fetchval(LOCKS) == 0
    finally:
        await database.close()


async def test_a_connection_that_is_lost_is_a_fault_and_the_next_is_a_new_one(urls: DatabaseUrls) -> None:
    database = await Database.open(urls.program, DatabaseLimits(connections=1, statement_s=5, lock_s=10), "test")
    try:
        with pytest.raises(DatabaseFault):
            async with database.connection() as connection:
                await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        async with database.connection() as connection:
            assert await connection.fetchval(LOCKS) == 0
    finally:
        await database.close()
