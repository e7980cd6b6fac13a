"""The lock on one account: whoever decides on its state waits for whoever is deciding."""

from uuid import UUID

from tidemill.store.query import Connection, Query

_LOCK = Query("accounts/account/lock")


async def lock(transaction: Connection, account_id: UUID) -> None:
    await _LOCK.row(transaction, id=account_id)
