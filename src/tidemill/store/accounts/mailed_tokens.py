"""What letters prove, once: whoever follows a link, or types a code, reads the mail of an address."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from tidemill.core.accounts.account import Language
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.roles import Role
from tidemill.core.clock import Instant
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection, Query

TRIES_MAX = 5
"""A code has eight digits; five tries leave one chance in twenty million."""


class MailedTokenPurpose(StrEnum):
    REGISTER = "register"
    RESET = "reset"
    NEW_ADDRESS = "new_address"


@dataclass(frozen=True)
class MailedToken:
    """What a letter proves. For a registration it contains the new account; otherwise it names the account."""

    id: UUID
    purpose: MailedTokenPurpose
    address: Address
    account_id: UUID | None = None
    password_hash: str | None = None
    roles: frozenset[Role] = frozenset()
    language: Language | None = None


class _TokenRow(NamedTuple):
    id: UUID
    purpose: MailedTokenPurpose
    address: str
    account_id: UUID | None
    password_hash: str | None
    roles: list[str] | None
    language: Language | None


class _CodeRow(NamedTuple):
    id: UUID
    code: bytes


_MAKE = Query("accounts/mailed/make")
_BY_LINK = Query("accounts/mailed/by_link", _TokenRow)
_TRY_CODE = Query("accounts/mailed/try_code", _CodeRow)
_BY_ID = Query("accounts/mailed/by_id", _TokenRow)
_DROP = Query("accounts/mailed/drop")
_FORGET = Query("accounts/mailed/forget", UUID)


async def make(
    transaction: Connection, token: MailedToken, *, link: str, code: str, expires_at: Instant, keyring: Keyring
) -> None:
    await _MAKE.run(
        transaction,
        id=token.id,
        purpose=token.purpose,
        address=token.address.text,
        address_key=token.address.key,
        account_id=token.account_id,
        link_sha256=_sha256(link),
        code=keyring.seal(code.encode(), row=_row(token.id)),
        expires_at=expires_at,
        password_hash=token.password_hash,
        roles=sorted(token.roles) or None,
        language=token.language,
    )


async def use_link(
    transaction: Connection, link: str, purposes: Sequence[MailedTokenPurpose], now: Instant
) -> MailedToken | None:
    row = await _BY_LINK.row(transaction, link_sha256=_sha256(link), purposes=list(purposes), now=now)
    return _token(row) if row else None


async def use_code(
    transaction: Connection,
    address: Address,
    code: str,
    purposes: Sequence[MailedTokenPurpose],
    keyring: Keyring,
    now: Instant,
) -> MailedToken | None:
    """The try counts even if the code is wrong: the caller commits either way."""
    rows = await _TRY_CODE.rows(
        transaction, address_key=address.key, purposes=list(purposes), tries_max=TRIES_MAX, now=now
    )
    for row in rows:
        if hmac.compare_digest(await keyring.unseal_fresh(row.code, row=_row(row.id)), code.strip().encode()):
            used = await _BY_ID.row(transaction, id=row.id)
            return _token(used) if used else None
    return None


async def drop(transaction: Connection, account_id: UUID) -> None:
    """Delete an account's tokens, so that earlier letters prove nothing."""
    await _DROP.run(transaction, account_id=account_id)


async def forget(connection: Connection, before: Instant, limit: int) -> int:
    return len(await _FORGET.rows(connection, before=before, limit=limit))


def _sha256(link: str) -> bytes:
    return hashlib.sha256(link.encode()).digest()


def _row(token_id: UUID) -> str:
    return f"mailed_token.code:{token_id}"


def _token(row: _TokenRow) -> MailedToken:
    return MailedToken(
        row.id,
        row.purpose,
        Address(row.address),
        row.account_id,
        row.password_hash,
        frozenset(map(Role, row.roles or ())),
        row.language,
    )
