"""The key that private results are sealed to for the pool's verification: made once, sealed, and kept for ever.

Whoever has it can read every private result of the pool, so it leaves the database sealed.
"""

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.results import KEY_BYTES, ReaderKey
from tidemill.store.database import Database
from tidemill.store.keyring import Keyring, RandomBytes, SealedColumn
from tidemill.store.query import Connection, Query

_FIND = Query("verification_key/find")
_MAKE = Query("verification_key/make")

_PRIVATE = SealedColumn("verification_key", "private")


async def load(database: Database, keyring: Keyring, ids: Ids, now: Instant, random_bytes: RandomBytes) -> ReaderKey:
    """The key of the pool's verification. Of processes that need the first one at once, all get the same."""
    async with database.connection() as connection:
        found = await _find(connection, keyring)
        if found is None:
            key_id = ids.new(now)
            sealed = keyring.seal(random_bytes(KEY_BYTES), row=_PRIVATE.row(key_id))
            await _MAKE.run(connection, id=key_id, private=sealed, now=now)
            found = await _find(connection, keyring)
    assert found, "it was made, by us or by another process"
    return found


async def _find(connection: Connection, keyring: Keyring) -> ReaderKey | None:
    row = await _FIND.row(connection)
    return ReaderKey(await keyring.unseal_fresh(row["private"], row=_PRIVATE.row(row["id"]))) if row else None
