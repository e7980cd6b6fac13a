"""Login attempts: recorded, counted, and deleted after a while."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tidemill.core.accounts.addresses import Address
from tidemill.core.accounts.events import LoginFailed
from tidemill.core.accounts.lockout import Failures
from tidemill.core.accounts.sessions import SessionOrigin
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


class LoginResult(StrEnum):
    OK = "ok"
    FAILED = "failed"
    CODE_MISSING = "code_missing"
    CODE_WRONG = "code_wrong"
    BLOCKED = "blocked"
    LOCKED = "locked"
    RESET = "reset"


_NOT_TOLD = {LoginResult.OK, LoginResult.LOCKED, LoginResult.RESET}
"""A new session and a new password have events of their own; attempts on a locked account are tallied with other
refusals."""


@dataclass(frozen=True)
class LoginTry:
    """A login attempt as the account's owner sees it."""

    id: UUID
    at: Instant
    address: str
    user_agent: str
    result: LoginResult


_RECORD = Query("accounts/login/record")
_FAILURES = Query("accounts/login/failures", Failures)
_LIST = Query("accounts/login/list", LoginTry)
_IS_NEW_DEVICE = Query("accounts/login/is_new_device", bool)
_FORGET = Query("accounts/login/forget", UUID)
_FORGET_NOBODYS = Query("accounts/login/forget_nobodys", UUID)


async def record(
    transaction: Connection,
    address: Address,
    account_id: UUID | None,
    device: SessionOrigin,
    result: LoginResult,
    *,
    ids: Ids,
    now: Instant,
) -> None:
    await _RECORD.run(
        transaction,
        id=ids.new(now),
        account_id=account_id,
        address_sha256=_sha256(address),
        network=device.network,
        address=device.address,
        user_agent=device.user_agent,
        result=result,
        now=now,
    )
    if result not in _NOT_TOLD:
        await events.append(transaction, [LoginFailed(account_id, device.address, result)], ids, now)


async def failures(
    connection: Connection, address: Address, account_id: UUID | None, device: SessionOrigin, since: Instant
) -> Failures:
    return await _FAILURES.only(
        connection,
        address_sha256=_sha256(address),
        account_id=account_id,
        network=device.network,
        since=since,
    )


async def is_new_device(connection: Connection, account_id: UUID, device: SessionOrigin) -> bool:
    """Whether an account that was used before is used from this device for the first time."""
    return await _IS_NEW_DEVICE.only(
        connection, account_id=account_id, user_agent=device.user_agent, network=device.network
    )


async def listed(connection: Connection, account_id: UUID, after: UUID | None, limit: int) -> Sequence[LoginTry]:
    return await _LIST.rows(connection, account_id=account_id, after=after, limit=limit)


async def forget(connection: Connection, before: Instant, limit: int) -> int:
    return len(await _FORGET.rows(connection, before=before, limit=limit))


async def forget_nobodys(connection: Connection, before: Instant, limit: int) -> int:
    """Delete old attempts at addresses that are nobody's: no owner will look at them."""
    return len(await _FORGET_NOBODYS.rows(connection, before=before, limit=limit))


def _sha256(address: Address) -> bytes:
    return hashlib.sha256(address.key.encode()).digest()
