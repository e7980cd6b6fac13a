"""Sealing: how a secret is stored so that a copy of the database reveals nothing. Pure: the caller brings the keys.

A master key wraps data keys; a data key seals values (AES-256-GCM both). Sealed bytes are bound to their position: a
value opens only with its own data key and in its own row and column, a data key only under its own id. Failing to open
is a fault, and no fault reveals anything of the content.
"""

from dataclasses import dataclass, field
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tidemill.core.faults import SecretsFault
from tidemill.core.operations.master_keys import MasterKey

KEY_BYTES = 32
NONCE_BYTES = 12

_VERSION = b"\x01"
_ID = slice(1, 17)
_TAG_BYTES = 16


@dataclass(frozen=True)
class DataKey:
    """A key that seals values. The database holds it only wrapped."""

    id: UUID
    key: bytes = field(repr=False)


def seal(key: DataKey, plain: bytes, *, row: str, nonce: bytes) -> bytes:
    """Version, data key's id, nonce, ciphertext with its tag. A nonce is random and never used again."""
    return _VERSION + key.id.bytes + _encrypt(key.key, plain, nonce, _bound_to(key.id, row))


def sealed_by(sealed: bytes) -> UUID | None:
    """The id of the data key that a value names; None for bytes that were never sealed."""
    is_sealed = sealed[:1] == _VERSION and len(sealed) >= _ID.stop + NONCE_BYTES + _TAG_BYTES
    return UUID(bytes=bytes(sealed[_ID])) if is_sealed else None


def unseal(key: DataKey, sealed: bytes, *, row: str) -> bytes:
    """The plain value that was sealed for this row with this key."""
    plain = _decrypt(key.key, sealed[_ID.stop :], _bound_to(key.id, row)) if sealed_by(sealed) == key.id else None
    if plain is None:
        raise SecretsFault(
            f"The secret in {row} does not open: it was changed, cut, or moved there from elsewhere. "
            "Restore it from a backup, or set it anew."
        )
    return plain


def wrap(master: MasterKey, key: DataKey, *, nonce: bytes) -> bytes:
    """A data key as the database may hold it."""
    return _VERSION + _encrypt(master.key, key.key, nonce, _bound_to(key.id, _wrapping(master)))


def unwrap(master: MasterKey, key_id: UUID, wrapped: bytes) -> DataKey:
    """The data key that was wrapped by this master key under this id."""
    is_wrapped = wrapped[:1] == _VERSION and len(wrapped) == 1 + NONCE_BYTES + KEY_BYTES + _TAG_BYTES
    key = _decrypt(master.key, wrapped[1:], _bound_to(key_id, _wrapping(master))) if is_wrapped else None
    if key is None:
        raise SecretsFault(
            f"The data key {key_id} does not open though its master key is here: the table data_key was changed. "
            "Restore the database from a backup."
        )
    return DataKey(key_id, key)


def _wrapping(master: MasterKey) -> str:
    return f"data_key.wrapped:{master.id}"


def _bound_to(key_id: UUID, row: str) -> bytes:
    return _VERSION + key_id.bytes + row.encode()


def _encrypt(key: bytes, plain: bytes, nonce: bytes, bound_to: bytes) -> bytes:
    assert (len(key), len(nonce)) == (KEY_BYTES, NONCE_BYTES), "AES-256-GCM with nonces of 96 bits, nothing less"
    return nonce + AESGCM(key).encrypt(nonce, plain, bound_to)


def _decrypt(key: bytes, encrypted: bytes, bound_to: bytes) -> bytes | None:
    try:
        return AESGCM(key).decrypt(encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], bound_to)
    except InvalidTag:
        return None
