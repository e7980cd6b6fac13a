"""What nodes may do with artefacts, by attempt.

Grants are given in batches when attempts are assigned, renewed when a lease is extended, and taken back when attempts
are over; a forgotten grant expires by itself. Lock a grant after its account's sums and before its upload.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.grants import Access, Grant
from tidemill.core.clock import Instant
from tidemill.store.query import Connection, Query


class _GrantRow(NamedTuple):
    """A grant without its digest, which whoever asks knows."""

    attempt_id: UUID
    node_id: UUID
    account_id: UUID
    access: Access
    size_max_bytes: int
    until: Instant


_GIVE = Query("artefacts/artefact_grant/give")
_TAKE_BACK = Query("artefacts/artefact_grant/take_back")
_STOP = Query("artefacts/upload/stop")
_OF_DIGEST = Query("artefacts/artefact_grant/of_digest", _GrantRow)
_OF_RESULT = Query("artefacts/artefact_grant/of_result", _GrantRow)
_LOCK = Query("artefacts/artefact_grant/lock", UUID)
_USE_UP = Query("artefacts/artefact_grant/use_up")
_FORGET = Query("artefacts/artefact_grant/forget", UUID)


async def give(connection: Connection, grants: Sequence[Grant]) -> None:
    """Let nodes read and write. No two grants have the same attempt and digest."""
    await _GIVE.run(
        connection,
        attempt_ids=[grant.attempt_id for grant in grants],
        node_ids=[grant.node_id for grant in grants],
        account_ids=[grant.account_id for grant in grants],
        accesses=[grant.access.value for grant in grants],
        digests=[grant.digest.text if grant.digest else None for grant in grants],
        sizes=[grant.size_max_bytes for grant in grants],
        untils=[grant.until for grant in grants],
    )


async def take_back(transaction: Connection, attempt_ids: Sequence[UUID], now: Instant) -> None:
    """End the grants of attempts that are over: their nodes read nothing more, and their uploads stop."""
    await _TAKE_BACK.run(transaction, attempt_ids=list(attempt_ids))
    await _STOP.run(transaction, attempt_ids=list(attempt_ids), now=now)


async def of_digest(connection: Connection, node_id: UUID, digest: Digest) -> Sequence[Grant]:
    """What a node may read of these bytes."""
    return [Grant(*row, digest) for row in await _OF_DIGEST.rows(connection, node_id=node_id, digest=digest.text)]


async def of_result(connection: Connection, node_id: UUID, attempt_id: UUID) -> Grant | None:
    """What a node may upload for an attempt."""
    row = await _OF_RESULT.row(connection, node_id=node_id, attempt_id=attempt_id)
    return Grant(*row) if row else None


async def still(transaction: Connection, grant: Grant) -> bool:
    """Whether a grant to write is valid; it is locked until the transaction ends."""
    return await _LOCK.row(transaction, node_id=grant.node_id, attempt_id=grant.attempt_id) is not None


async def use_up(transaction: Connection, attempt_id: UUID) -> None:
    """Use up the grant of an attempt whose result has arrived."""
    await _USE_UP.run(transaction, attempt_id=attempt_id)


async def forget(connection: Connection, before: Instant, limit: int) -> int:
    """Delete grants that expired before an instant. Returns how many."""
    return len(await _FORGET.rows(connection, before=before, limit=limit))
