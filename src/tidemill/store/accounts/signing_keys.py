"""The keys that sign access tokens: made now and then, stored sealed, deleted when their last token has expired."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection, Query

_LIST = Query("accounts/signing/list")
_MAKE = Query("accounts/signing/make")
_FORGET = Query("accounts/signing/forget")


@dataclass(frozen=True)
class SigningKey:
    """An Ed25519 key, raw."""

    id: UUID
    private: bytes
    public: bytes
    made_at: Instant


async def listed(connection: Connection, keyring: Keyring) -> Sequence[SigningKey]:
    """All signing keys, newest first."""
    return [
        SigningKey(
            row["id"], await keyring.unseal_fresh(row["private"], row=_row(row["id"])), row["public"], row["made_at"]
        )
        for row in await _LIST.rows(connection)
    ]


async def make(connection: Connection, key: SigningKey, *, unless_since: Instant, keyring: Keyring) -> bool:
    """Store a new key, unless one was made after an instant."""
    row = await _MAKE.row(
        connection,
        id=key.id,
        private=keyring.seal(key.private, row=_row(key.id)),
        public=key.public,
        now=key.made_at,
        unless_since=unless_since,
    )
    return row is not None


async def forget(connection: Connection, made_before: Instant) -> int:
    return len(await _FORGET.rows(connection, made_before=made_before))


def _row(key_id: UUID) -> str:
    return f"signing_key.private:{key_id}"
