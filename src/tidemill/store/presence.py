"""Which process hears which node, and how nodes are, written in batches.

A link is a node and a generation. What comes from a link that is no longer the node's changes nothing, and whoever
holds it is told so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.alerts import About, AlertKind, AlertLimits, is_alarming
from tidemill.core.nodes.health_events import NodeOnline
from tidemill.core.telemetry import Beat
from tidemill.store import events, node_alerts, telemetry
from tidemill.store.arrays import bigint_array, uuid_array
from tidemill.store.query import Connection, Query
from tidemill.store.telemetry import NodeBeat

_HEAR = Query("presence/hear")
_SUPERSEDED = Query("presence/superseded")
_GONE = Query("presence/gone")
_FREE = Query("presence/free")
_NEWEST = Query("presence/newest")


class Link(NamedTuple):
    """One link of one node."""

    node_id: UUID
    generation: int


class HeardBeat(NamedTuple):
    link: Link
    at: Instant
    beat: Beat


@dataclass(frozen=True)
class Superseded:
    """A link that is no longer the node's: another took its place, or the node was removed."""

    link: Link
    removed: bool


async def heard(
    transaction: Connection,
    process_id: UUID,
    beats: Sequence[HeardBeat],
    links: Sequence[Link],
    *,
    limits: AlertLimits,
    ids: Ids,
    now: Instant,
) -> Sequence[Superseded]:
    """Keep beats, and note that their links and these are alive. Answers the links that are no longer the node's."""
    latest = _latest({*links, *(beat.link for beat in beats)})
    newest = {beat.link: NodeBeat(beat.link.node_id, beat.at, beat.beat) for beat in beats if beat.link in latest}
    rows = await _HEAR.rows(
        transaction,
        process_id=process_id,
        node_ids=uuid_array([link.node_id for link in latest]),
        generations=bigint_array([link.generation for link in latest]),
        now=now,
        **telemetry.columns(list(newest.values())),
    )
    found = {row["node_id"]: row for row in rows}
    ours = {link for link in latest if link.node_id in found}
    kept = [NodeBeat(beat.link.node_id, beat.at, beat.beat) for beat in beats if beat.link in ours]
    await telemetry.keep(transaction, kept, ids, now)
    await _back_online(transaction, [row for row in rows if row["was_offline"]], ids, now)
    telling = {beat.node_id: beat.beat for link, beat in newest.items() if link in ours}
    alerting = {id_: beat for id_, beat in telling.items() if found[id_]["alerted"] or is_alarming(beat, limits)}
    await node_alerts.weigh_beats(transaction, alerting, limits, ids, now)
    return await _superseded(transaction, [link for link in {*links, *(b.link for b in beats)} if link not in ours])


async def gone(connection: Connection, process_id: UUID, links: Sequence[Link]) -> None:
    """These links are over. What was taken over by a newer link or another process stays theirs."""
    await _GONE.run(
        connection,
        process_id=process_id,
        node_ids=uuid_array([link.node_id for link in links]),
        generations=bigint_array([link.generation for link in links]),
    )


async def free(connection: Connection, limit: int) -> int:
    """Free the links of processes that no longer run. Answers how many."""
    return len(await _FREE.rows(connection, limit=limit))


async def newest(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, NodeBeat]:
    """The last beat of each of these nodes that has beaten."""
    rows = await _NEWEST.rows(connection, node_ids=list(node_ids))
    return {row["node_id"]: telemetry.beat_of(row) for row in rows}


def _latest(links: Iterable[Link]) -> set[Link]:
    """Of each node the newest link: an older one of the same process counts no more."""
    found: dict[UUID, Link] = {}
    for link in links:
        found[link.node_id] = max(link, found.get(link.node_id, link))
    return set(found.values())


async def _back_online(transaction: Connection, rows: Sequence[asyncpg.Record], ids: Ids, now: Instant) -> None:
    if not rows:
        return
    back = [NodeOnline(row["account_id"], row["node_id"]) for row in rows]
    await events.append(transaction, back, ids, now)
    await node_alerts.clear(transaction, [(row["node_id"], About(AlertKind.OFFLINE)) for row in rows], ids, now)


async def _superseded(transaction: Connection, links: Sequence[Link]) -> Sequence[Superseded]:
    if not links:
        return ()
    rows = await _SUPERSEDED.rows(transaction, node_ids=[link.node_id for link in links])
    removed = {row["id"] for row in rows}
    return [Superseded(link, link.node_id in removed) for link in sorted(links)]
