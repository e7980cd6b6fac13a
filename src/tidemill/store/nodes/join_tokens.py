"""Join tokens in the database: only the hash of a token is stored. Admission uses them."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import DAY, Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.events import JoinTokenMade, JoinTokenRevoked
from tidemill.core.nodes.join_tokens import OPEN_MAX, JoinToken, JoinTokenRefusal
from tidemill.store.accounts.account_lock import lock
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


class _RevokedRow(NamedTuple):
    id: UUID
    name: str


_MAKE = Query("nodes/join_token/make")
_LIST = Query("nodes/join_token/list", JoinToken)
_REVOKE = Query("nodes/join_token/revoke", _RevokedRow)
_FORGET = Query("nodes/join_token/forget")


async def make(
    transaction: Connection, token: JoinToken, *, by: str, ids: Ids, now: Instant
) -> JoinToken | JoinTokenRefusal:
    """Store a new token. The account is locked, so that concurrent requests cannot exceed the limit; unused tokens are
    deleted after a day, so that rows do not pile up."""
    await lock(transaction, token.account_id)
    await _FORGET.run(transaction, account_id=token.account_id, over_before=Instant(now - DAY))
    if len(await listed(transaction, token.account_id, now)) >= OPEN_MAX:
        return JoinTokenRefusal.TOO_MANY_JOIN_TOKENS
    await _MAKE.run(
        transaction,
        id=token.id,
        account_id=token.account_id,
        name=token.name,
        sha256=token.sha256,
        house=token.house,
        labels=token.labels,
        uses_max=token.uses_max,
        made_at=token.made_at,
        expires_at=token.expires_at,
    )
    event = JoinTokenMade(token.account_id, token.id, token.name, token.house, token.uses_max, token.expires_at, by)
    await events.append(transaction, [event], ids, now)
    return token


async def listed(connection: Connection, account_id: UUID, now: Instant) -> Sequence[JoinToken]:
    """The open tokens of an account, which still admit machines."""
    return await _LIST.rows(connection, account_id=account_id, now=now)


async def revoke(
    transaction: Connection, account_id: UUID, token_id: UUID, *, by: str, ids: Ids, now: Instant
) -> JoinTokenRefusal | None:
    if not await _revoked(transaction, account_id, token_id, by, ids, now):
        return JoinTokenRefusal.UNKNOWN_JOIN_TOKEN
    return None


async def revoke_all(transaction: Connection, account_id: UUID, *, by: str, ids: Ids, now: Instant) -> None:
    """Revoke all tokens: nobody joins for this account until it makes new ones."""
    await _revoked(transaction, account_id, None, by, ids, now)


async def _revoked(
    transaction: Connection, account_id: UUID, token_id: UUID | None, by: str, ids: Ids, now: Instant
) -> int:
    rows = await _REVOKE.rows(transaction, account_id=account_id, id=token_id, now=now)
    if rows:
        revoked = [JoinTokenRevoked(account_id, row.id, row.name, by) for row in rows]
        await events.append(transaction, revoked, ids, now)
    return len(rows)
