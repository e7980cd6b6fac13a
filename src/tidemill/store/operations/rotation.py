"""Rotates the keys of a running pool: the steps in the database.

Each step happens as a whole or not at all, and may be repeated, so the next rotation completes an interrupted one.
Foreign keys ensure that no data key is deleted while a value is sealed with it.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.events.log import KeysRotated
from tidemill.core.faults import AlreadyRunning, SecretsFault
from tidemill.core.ids import Ids
from tidemill.store.database import Database, faults
from tidemill.store.events import events
from tidemill.store.operations.keyring import SEALED, Keyring, SealedColumn, data_keys
from tidemill.store.query import Connection, Query

_REWRAP = Query("operations/keyring/rewrap")
_RETIRE = Query("operations/keyring/retire")
_DELETE = Query("operations/keyring/delete", UUID)
_LOCK = Query("operations/keyring/lock", bool)

_BATCH = 500


@dataclass(frozen=True)
class ResealCount:
    """How many values were sealed anew, and the rows that cannot be unsealed."""

    count: int
    unreadable: Sequence[str]


@asynccontextmanager
async def alone(database: Database) -> AsyncIterator[None]:
    """One rotation of a pool at a time, from any machine."""
    connection = await database.own_connection()
    try:
        with faults():
            is_alone = await _LOCK.only(connection)
        if not is_alone:
            raise AlreadyRunning("Another rotation of this pool's keys is running: wait until it is done.")
        yield
    finally:
        await connection.close()


async def rewrap(connection: Connection, keyring: Keyring) -> int:
    """Wrap every data key with the first master key. Returns how many another key had wrapped."""
    first = keyring.masters[0].id
    others = [key for key in await data_keys(connection) if key.master_id != first]
    for key in others:
        await _REWRAP.run(connection, id=key.id, was=key.wrapped, **keyring.wrapped(keyring.opened(key.id)))
    return len(others)


async def renew_data_key(database: Database, keyring: Keyring, by: str, ids: Ids, now: Instant) -> None:
    """Make a new data key, which seals from now on; the one before it only unseals."""
    async with database.transaction() as transaction:
        await _RETIRE.run(transaction, now=now)
        await keyring.add_data_key(transaction, ids, now)
        await events.append(transaction, [KeysRotated(keyring.masters[0].id, by)], ids, now)
    await keyring.refresh()


async def reseal(connection: Connection, keyring: Keyring, columns: Sequence[SealedColumn] = SEALED) -> ResealCount:
    """Seal every value of a retired data key anew, with the current one."""
    count, unreadable = 0, list[str]()
    for column in columns:
        after: UUID | None = None
        while rows := await _reseal_batch(connection, keyring, column, after, unreadable):
            count += len(rows)
            after = rows[-1]
    return ResealCount(count - len(unreadable), unreadable)


async def delete_retired(connection: Connection) -> tuple[int, int]:
    """Delete retired data keys that seal nothing. Returns how many are deleted, and how many are still needed."""
    gone = needed = 0
    for key in await data_keys(connection):
        if key.current:
            continue
        try:
            gone += await _DELETE.row(connection, id=key.id) is not None
        except asyncpg.ForeignKeyViolationError:
            needed += 1
    return gone, needed


async def _reseal_batch(
    connection: Connection, keyring: Keyring, column: SealedColumn, after: UUID | None, unreadable: list[str]
) -> Sequence[UUID]:
    """Seal the next rows anew. Returns their ids; rows that cannot be unsealed stay as they are."""
    async with connection.transaction():
        rows = await connection.fetch(_batch_of(column), after, _BATCH)
        fresh: list[tuple[UUID, bytes]] = []
        for row_id, sealed in rows:
            row_name = column.row(row_id)
            try:
                fresh.append((row_id, keyring.seal(keyring.unseal(sealed, row=row_name), row=row_name)))
            except SecretsFault:
                unreadable.append(row_name)
        await connection.executemany(_replacing(column), fresh)
    return [row_id for row_id, _ in rows]


def _batch_of(column: SealedColumn) -> str:
    """The query for the next rows. Rows that somebody is changing are skipped: their change wins, and the next pass
    checks them.

    The rows stay locked until they are replaced. No lock is waited for, so there is no deadlock.
    """
    return (  # the names are from our own table of columns
        f"SELECT {column.id_column} AS id, {column.column} AS sealed FROM {column.table} "  # noqa: S608
        f"WHERE {column.column}_key IN (SELECT id FROM data_key WHERE retired_at IS NOT NULL) "
        f"AND ({column.id_column} > $1) IS NOT FALSE ORDER BY {column.id_column} LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED"
    )


def _replacing(column: SealedColumn) -> str:
    return f"UPDATE {column.table} SET {column.column} = $2 WHERE {column.id_column} = $1"  # noqa: S608
