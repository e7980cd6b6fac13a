"""How much each account keeps and is uploading. Whoever changes it locks the account's row until the transaction ends,
before any other row of artefacts."""

from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.retention import SMALLEST_BYTES, StorageRoom
from tidemill.store.query import Connection, Query


class _UsageRow(NamedTuple):
    used_bytes: int
    reserved_bytes: int
    leaving_bytes: int


_ROOM = Query("artefacts/artefact/room", _UsageRow)
_COUNT = Query("artefacts/artefact/count")


async def room(transaction: Connection, account_id: UUID, quota_bytes: int = 0) -> StorageRoom:
    """An account's use of storage, locked: nobody else changes it meanwhile."""
    usage = await _ROOM.only(transaction, account_id=account_id, smallest_bytes=SMALLEST_BYTES)
    return StorageRoom(usage.used_bytes, usage.reserved_bytes, quota_bytes, usage.leaving_bytes)


async def count(transaction: Connection, account_id: UUID, *, used: int = 0, reserved: int = 0) -> None:
    """Add to the kept and the reserved bytes; negative numbers subtract."""
    await _COUNT.run(transaction, account_id=account_id, used_bytes=used, reserved_bytes=reserved)
