"""The key pair by which agents know the pool: made once, when a process first needs it, sealed, and kept for ever.

Its fingerprint is in every join token. Whoever has its seed can pose as the pool, so it leaves the database sealed.
"""

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.signatures import SEED_BYTES, Identity
from tidemill.store.database import Database
from tidemill.store.keyring import Keyring, RandomBytes, SealedColumn
from tidemill.store.query import Connection, Query

_FIND = Query("pool_identity/find")
_MAKE = Query("pool_identity/make")

_SEED = SealedColumn("pool_identity", "seed")


async def load(database: Database, keyring: Keyring, ids: Ids, now: Instant, random_bytes: RandomBytes) -> Identity:
    """The pool's identity. Of processes that need the first one at once, all get the same."""
    async with database.connection() as connection:
        found = await _find(connection, keyring)
        if found is None:
            identity_id = ids.new(now)
            sealed = keyring.seal(random_bytes(SEED_BYTES), row=_SEED.row(identity_id))
            await _MAKE.run(connection, id=identity_id, seed=sealed, now=now)
            found = await _find(connection, keyring)
    assert found, "it was made, by us or by another process"
    return found


async def _find(connection: Connection, keyring: Keyring) -> Identity | None:
    row = await _FIND.row(connection)
    return Identity(await keyring.unseal_fresh(row["seed"], row=_SEED.row(row["id"]))) if row else None
