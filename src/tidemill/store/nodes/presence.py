"""Which process hears which node, and the nodes' beats, written in batches.

A link is a node and a generation. Messages from a link that is no longer the node's change nothing, and whoever holds
the link is told so.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.health.alerts import AlertKind, AlertLimits, AlertSubject, is_alarming
from tidemill.core.nodes.health.events import NodeOnline
from tidemill.core.nodes.health.telemetry import Beat
from tidemill.store.events import events
from tidemill.store.nodes import node_alerts, telemetry
from tidemill.store.nodes.telemetry import NodeBeat
from tidemill.store.query import Connection, Query


class NodeLink(NamedTuple):
    """One link of one node."""

    node_id: UUID
    generation: int


class LinkBeat(NamedTuple):
    link: NodeLink
    at: Instant
    beat: Beat


@dataclass(frozen=True)
class SupersededLink:
    """A link that is no longer the node's: a newer link replaced it, or the node was removed."""

    link: NodeLink
    removed: bool


class _HeardRow(NamedTuple):
    account_id: UUID
    node_id: UUID
    was_offline: bool
    alerted: bool


_HEAR = Query("nodes/presence/hear", _HeardRow)
_SUPERSEDED = Query("nodes/presence/superseded", UUID)
_GONE = Query("nodes/presence/gone")
_FREE = Query("nodes/presence/free", UUID)


async def note_heard(
    transaction: Connection,
    process_id: UUID,
    beats: Sequence[LinkBeat],
    links: Sequence[NodeLink],
    *,
    limits: AlertLimits,
    ids: Ids,
    now: Instant,
) -> Sequence[SupersededLink]:
    """Store the last beat of each link that beat, and note that these links and `links` are alive.

    Returns the links that are no longer the node's.
    """
    every = {*links, *(beat.link for beat in beats)}
    latest = _latest(every)
    newest = {beat.link.node_id: beat for beat in beats if latest[beat.link.node_id] == beat.link}
    rows = await _HEAR.rows(
        transaction,
        process_id=process_id,
        node_ids=list(latest),
        generations=[link.generation for link in latest.values()],
        now=now,
        **telemetry.columns([NodeBeat(id_, heard.at, heard.beat) for id_, heard in newest.items()], ids, now),
    )
    current = {row.node_id: row for row in rows}
    await _back_online(transaction, [row for row in rows if row.was_offline], ids, now)
    beating = ((id_, heard.beat) for id_, heard in newest.items() if id_ in current)
    alerting = {id_: beat for id_, beat in beating if current[id_].alerted or is_alarming(beat, limits)}
    await node_alerts.weigh_beats(transaction, alerting, limits, ids, now)
    return await _superseded(
        transaction, [link for link in every if link.node_id not in current or latest[link.node_id] != link]
    )


async def note_gone(connection: Connection, process_id: UUID, links: Sequence[NodeLink]) -> None:
    """End these links. Those that a newer link or another process has taken over are left alone."""
    await _GONE.run(
        connection,
        process_id=process_id,
        node_ids=[link.node_id for link in links],
        generations=[link.generation for link in links],
    )


async def free(connection: Connection, limit: int) -> int:
    """Free the links of processes that no longer run. Returns how many."""
    return len(await _FREE.rows(connection, limit=limit))


def _latest(links: Iterable[NodeLink]) -> dict[UUID, NodeLink]:
    """The newest link of each node: an older one of the same process no longer counts."""
    latest: dict[UUID, NodeLink] = {}
    for link in links:
        latest[link.node_id] = max(link, latest.get(link.node_id, link))
    return latest


async def _back_online(transaction: Connection, rows: Sequence[_HeardRow], ids: Ids, now: Instant) -> None:
    if not rows:
        return
    back = [NodeOnline(row.account_id, row.node_id) for row in rows]
    await events.append(transaction, back, ids, now)
    await node_alerts.clear(transaction, [(row.node_id, AlertSubject(AlertKind.OFFLINE)) for row in rows], ids, now)


async def _superseded(transaction: Connection, links: Sequence[NodeLink]) -> Sequence[SupersededLink]:
    if not links:
        return ()
    removed = set(await _SUPERSEDED.rows(transaction, node_ids=[link.node_id for link in links]))
    return [SupersededLink(link, link.node_id in removed) for link in sorted(links)]
