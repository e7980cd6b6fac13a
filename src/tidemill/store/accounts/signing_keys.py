"""The keys that sign access tokens: made now and then, stored sealed, deleted when their last token has expired."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class SigningKey:
    """An Ed25519 key, raw."""

    id: UUID
    private: bytes
    public: bytes
    made_at: Instant


_LIST = Query("accounts/signing/list", SigningKey)
_MAKE = Query("accounts/signing/make", UUID)
_FORGET = Query("accounts/signing/forget", UUID)


async def listed(connection: Connection, keyring: Keyring) -> Sequence[SigningKey]:
    """All signing keys, newest first."""
    return [
        replace(sealed, private=await keyring.unseal_fresh(sealed.private, row=_row(sealed.id)))
        for sealed in await _LIST.rows(connection)
    ]


async def make(connection: Connection, key: SigningKey, *, unless_since: Instant, keyring: Keyring) -> bool:
    """Store a new key, unless one was made after an instant."""
    made = await _MAKE.row(
        connection,
        id=key.id,
        private=keyring.seal(key.private, row=_row(key.id)),
        public=key.public,
        now=key.made_at,
        unless_since=unless_since,
    )
    return made is not None


async def forget(connection: Connection, made_before: Instant) -> int:
    return len(await _FORGET.rows(connection, made_before=made_before))


def _row(key_id: UUID) -> str:
    return f"signing_key.private:{key_id}"
