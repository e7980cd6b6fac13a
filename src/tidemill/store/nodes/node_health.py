"""Which nodes are online, decided by core over how long the pool has listened. Any number of processes may tick.

Each tick compares and sets, so that time counts once however many processes tick. Whoever marks a node's row reports it
as offline, once; the node is online again when it is next heard (`presence.note_heard`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids
from tidemill.core.nodes.health.alerts import offline
from tidemill.core.nodes.health.events import NodeOffline, PoolDeaf, PoolHears
from tidemill.core.nodes.health.silence import (
    HealthRules,
    ListeningState,
    NodesToHear,
    fell_deaf,
    hears_again,
    listen,
    silent_below_us,
)
from tidemill.store.events import events
from tidemill.store.nodes import node_alerts
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class HealthTick:
    """How long the pool has listened now, and which nodes were marked as offline. `listening` is None if another
    process ticked."""

    listening: ListeningState | None
    offline: Sequence[UUID] = ()


class _EarsRow(NamedTuple):
    """The fields of `ListeningState`, then those of `NodesToHear`."""

    listened_us: int
    at: Instant | None
    since: Instant | None
    deaf_since: Instant | None
    nodes: int
    owners: int
    heard_at: Instant | None


class _SilentRow(NamedTuple):
    account_id: UUID
    node_id: UUID
    heard_at: Instant
    heard_listened_us: int


_EARS = Query("nodes/health/ears", _EarsRow)
_LISTEN = Query("nodes/health/listen", Instant)
_SILENT = Query("nodes/health/silent", _SilentRow)


async def tick(transaction: Connection, rules: HealthRules, limit: int, ids: Ids, now: Instant) -> HealthTick:
    """Count the time that we have listened, and mark nodes as offline that were silent for too long of it."""
    row = await _EARS.only(transaction)
    before, ears = ListeningState(*row[:4]), NodesToHear(*row[4:])
    after = listen(before, ears, rules, now)
    if not await _counted(transaction, before, after):
        return HealthTick(None)
    new_events: list[Event] = [PoolDeaf(ears.nodes, ears.owners)] if fell_deaf(before, after) else []
    new_events += [PoolHears()] if hears_again(before, after) else []
    if new_events:
        await events.append(transaction, new_events, ids, now)
    return HealthTick(after, await _mark(transaction, after, rules, limit, ids, now))


async def _counted(transaction: Connection, before: ListeningState, after: ListeningState) -> bool:
    row = await _LISTEN.row(
        transaction,
        listened_us=after.listened_us,
        at=after.at,
        since=after.since,
        deaf_since=after.deaf_since,
        at_before=before.at,
        listened_us_before=before.listened_us,
    )
    return row is not None


async def _mark(
    transaction: Connection, listening: ListeningState, rules: HealthRules, limit: int, ids: Ids, now: Instant
) -> Sequence[UUID]:
    rows = await _SILENT.rows(transaction, silent_below_us=silent_below_us(listening, rules), limit=limit, now=now)
    if not rows:
        return ()
    gone = [NodeOffline(row.account_id, row.node_id, row.heard_at) for row in rows]
    await events.append(transaction, gone, ids, now)
    silence = [(row.node_id, (listening.listened_us - row.heard_listened_us) // SECOND) for row in rows]
    await node_alerts.raise_(transaction, [(node_id, offline(silent_s)) for node_id, silent_s in silence], ids, now)
    return [row.node_id for row in rows]
