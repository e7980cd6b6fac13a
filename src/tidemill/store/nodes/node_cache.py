"""What nodes report to have in their caches: replaced by each report, and read when work is placed."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.bounded_json import Malformed
from tidemill.core.nodes.machine.cache_report import cached_of
from tidemill.store.query import Connection, Query


class _HoldersRow(NamedTuple):
    digest: str
    node_ids: list[UUID]


_REPLACE = Query("nodes/node_cache/replace")
_HOLDERS = Query("nodes/node_cache/holders", _HoldersRow)


async def apply(transaction: Connection, bodies: Sequence[tuple[UUID, bytes]]) -> None:
    """Store the caches that nodes report; the last report of each counts. An unreadable report changes nothing."""
    parsed = {node_id: cached_of(body) for node_id, body in dict(bodies).items()}
    caches = {node_id: digests for node_id, digests in parsed.items() if not isinstance(digests, Malformed)}
    if not caches:
        return
    rows = [(node_id, digest.text) for node_id, digests in caches.items() for digest in digests]
    await _REPLACE.run(
        transaction,
        node_ids=list(caches),
        owners=[node_id for node_id, _ in rows],
        digests=[digest for _, digest in rows],
    )


async def holders(connection: Connection, digests: Collection[Digest]) -> Mapping[Digest, Collection[UUID]]:
    """Which nodes report which of these digests."""
    rows = await _HOLDERS.rows(connection, digests=[digest.text for digest in digests])
    return {Digest(row.digest): row.node_ids for row in rows}
