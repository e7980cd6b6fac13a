"""The secrets of a pool: made once, whoever asks first, and kept when the keys that seal them change."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

import pytest

from tests.worlds.databases.keyrings import keyring_of
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.operations.master_keys import MasterKey
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.operations.keyring import Keyring
from tidemill.store.operations.pool_secrets import load_identity, load_verification_key
from tidemill.store.operations.rotation import renew_data_key, reseal

Load = Callable[[Database, Keyring, Ids, Instant], Awaitable[bytes]]


async def seed(database: Database, keyring: Keyring, ids: Ids, now: Instant) -> bytes:
    return (await load_identity(database, keyring, ids, now, secrets.token_bytes)).seed


async def private_key(database: Database, keyring: Keyring, ids: Ids, now: Instant) -> bytes:
    key = await load_verification_key(database, keyring, ids, now, secrets.token_bytes)
    assert str(key.private) not in repr(key)
    return key.private


@pytest.mark.parametrize(
    ("load", "stored_in"),
    [(seed, "SELECT seed FROM pool_identity"), (private_key, "SELECT private FROM verification_key")],
)
async def test_a_pool_has_one_secret_however_many_ask_first_and_it_survives_new_keys(
    urls: DatabaseUrls, database: Database, ids: Ids, load: Load, stored_in: str
) -> None:
    async with database.connection() as connection:
        now = await read_clock(connection)
    master = MasterKey(secrets.token_bytes(32))
    keyring = await keyring_of(database, ids, now, master)
    [found] = set(await asyncio.gather(*(load(database, keyring, ids, now) for _ in range(8))))
    owner = await Database.open(urls.owner, DatabaseLimits(connections=2, statement_s=30, lock_s=10), "owner")
    await renew_data_key(owner, keyring, "test", ids, now)
    async with owner.connection() as connection:
        assert (await reseal(connection, keyring)).count >= 1
        stored = await connection.fetchval(stored_in)
    await owner.close()
    assert found not in stored
    fresh = await keyring_of(database, ids, now, master)
    assert await load(database, fresh, ids, now) == found
