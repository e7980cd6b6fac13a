"""Two secrets of the pool: each is made when a process first needs it, sealed, and kept for ever.

Agents know the pool by its identity, whose fingerprint is in every join token: whoever has its seed can pose as the
pool. Private results are sealed to the key of the pool's verification: whoever has it can read all of them. So the
database stores both sealed.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.results import KEY_BYTES, ReaderKey
from tidemill.core.signatures import SEED_BYTES, Identity
from tidemill.store.database import Database
from tidemill.store.operations.keyring import Keyring, RandomBytes, SealedColumn
from tidemill.store.query import Connection, Query


class _SealedRow(NamedTuple):
    id: UUID
    sealed: bytes


@dataclass(frozen=True)
class _Secret:
    find: Query[_SealedRow]
    make: Query[Any]
    column: SealedColumn
    length_bytes: int


_IDENTITY = _Secret(
    Query("operations/pool_identity/find", _SealedRow),
    Query("operations/pool_identity/make"),
    SealedColumn("pool_identity", "seed"),
    SEED_BYTES,
)
_VERIFICATION_KEY = _Secret(
    Query("operations/verification_key/find", _SealedRow),
    Query("operations/verification_key/make"),
    SealedColumn("verification_key", "private"),
    KEY_BYTES,
)


async def load_identity(
    database: Database, keyring: Keyring, ids: Ids, now: Instant, random_bytes: RandomBytes
) -> Identity:
    """The key pair by which agents know the pool."""
    return Identity(await _load(_IDENTITY, database, keyring, ids, now, random_bytes))


async def load_verification_key(
    database: Database, keyring: Keyring, ids: Ids, now: Instant, random_bytes: RandomBytes
) -> ReaderKey:
    """The key that private results are sealed to for the pool's verification."""
    return ReaderKey(await _load(_VERIFICATION_KEY, database, keyring, ids, now, random_bytes))


async def _load(
    secret: _Secret, database: Database, keyring: Keyring, ids: Ids, now: Instant, random_bytes: RandomBytes
) -> bytes:
    """Load a secret, or make it. If several processes make it at once, all get the same one."""
    async with database.connection() as connection:
        value = await _find(secret, connection, keyring)
        if value is None:
            row_id = ids.new(now)
            sealed = keyring.seal(random_bytes(secret.length_bytes), row=secret.column.row(row_id))
            await secret.make.run(connection, id=row_id, sealed=sealed, now=now)
            value = await _find(secret, connection, keyring)
    assert value, "it was made, by us or by another process"
    return value


async def _find(secret: _Secret, connection: Connection, keyring: Keyring) -> bytes | None:
    row = await secret.find.row(connection)
    return await keyring.unseal_fresh(row.sealed, row=secret.column.row(row.id)) if row else None
