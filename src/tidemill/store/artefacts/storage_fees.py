"""Fees for keeping artefacts, in the database: who is due, what they keep, how they stand."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.retention import SMALLEST_BYTES
from tidemill.core.artefacts.storage_fees import COMMISSION, FeeStanding, KeptArtefact
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger.entries import PostingRefusal, Transfer
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection, Query


class StorageUsage(NamedTuple):
    """What an account keeps and is uploading, and since when it has not paid."""

    used_bytes: int = 0
    reserved_bytes: int = 0
    unpaid_since: Instant | None = None


_USAGE = Query("artefacts/storage_fee/usage", StorageUsage)
_DUE = Query("artefacts/storage_fee/due", UUID)
_STANDING = Query("artefacts/storage_fee/standing", FeeStanding)
_MARK = Query("artefacts/storage_fee/mark")
_KEPT = Query("artefacts/storage_fee/kept", int)
_UNNEEDED = Query("artefacts/storage_fee/unneeded", KeptArtefact)


async def usage(connection: Connection, account_id: UUID) -> StorageUsage:
    """What an account keeps; nothing if it never did."""
    return await _USAGE.row(connection, account_id=account_id) or StorageUsage()


async def due(connection: Connection, free_bytes: int, charged_before: Instant, limit: int) -> Sequence[UUID]:
    """Accounts that are to be charged."""
    return await _DUE.rows(connection, free_bytes=free_bytes, charged_before=charged_before, limit=limit)


async def standing(connection: Connection, account_id: UUID) -> FeeStanding:
    """How an account stands; one that never kept anything owes nothing."""
    return await _STANDING.row(connection, account_id=account_id) or FeeStanding(None, None)


async def mark(transaction: Connection, account_id: UUID, now_stands: FeeStanding) -> None:
    """Note how an account stands. The caller holds its row."""
    await _MARK.run(
        transaction,
        account_id=account_id,
        charged_at=now_stands.charged_at,
        unpaid_since=now_stands.unpaid_since,
    )


async def kept_bytes(connection: Connection, account_id: UUID, results_since: Instant) -> int:
    """What an account keeps, apart from results of its jobs since then."""
    return await _KEPT.only(
        connection, account_id=account_id, results_since=results_since, smallest_bytes=SMALLEST_BYTES
    )


async def unneeded(
    connection: Connection, account_id: UUID, results_since: Instant, limit: int
) -> Sequence[KeptArtefact]:
    """Of that, what nothing needs, oldest first."""
    return await _UNNEEDED.rows(connection, account_id=account_id, results_since=results_since, limit=limit)


async def post(transaction: Connection, fee: Transfer, ids: Ids, now: Instant) -> PostingRefusal | None:
    """Post a fee, or say why not. Locks the ledger, so callers do this late."""
    await ledger.open_accounts(transaction, [COMMISSION], now)
    (outcome,) = await ledger.post(transaction, [fee], ids, now)
    return outcome.refusal
