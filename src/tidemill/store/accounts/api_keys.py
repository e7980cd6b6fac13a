"""API keys. Only the hash and the prefix of a key are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

from tidemill.core.accounts.events import KeyMade, KeyRevoked
from tidemill.core.accounts.keys import KEYS_MAX, ApiKey, KeyRefusal, key_prefix, key_sha256
from tidemill.core.accounts.roles import Role, Scope
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.store.accounts.account_lock import lock
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class KeyHolder:
    """A key together with what its account may do."""

    key: ApiKey
    roles: frozenset[Role]
    blocked: bool


@dataclass(frozen=True)
class _KeyRow:
    id: UUID
    account_id: UUID
    name: str
    role: Role
    scopes: list[str]
    prefix: str
    networks: list[str]
    spending_cap_uc: int | None
    spent_uc: int
    made_at: Instant
    expires_at: Instant | None
    last_used_at: Instant | None
    revoked_at: Instant | None
    successor_id: UUID | None
    first_id: UUID


@dataclass(frozen=True)
class _HolderRow(_KeyRow):
    roles: list[str]
    blocked: bool


class _SpendingRow(NamedTuple):
    spending_cap_uc: int
    spent_uc: int


class _RevokedRow(NamedTuple):
    id: UUID
    name: str


_MAKE = Query("accounts/key/make")
_LIST = Query("accounts/key/list", _KeyRow)
_CALLER = Query("accounts/key/caller", _HolderRow)
_REVOKE = Query("accounts/key/revoke", str)
_REVOKE_LOST_ROLES = Query("accounts/key/revoke_lost_roles", _RevokedRow)
_USED = Query("accounts/key/used")
_SPEND = Query("accounts/key/spend", int)
_SPENDING = Query("accounts/key/spending", _SpendingRow)


async def make(
    transaction: Connection, key: ApiKey, secret: str, ids: Ids, now: Instant, *, replaces: UUID | None = None
) -> ApiKey | KeyRefusal:
    """Store a new key. The account is locked, so that concurrent requests cannot exceed the limit."""
    await lock(transaction, key.account_id)
    if len(await listed(transaction, key.account_id, now)) >= KEYS_MAX:
        return KeyRefusal.TOO_MANY_KEYS
    await _MAKE.run(
        transaction,
        id=key.id,
        account_id=key.account_id,
        name=key.name,
        role=key.role,
        scopes=sorted(key.scopes),
        prefix=key_prefix(secret),
        sha256=key_sha256(secret),
        networks=list(key.networks),
        spending_cap_uc=key.spending_cap_uc,
        first_id=key.first_id,
        expires_at=key.expires_at,
        now=now,
    )
    scopes = tuple(sorted(key.scopes))
    event = KeyMade(key.account_id, key.id, key.name, key_prefix(secret), key.role, scopes, replaces)
    await events.append(transaction, [event], ids, now)
    return replace(key, prefix=key_prefix(secret))


async def rotate(
    transaction: Connection, account_id: UUID, key_id: UUID, secret: str, *, old_until: Instant, ids: Ids, now: Instant
) -> ApiKey | KeyRefusal:
    """Replace a key with a new one of the same kind; the old one works until the overlap ends."""
    await lock(transaction, account_id)
    old = next(iter(await listed(transaction, account_id, now, key_id=key_id)), None)
    if old is None:
        return KeyRefusal.UNKNOWN_KEY
    if old.successor_id is not None:
        return KeyRefusal.KEY_ROTATED
    wanted = replace(old, id=ids.new(now), made_at=now, last_used_at=None, revoked_at=None)
    new_key = await make(transaction, wanted, secret, ids, now, replaces=old.id)
    if isinstance(new_key, ApiKey):
        await _REVOKE.run(transaction, id=old.id, account_id=account_id, at=old_until, successor_id=new_key.id)
    return new_key


async def revoke(transaction: Connection, account_id: UUID, key_id: UUID, ids: Ids, now: Instant) -> KeyRefusal | None:
    name = await _REVOKE.row(transaction, id=key_id, account_id=account_id, at=now, successor_id=None)
    if name is None:
        return KeyRefusal.UNKNOWN_KEY
    await events.append(transaction, [KeyRevoked(account_id, key_id, name)], ids, now)
    return None


async def revoke_lost_roles(
    transaction: Connection, account_id: UUID, roles: Sequence[str], ids: Ids, now: Instant
) -> None:
    """Revoke keys that act in a role other than these: their account no longer has it."""
    rows = await _REVOKE_LOST_ROLES.rows(transaction, account_id=account_id, roles=list(roles), now=now)
    if revoked := [KeyRevoked(account_id, key.id, key.name) for key in rows]:
        await events.append(transaction, revoked, ids, now)


async def listed(
    connection: Connection, account_id: UUID, now: Instant, *, key_id: UUID | None = None
) -> Sequence[ApiKey]:
    """The keys of an account that still work."""
    return [_key(row) for row in await _LIST.rows(connection, account_id=account_id, id=key_id, now=now)]


async def holder(connection: Connection, secret: str | None = None, key_id: UUID | None = None) -> KeyHolder | None:
    """A key by its secret, or by its id."""
    row = await _CALLER.row(connection, sha256=None if secret is None else key_sha256(secret), id=key_id)
    if row is None:
        return None
    return KeyHolder(_key(row), frozenset(map(Role, row.roles)), row.blocked)


async def tell_used(connection: Connection, used: Mapping[UUID, Instant]) -> None:
    await _USED.run(connection, ids=list(used), ats=list(used.values()))


async def spend(transaction: Connection, key_id: UUID, amount_uc: int) -> KeyRefusal | None:
    """Count what is bought with a key, in the transaction that buys it; refused above its cap."""
    assert amount_uc >= 0, "what is given back is no spending"
    spent_uc = await _SPEND.row(transaction, id=key_id, amount_uc=amount_uc)
    return KeyRefusal.SPENDING_CAP_REACHED if spent_uc is None else None


async def spending(connection: Connection, key_id: UUID) -> tuple[int, int]:
    """The cap of a line of keys, and what it has spent."""
    line = await _SPENDING.only(connection, id=key_id)
    return line.spending_cap_uc, line.spent_uc


def _key(row: _KeyRow) -> ApiKey:
    return ApiKey(
        id=row.id,
        account_id=row.account_id,
        name=row.name,
        role=row.role,
        scopes=frozenset(map(Scope, row.scopes)),
        prefix=row.prefix,
        networks=tuple(row.networks),
        spending_cap_uc=row.spending_cap_uc,
        spent_uc=row.spent_uc,
        made_at=row.made_at,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
        revoked_at=row.revoked_at,
        successor_id=row.successor_id,
        first_id=row.first_id,
    )
