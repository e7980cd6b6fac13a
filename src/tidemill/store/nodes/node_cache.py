"""What nodes have in their caches, by their own word: replaced by each report, and asked for when work is placed."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.bounded_json import Malformed
from tidemill.core.nodes.machine.cache_report import cached_of
from tidemill.store.query import Connection, Query

_REPLACE = Query("nodes/node_cache/replace")
_HOLDERS = Query("nodes/node_cache/holders")


async def apply(transaction: Connection, bodies: Sequence[tuple[UUID, bytes]]) -> None:
    """What nodes say of their caches; of each the last counts. What cannot be understood changes nothing."""
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
    """Which nodes have which of these, as they say."""
    rows = await _HOLDERS.rows(connection, digests=[digest.text for digest in digests])
    return {Digest(row["digest"]): row["node_ids"] for row in rows}
