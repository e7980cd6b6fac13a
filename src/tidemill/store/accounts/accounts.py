"""Accounts in the database. Every change appends its event in the same transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from tidemill.core.accounts.account import Account, AccountStateRefusal, Language, roles_taken_on
from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.events import (
    AccountBlocked,
    AccountDeleted,
    AccountMade,
    AddressChanged,
    KycChanged,
    PasswordChanged,
    RolesChanged,
)
from tidemill.core.accounts.kyc import DECISIONS, SUBMISSIONS, Kyc, KycRefusal, next_kyc
from tidemill.core.accounts.operator_word import operator_since_start
from tidemill.core.accounts.roles import Role, RolesByRequest
from tidemill.core.accounts.sessions import SessionEnd
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.node import NodeRefusal
from tidemill.core.reasons import checked_reason
from tidemill.core.refusals import Refusal
from tidemill.store.accounts import api_keys, mailed_tokens, second_factors, sessions
from tidemill.store.accounts.account_lock import lock
from tidemill.store.events import events
from tidemill.store.nodes import join_tokens, nodes
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class AccountFilter:
    """Which accounts a list is about."""

    address: Address | None = None
    role: Role | None = None
    kyc: Kyc | None = None
    blocked: bool | None = None


@dataclass(frozen=True)
class NewAccount:
    """The fields of a new account."""

    address: Address
    password_hash: str
    roles: frozenset[Role]
    language: Language


class _AccountRow(NamedTuple):
    id: UUID
    address: str
    password_hash: str
    roles: list[str]
    language: Language
    kyc: Kyc
    kyc_reason: str
    blocked_reason: str | None
    created_at: Instant
    second_factor_since: Instant | None


class _LockedRow(NamedTuple):
    id: UUID
    operates: bool


_FIND = Query("accounts/account/find", _AccountRow)
_LIST = Query("accounts/account/list", _AccountRow)
_MAKE = Query("accounts/account/make", UUID)
_SET_PASSWORD = Query("accounts/account/set_password")
_REHASH = Query("accounts/account/rehash")
_SET_ADDRESS = Query("accounts/account/set_address", UUID)
_SET_LANGUAGE = Query("accounts/account/set_language")
_SET_ROLES = Query("accounts/account/set_roles")
_SET_KYC = Query("accounts/account/set_kyc")
_SET_BLOCKED = Query("accounts/account/set_blocked", UUID)
_DELETE = Query("accounts/account/delete")
_MONEY_LEFT = Query("accounts/account/money_left", bool)
_LOCK_WITH_OPERATORS = Query("accounts/account/lock_with_operators", _LockedRow)


async def find(connection: Connection, address: Address) -> Account | None:
    row = await _FIND.row(connection, address_key=address.key, id=None)
    return _account(row) if row else None


async def get(connection: Connection, account_id: UUID) -> Account | None:
    row = await _FIND.row(connection, address_key=None, id=account_id)
    return _account(row) if row else None


async def listed(connection: Connection, filter_: AccountFilter, after: UUID | None, limit: int) -> Sequence[Account]:
    rows = await _LIST.rows(
        connection,
        address_key=filter_.address and filter_.address.key,
        role=filter_.role,
        kyc=filter_.kyc,
        blocked=filter_.blocked,
        after=after,
        limit=limit,
    )
    return [_account(row) for row in rows]


async def make(transaction: Connection, newcomer: NewAccount, ids: Ids, now: Instant) -> UUID | AccountStateRefusal:
    """Make an account; refused if its address is in use by now."""
    account_id = await _MAKE.row(
        transaction,
        id=ids.new(now),
        address=newcomer.address.text,
        address_key=newcomer.address.key,
        password_hash=newcomer.password_hash,
        roles=sorted(newcomer.roles),
        operator_since=operator_since_start(newcomer.roles),
        language=newcomer.language,
        now=now,
    )
    if account_id is None:
        return AccountStateRefusal.ADDRESS_IN_USE
    await events.append(transaction, [AccountMade(account_id, tuple(sorted(newcomer.roles)))], ids, now)
    return account_id


async def set_password(
    transaction: Connection,
    account_id: UUID,
    password_hash: str,
    *,
    how: str,
    but_session: UUID | None,
    ids: Ids,
    now: Instant,
) -> None:
    """Set a password. Every other session ends, and letters sent before prove nothing any more."""
    await _SET_PASSWORD.run(transaction, id=account_id, password_hash=password_hash, now=now)
    await mailed_tokens.drop(transaction, account_id)
    await sessions.end(transaction, account_id, SessionEnd.PASSWORD_CHANGED, but=but_session, ids=ids, now=now)
    await events.append(transaction, [PasswordChanged(account_id, how)], ids, now)


async def rehash(connection: Connection, account: Account, password_hash: str) -> None:
    await _REHASH.run(connection, id=account.id, password_hash=password_hash, old_hash=account.password_hash)


async def set_address(
    transaction: Connection, account_id: UUID, address: Address, ids: Ids, now: Instant
) -> AccountStateRefusal | None:
    """Set an address. After a refusal the caller rolls back."""
    try:
        changed = await _SET_ADDRESS.row(transaction, id=account_id, address=address.text, address_key=address.key)
    except asyncpg.UniqueViolationError:
        return AccountStateRefusal.ADDRESS_IN_USE  # somebody else took it at this moment
    if not changed:
        return AccountStateRefusal.ADDRESS_IN_USE
    await mailed_tokens.drop(transaction, account_id)
    await events.append(transaction, [AddressChanged(account_id)], ids, now)
    return None


async def set_language(connection: Connection, account_id: UUID, language: Language) -> None:
    await _SET_LANGUAGE.run(connection, id=account_id, language=language)


async def take_on_roles(
    transaction: Connection,
    account_id: UUID,
    wanted: frozenset[Role],
    allowed: RolesByRequest,
    ids: Ids,
    now: Instant,
) -> Account | Refusal:
    """An owner chooses among the roles that the pool lets people take on."""
    account = await locked(transaction, account_id)
    if account is None:
        return AccountStateRefusal.UNKNOWN_PERSON
    roles = roles_taken_on(account, wanted, allowed)
    if isinstance(roles, Refusal):
        return roles
    changed = RolesChanged(account_id, _sorted(roles), "", f"account:{account_id}")
    return await _change_roles(transaction, account, changed, ids, now)


async def give_roles(
    transaction: Connection, account_id: UUID, roles: frozenset[Role], *, reason: str, by: str, ids: Ids, now: Instant
) -> Account | Refusal:
    """An operator decides which roles an account has. The pool keeps at least one operator."""
    kept = checked_reason(reason)
    if isinstance(kept, Refusal):
        return kept
    account = await _unless_last_operator(transaction, account_id, loses=Role.OPERATOR not in roles)
    if isinstance(account, Refusal):
        return account
    return await _change_roles(transaction, account, RolesChanged(account_id, _sorted(roles), kept, by), ids, now)


async def submit_kyc(transaction: Connection, account_id: UUID, ids: Ids, now: Instant) -> Account | Refusal:
    """A provider asks to be verified."""
    submitted = KycChanged(account_id, Kyc.SUBMITTED, "", f"account:{account_id}")
    return await _move_kyc(transaction, submitted, SUBMISSIONS, ids, now)


async def decide_kyc(
    transaction: Connection, account_id: UUID, state: Kyc, *, reason: str, by: str, ids: Ids, now: Instant
) -> Account | Refusal:
    """An operator verifies a provider, or rejects them."""
    kept = checked_reason(reason)
    if isinstance(kept, Refusal):
        return kept
    return await _move_kyc(transaction, KycChanged(account_id, state, kept, by), DECISIONS, ids, now)


async def set_blocked(
    transaction: Connection, account_id: UUID, *, blocked: bool, reason: str, by: str, ids: Ids, now: Instant
) -> Account | Refusal:
    """Block an account or unblock it. A blocked account has no session, its keys and letters do not work, and its nodes
    get no new work; they keep their links, to deliver what they have finished."""
    kept = checked_reason(reason)
    if isinstance(kept, Refusal):
        return kept
    account = await _unless_last_operator(transaction, account_id, loses=blocked)
    if isinstance(account, Refusal):
        return account
    if not await _SET_BLOCKED.row(transaction, id=account_id, reason=kept if blocked else None):
        return AccountStateRefusal.ALREADY_BLOCKED if blocked else AccountStateRefusal.NOT_BLOCKED
    if blocked:
        await mailed_tokens.drop(transaction, account_id)
        await sessions.end(transaction, account_id, SessionEnd.BLOCKED, ids=ids, now=now)
    return await _append_event(transaction, AccountBlocked(account_id, blocked, kept, by), ids, now)


async def delete(transaction: Connection, account_id: UUID, ids: Ids, now: Instant) -> Account | Refusal:
    """Remove who an account belonged to, unless it has money or a node. Its id stays in the books."""
    account = await _unless_last_operator(transaction, account_id, loses=True)
    if isinstance(account, Refusal):
        return account
    if await _MONEY_LEFT.only(transaction, id=account_id):
        return AccountStateRefusal.MONEY_LEFT
    if await nodes.left_nodes(transaction, account_id):
        return NodeRefusal.NODES_LEFT
    await join_tokens.revoke_all(transaction, account_id, by=f"account:{account_id}", ids=ids, now=now)
    await sessions.end(transaction, account_id, SessionEnd.DELETED, ids=ids, now=now)
    await api_keys.revoke_lost_roles(transaction, account_id, (), ids, now)
    await second_factors.erase(transaction, account_id)
    await mailed_tokens.drop(transaction, account_id)
    await _DELETE.run(transaction, id=account_id, now=now)
    await events.append(transaction, [AccountDeleted(account_id)], ids, now)
    return account


async def locked(transaction: Connection, account_id: UUID) -> Account | None:
    """The account, locked until the transaction ends."""
    await lock(transaction, account_id)
    return await get(transaction, account_id)


async def _unless_last_operator(transaction: Connection, account_id: UUID, *, loses: bool) -> Account | Refusal:
    """The account, locked; refused if the pool would lose its last operator."""
    rows = await _LOCK_WITH_OPERATORS.rows(transaction, id=account_id)
    operators = {row.id for row in rows if row.operates}
    account = await get(transaction, account_id)
    if account is None:
        return AccountStateRefusal.UNKNOWN_PERSON
    return AccountStateRefusal.LAST_OPERATOR if loses and operators == {account_id} else account


async def _change_roles(
    transaction: Connection, account: Account, changed: RolesChanged, ids: Ids, now: Instant
) -> Account | Refusal:
    if not changed.roles:
        return AccountStateRefusal.ROLES_MISSING
    if changed.roles == _sorted(account.roles):
        return account
    await _SET_ROLES.run(transaction, id=account.id, roles=changed.roles, now=now)
    await api_keys.revoke_lost_roles(transaction, account.id, changed.roles, ids, now)
    return await _append_event(transaction, changed, ids, now)


async def _move_kyc(
    transaction: Connection, change: KycChanged, table: Mapping[Kyc, frozenset[Kyc]], ids: Ids, now: Instant
) -> Account | Refusal:
    account = await locked(transaction, change.account_id)
    if account is None:
        return AccountStateRefusal.UNKNOWN_PERSON
    state = next_kyc(account.kyc, Kyc(change.state), table)
    if isinstance(state, KycRefusal):
        return state
    await _SET_KYC.run(transaction, id=account.id, kyc=state, reason=change.reason)
    return await _append_event(transaction, change, ids, now)


async def _append_event(
    transaction: Connection, event: RolesChanged | KycChanged | AccountBlocked, ids: Ids, now: Instant
) -> Account:
    await events.append(transaction, [event], ids, now)
    account = await get(transaction, event.account_id)
    assert account, "the account is locked"
    return account


def _sorted(roles: frozenset[Role]) -> tuple[str, ...]:
    return tuple(sorted(roles))


def _account(row: _AccountRow) -> Account:
    return Account(row.id, row.address, row.password_hash, frozenset(map(Role, row.roles)), *row[4:])
