"""The lock on one account: decisions about its state happen one after the other."""

from uuid import UUID

from tidemill.store.query import Connection, Query

_LOCK = Query("accounts/account/lock")


async def lock(transaction: Connection, account_id: UUID) -> None:
    await _LOCK.run(transaction, id=account_id)
