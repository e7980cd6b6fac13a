"""Sessions and their refresh tokens. Only the hash of a token is stored."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.accounts.events import LoggedIn, SessionMoved, SessionsEnded
from tidemill.core.accounts.roles import Role
from tidemill.core.accounts.sessions import (
    Binding,
    Session,
    SessionEnd,
    SessionOrigin,
    SessionRefusal,
    SessionRules,
    has_moved,
    refresh_outcome,
)
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class SessionHolder:
    """A session together with what its account may do."""

    session: Session
    roles: frozenset[Role]
    blocked: bool


@dataclass(frozen=True)
class _TokenRow(Session):
    used: bool


@dataclass(frozen=True)
class _HolderRow(Session):
    roles: list[str]
    blocked: bool


_BEGIN = Query("accounts/session/begin")
_BY_TOKEN = Query("accounts/session/by_token", _TokenRow)
_ROTATE = Query("accounts/session/rotate")
_ADD_TOKEN = Query("accounts/session/add_token")
_END = Query("accounts/session/end", UUID)
_LIST = Query("accounts/session/list", Session)
_CALLER = Query("accounts/session/caller", _HolderRow)
_FRESHEN = Query("accounts/session/freshen", UUID)
_FORGET = Query("accounts/session/forget", UUID)


async def begin(transaction: Connection, session: Session, refresh_token: str, ids: Ids, now: Instant) -> None:
    await _BEGIN.run(
        transaction,
        id=session.id,
        account_id=session.account_id,
        expires_at=session.expires_at,
        address=session.address,
        user_agent=session.user_agent,
        remember=session.remember,
        second_factor=session.second_factor,
        sha256=_sha256(refresh_token),
        now=now,
    )
    began = LoggedIn(session.account_id, session.id, session.address, session.user_agent, session.second_factor)
    await events.append(transaction, [began], ids, now)


async def rotate(
    transaction: Connection,
    token: str,
    next_token: str,
    device: SessionOrigin,
    *,
    rules: SessionRules,
    ids: Ids,
    now: Instant,
) -> Session | SessionRefusal:
    """Exchange a refresh token for the next one. A refusal may have ended the session: the caller commits anyway."""
    session = await _BY_TOKEN.row(transaction, sha256=_sha256(token))
    if session is None or session.ended_at is not None:
        return SessionRefusal.TOKEN_UNKNOWN if session is None else SessionRefusal.SESSION_OVER
    if why := refresh_outcome(session, rules, device, used_before=session.used, now=now):
        await end(transaction, session.account_id, why, only=session.id, ids=ids, now=now)
        return SessionRefusal.SESSION_OVER
    where = {"address": device.address, "user_agent": device.user_agent}
    await _ROTATE.run(transaction, id=session.id, now=now, **where)
    await _ADD_TOKEN.run(transaction, id=session.id, sha256=_sha256(next_token))
    if rules.binding is Binding.WARN and has_moved(session, device):
        await events.append(transaction, [SessionMoved(session.account_id, session.id, **where)], ids, now)
    return session


async def end(
    transaction: Connection,
    account_id: UUID,
    why: SessionEnd,
    *,
    only: UUID | None = None,
    but: UUID | None = None,
    ids: Ids,
    now: Instant,
) -> Sequence[UUID]:
    """End one session of an account, all but one, or all. Returns which."""
    ended = await _END.rows(transaction, account_id=account_id, why=why, only=only, but=but, now=now)
    if ended:
        await events.append(transaction, [SessionsEnded(account_id, tuple(map(str, ended)), why)], ids, now)
    return ended


async def listed(connection: Connection, account_id: UUID, rules: SessionRules, now: Instant) -> Sequence[Session]:
    return await _LIST.rows(connection, account_id=account_id, now=now, idle_since=Instant(now - rules.idle_us))


async def holder(connection: Connection, session_id: UUID) -> SessionHolder | None:
    row = await _CALLER.row(connection, id=session_id)
    return SessionHolder(row, frozenset(map(Role, row.roles)), row.blocked) if row else None


async def freshen(transaction: Connection, session_id: UUID, *, second_factor: bool, now: Instant) -> bool:
    """Note that the owner has authenticated again."""
    return bool(await _FRESHEN.row(transaction, id=session_id, second_factor=second_factor, now=now))


async def forget(connection: Connection, over_before: Instant, limit: int) -> int:
    return len(await _FORGET.rows(connection, over_before=over_before, limit=limit))


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
