"""A keyring of a test's own, under a master key that it brings."""

import secrets

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.operations.master_keys import MasterKey
from tidemill.store.database import Database
from tidemill.store.operations.keyring import Keyring


async def keyring_of(database: Database, ids: Ids, now: Instant, *masters: MasterKey) -> Keyring:
    """A keyring over the database's data keys. Without a master key of the caller's, one is made."""
    given = masters or (MasterKey(secrets.token_bytes(32)),)

    async def source() -> tuple[MasterKey, ...]:
        return given

    return await Keyring.open(database, source, ids=ids, now=now, random_bytes=secrets.token_bytes)
