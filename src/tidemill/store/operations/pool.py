"""The pool's own row: whether its first operator has set it up, and whether it is a demonstration."""

import hashlib
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.accounts.account import AccountStateRefusal
from tidemill.core.accounts.events import PoolSetUp
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.store.accounts import accounts
from tidemill.store.accounts.accounts import NewAccount
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class PoolState:
    id: UUID
    set_up: bool
    demonstration: bool


_STATE = Query("operations/pool/state", PoolState)
_SET_UP_LINK = Query("operations/pool/set_up_link", UUID)
_SET_UP = Query("operations/pool/set_up", UUID)
_DEMONSTRATE = Query("operations/pool/demonstrate", UUID)


async def state(connection: Connection) -> PoolState:
    return await _STATE.only(connection)


async def new_set_up_link(connection: Connection, token: str) -> bool:
    """Make this token the one that sets the pool up. False if the pool is set up already."""
    return await _SET_UP_LINK.row(connection, sha256=_sha256(token)) is not None


async def set_up(
    transaction: Connection, token: str, operator: NewAccount, ids: Ids, now: Instant
) -> UUID | AccountStateRefusal:
    """Make the first operator's account, for whoever has the link."""
    if not await _SET_UP.row(transaction, sha256=_sha256(token), now=now):
        done = (await state(transaction)).set_up
        return AccountStateRefusal.SET_UP_ALREADY if done else AccountStateRefusal.SET_UP_LINK_WRONG
    account_id = await accounts.make(transaction, operator, ids, now)
    assert isinstance(account_id, UUID), "before the set-up there are no accounts"
    await events.append(transaction, [PoolSetUp(account_id)], ids, now)
    return account_id


async def demonstrate(transaction: Connection, now: Instant) -> bool:
    """Make an unused pool a demonstration, for ever. False if it is in use."""
    return await _DEMONSTRATE.row(transaction, now=now) is not None


def _sha256(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
