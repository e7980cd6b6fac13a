"""The keyring: a pool's data keys in memory, so that sealing and unsealing never waits.

The database has wrapped data keys; the master key comes from outside. Its source is asked again whenever an unknown
master key has wrapped a data key. The newest data key seals. A loaded key is kept: what was read just before a rotation
can still be unsealed after it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.faults import SecretsFault
from tidemill.core.ids import Ids
from tidemill.core.operations import sealed_values
from tidemill.core.operations.master_keys import MasterKey
from tidemill.core.operations.sealed_values import DataKey
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query

MasterKeys = Callable[[], Awaitable[Sequence[MasterKey]]]
"""Asks the source of master keys. The first one wraps, the others only unwrap."""
RandomBytes = Callable[[int], bytes]


@dataclass(frozen=True)
class SealedColumn:
    """A column whose values are sealed, each bound to its row, which has a UUID.

    Each such column has a companion `<column>_key`, which the migration of data keys explains.
    """

    table: str
    column: str
    id_column: str = "id"

    def row(self, row_id: UUID) -> str:
        """What a value is bound to."""
        return f"{self.table}.{self.column}:{row_id}"


SEALED: tuple[SealedColumn, ...] = (
    SealedColumn("account_totp", "secret", "account_id"),
    SealedColumn("mail", "parameters"),
    SealedColumn("mailed_token", "code"),
    SealedColumn("pool_identity", "seed"),
    SealedColumn("signing_key", "private"),
    SealedColumn("verification_key", "private"),
)
"""Every sealed column: a rotation seals them anew. A new column gets a line here."""


@dataclass(frozen=True)
class WrappedKey:
    """A data key as the database stores it."""

    id: UUID
    wrapped: bytes
    master_id: str
    current: bool


_LIST = Query("operations/keyring/list", WrappedKey)
_ADD = Query("operations/keyring/add")


class Keyring:
    """Seals and unseals. Every process has a keyring, over the same data keys."""

    def __init__(self, database: Database, masters: MasterKeys, random_bytes: RandomBytes) -> None:
        self._database = database
        self._ask_for_masters = masters
        self._random_bytes = random_bytes
        self._masters: Sequence[MasterKey] = ()
        self._keys: dict[UUID, DataKey] = {}
        self._current: DataKey | None = None
        self._refreshing = asyncio.Lock()

    @classmethod
    async def open(
        cls, database: Database, masters: MasterKeys, *, ids: Ids, now: Instant, random_bytes: RandomBytes
    ) -> Self:
        """Load every data key; make the first one if there is none. A fault if one of them cannot be unwrapped."""
        keyring = cls(database, masters, random_bytes)
        await keyring.refresh()
        if keyring._current is None:
            async with database.connection() as connection:
                await keyring.add_data_key(connection, ids, now)
            await keyring.refresh()
        return keyring

    @property
    def masters(self) -> Sequence[MasterKey]:
        return self._masters

    @property
    def current(self) -> DataKey:
        """The data key that seals."""
        assert self._current, "an opened keyring has a key"
        return self._current

    def seal(self, plain: bytes, *, row: str) -> bytes:
        """Seal a value for its row, such as `mail.parameters:0190…`."""
        return sealed_values.seal(self.current, plain, row=row, nonce=self._random_bytes(sealed_values.NONCE_BYTES))

    def unseal(self, sealed: bytes, *, row: str) -> bytes:
        """Unseal a value of this row. A fault if it belongs to another row, or if its data key is not loaded."""
        key = self._keys.get(sealed_values.sealed_by(sealed) or self.current.id)
        if key is None:
            raise SecretsFault(
                f"The secret in {row} was sealed with a data key that is not in this pool's database: if it was made "
                "this moment, try again; if not, restore the database from a backup, or set the secret anew."
            )
        return sealed_values.unseal(key, sealed, row=row)

    async def unseal_fresh(self, sealed: bytes, *, row: str) -> bytes:
        """Like `unseal`, for values that another process may have sealed with a key it has just made."""
        key_id = sealed_values.sealed_by(sealed)
        if key_id and key_id not in self._keys:
            await self.refresh()
        return self.unseal(sealed, row=row)

    async def refresh(self) -> None:
        """Load the keys that other processes have made. A key that cannot be unwrapped is a fault, after the others are
        loaded."""
        async with self._refreshing:
            async with self._database.connection() as connection:
                wrapped_keys = await data_keys(connection)
            if not self._masters or self._unknown_masters(wrapped_keys):
                self._masters = await self._ask_for_masters()
            by_id = {master.id: master for master in self._masters}
            for key in wrapped_keys:
                if key.id not in self._keys and key.master_id in by_id:
                    self._keys[key.id] = sealed_values.unwrap(by_id[key.master_id], key.id, key.wrapped)
                if key.current and key.id in self._keys:
                    self._current = self._keys[key.id]
            if unknown := self._unknown_masters(wrapped_keys):
                raise SecretsFault(missing_words(sorted(unknown)))

    def wrapped(self, key: DataKey) -> dict[str, object]:
        """The columns of a data key, wrapped by the first master key."""
        master = self._masters[0]
        nonce = self._random_bytes(sealed_values.NONCE_BYTES)
        return {"wrapped": sealed_values.wrap(master, key, nonce=nonce), "master_id": master.id}

    async def add_data_key(self, connection: Connection, ids: Ids, now: Instant) -> None:
        """Make a data key, unless there is a current one. It counts once it is loaded."""
        key = DataKey(ids.new(now), self._random_bytes(sealed_values.KEY_BYTES))
        await _ADD.run(connection, id=key.id, now=now, **self.wrapped(key))

    def opened(self, key_id: UUID) -> DataKey:
        """A data key that was loaded."""
        return self._keys[key_id]

    def _unknown_masters(self, wrapped_keys: Sequence[WrappedKey]) -> set[str]:
        """The master keys that we need and lack."""
        known = {master.id for master in self._masters}
        return {key.master_id for key in wrapped_keys if key.id not in self._keys} - known


async def data_keys(connection: Connection) -> Sequence[WrappedKey]:
    """Every data key of the pool, oldest first."""
    return await _LIST.rows(connection)


def missing_words(master_ids: Sequence[str]) -> str:
    """What to do about master keys that a database needs and nobody gave."""
    names = " and ".join(master_ids)
    return (
        f"This database's secrets were sealed under the master key {names}, which is not among the given ones. Bring "
        "the pool's own master key: the file master.key of its old home (after a rotation, an older key is in "
        "master.key.old), or what secrets.master_key or secrets.master_key_command gave. Backups of the database do "
        "not contain it."
    )
