"""The second factor of accounts: a sealed secret, the step of the last code used, and recovery codes as hashes."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.accounts.events import RecoveryCodeUsed, SecondFactorChanged
from tidemill.core.accounts.second_factor import (
    SecondFactorRefusal,
    is_time_code,
    matching_step,
    normal_code,
    recovery_sha256,
)
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.store.events import events
from tidemill.store.operations.keyring import Keyring
from tidemill.store.query import Connection, Query


class _SecretRow(NamedTuple):
    secret: bytes
    used_step: int
    on_since: Instant | None


_BEGIN = Query("accounts/second_factor/begin", UUID)
_FIND = Query("accounts/second_factor/find", _SecretRow)
_USE_STEP = Query("accounts/second_factor/use_step", UUID)
_REMOVE = Query("accounts/second_factor/remove", UUID)
_CLEAR_CODES = Query("accounts/second_factor/clear_codes")
_ADD_CODES = Query("accounts/second_factor/add_codes")
_USE_CODE = Query("accounts/second_factor/use_code", UUID)
_CODES_LEFT = Query("accounts/second_factor/codes_left", int)


async def begin(
    connection: Connection, account_id: UUID, secret: bytes, keyring: Keyring
) -> SecondFactorRefusal | None:
    """Store a secret, which counts once the owner has entered a code of it."""
    sealed = keyring.seal(secret, row=_row(account_id))
    begun = await _BEGIN.row(connection, account_id=account_id, secret=sealed)
    return None if begun else SecondFactorRefusal.SECOND_FACTOR_ON


async def switch_on(
    transaction: Connection,
    account_id: UUID,
    code: str,
    recovery_codes: Sequence[str],
    *,
    keyring: Keyring,
    ids: Ids,
    now: Instant,
) -> SecondFactorRefusal | None:
    """Switch the second factor on with the first right code; then the recovery codes are valid, too."""
    row = await _FIND.row(transaction, account_id=account_id)
    if row is None:
        return SecondFactorRefusal.SECOND_FACTOR_OFF
    if row.on_since is not None:
        return SecondFactorRefusal.SECOND_FACTOR_ON
    if not await _use_time_code(transaction, account_id, code, keyring, now):
        return SecondFactorRefusal.CODE_WRONG
    await _ADD_CODES.run(
        transaction, account_id=account_id, sha256s=[recovery_sha256(recovery_code) for recovery_code in recovery_codes]
    )
    changed = SecondFactorChanged(account_id, "on", f"account:{account_id}")
    await events.append(transaction, [changed], ids, now)
    return None


async def use(transaction: Connection, account_id: UUID, code: str, keyring: Keyring, ids: Ids, now: Instant) -> bool:
    """Whether a code of the authenticator or a recovery code is right. A right code is used up."""
    code = normal_code(code)
    if is_time_code(code):
        return await _use_time_code(transaction, account_id, code, keyring, now)
    if not await _USE_CODE.row(transaction, account_id=account_id, sha256=recovery_sha256(code)):
        return False
    used = RecoveryCodeUsed(account_id, await codes_left(transaction, account_id))
    await events.append(transaction, [used], ids, now)
    return True


async def renew_codes(
    transaction: Connection, account_id: UUID, recovery_codes: Sequence[str], ids: Ids, now: Instant
) -> SecondFactorRefusal | None:
    row = await _FIND.row(transaction, account_id=account_id)
    if row is None or row.on_since is None:
        return SecondFactorRefusal.SECOND_FACTOR_OFF
    await _CLEAR_CODES.run(transaction, account_id=account_id)
    await _ADD_CODES.run(
        transaction, account_id=account_id, sha256s=[recovery_sha256(recovery_code) for recovery_code in recovery_codes]
    )
    changed = SecondFactorChanged(account_id, "recovery codes", f"account:{account_id}")
    await events.append(transaction, [changed], ids, now)
    return None


async def remove(
    transaction: Connection, account_id: UUID, *, by: str, ids: Ids, now: Instant
) -> SecondFactorRefusal | None:
    if not await _REMOVE.row(transaction, account_id=account_id):
        return SecondFactorRefusal.SECOND_FACTOR_OFF
    await events.append(transaction, [SecondFactorChanged(account_id, "off", by)], ids, now)
    return None


async def erase(transaction: Connection, account_id: UUID) -> None:
    """Delete the second factor, whether it is on or not."""
    await _REMOVE.run(transaction, account_id=account_id)


async def codes_left(connection: Connection, account_id: UUID) -> int:
    return await _CODES_LEFT.only(connection, account_id=account_id)


async def _use_time_code(transaction: Connection, account_id: UUID, code: str, keyring: Keyring, now: Instant) -> bool:
    row = await _FIND.row(transaction, account_id=account_id)
    if row is None:
        return False
    secret = await keyring.unseal_fresh(row.secret, row=_row(account_id))
    step = matching_step(secret, normal_code(code), now, row.used_step)
    return step is not None and bool(await _USE_STEP.row(transaction, account_id=account_id, step=step, now=now))


def _row(account_id: UUID) -> str:
    return f"account_totp.secret:{account_id}"
