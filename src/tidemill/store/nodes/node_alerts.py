"""Alerts that owners of nodes should see to, in the database. Raising and clearing each append an event."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.health.alerts import (
    LASTS_US,
    Alert,
    AlertKind,
    AlertLimits,
    AlertSubject,
    claimed_twice,
    of_beat,
)
from tidemill.core.nodes.health.events import NodeAlertCleared, NodeAlertRaised
from tidemill.core.nodes.health.telemetry import Beat
from tidemill.store.events import events
from tidemill.store.query import Connection, Query

_CLAIMS_MAX = 1_000


@dataclass(frozen=True)
class OpenAlert:
    """An open alert of a node, and since when."""

    node_id: UUID
    kind: AlertKind
    device: int
    sentence: str
    since: Instant

    @property
    def about(self) -> AlertSubject:
        return AlertSubject(self.kind, self.device)


class _ClaimRow(NamedTuple):
    node_id: UUID
    device: int
    uuid: str


_OPEN = Query("nodes/node_alert/open", OpenAlert)
_RAISE = Query("nodes/node_alert/raise", NodeAlertRaised)
_CLEAR = Query("nodes/node_alert/clear", NodeAlertCleared)
_CLAIMS = Query("nodes/node_alert/claims", _ClaimRow)
_CLAIMS_OF = Query("nodes/node_alert/claims_of", _ClaimRow)
_OVER = Query("nodes/node_alert/over", OpenAlert)
_FORGET = Query("nodes/node_alert/forget")


async def of_nodes(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[OpenAlert]]:
    """The alerts of these nodes, oldest first; nodes without alerts are left out."""
    alerts: dict[UUID, list[OpenAlert]] = defaultdict(list)
    for alert in await _OPEN.rows(connection, node_ids=list(node_ids)):
        alerts[alert.node_id].append(alert)
    return alerts


async def weigh_beats(
    transaction: Connection, beats: Mapping[UUID, Beat], limits: AlertLimits, ids: Ids, now: Instant
) -> None:
    """Raise and clear alerts that follow from these nodes' beats."""
    if not beats:
        return
    open_ = await of_nodes(transaction, list(beats))
    since = {node_id: {alert.about: alert.since for alert in open_.get(node_id, ())} for node_id in beats}
    weighed = {node_id: of_beat(since[node_id], beat, limits, now) for node_id, beat in beats.items()}
    await raise_(transaction, [(id_, alert) for id_, effects in weighed.items() for alert in effects.raised], ids, now)
    await clear(transaction, [(id_, about) for id_, effects in weighed.items() for about in effects.cleared], ids, now)


async def raise_(transaction: Connection, alerts: Sequence[tuple[UUID, Alert]], ids: Ids, now: Instant) -> None:
    """Raise alerts that are not open yet, with one event each. Removed nodes get none."""
    if not alerts:
        return
    raised = await _RAISE.rows(
        transaction,
        node_ids=[node_id for node_id, _ in alerts],
        kinds=[alert.about.kind.value for _, alert in alerts],
        devices=[alert.about.device for _, alert in alerts],
        sentences=[alert.sentence for _, alert in alerts],
        now=now,
    )
    if raised:
        await events.append(transaction, raised, ids, now)


async def clear(transaction: Connection, alerts: Sequence[tuple[UUID, AlertSubject]], ids: Ids, now: Instant) -> int:
    """Clear open alerts, with one event each. Returns how many."""
    if not alerts:
        return 0
    cleared = await _CLEAR.rows(
        transaction,
        node_ids=[node_id for node_id, _ in alerts],
        kinds=[about.kind.value for _, about in alerts],
        devices=[about.device for _, about in alerts],
    )
    if cleared:
        await events.append(transaction, cleared, ids, now)
    return len(cleared)


async def raise_claims_of(transaction: Connection, node_ids: Sequence[UUID], ids: Ids, now: Instant) -> None:
    """Raise an alert for every device of these nodes that another node claims, too. The other gets its alert soon."""
    await _raise_claimed(transaction, await _CLAIMS_OF.rows(transaction, node_ids=list(node_ids)), ids, now)


async def raise_claims(transaction: Connection, ids: Ids, now: Instant) -> None:
    """Raise an alert for every device that two nodes claim, on both nodes; up to a limit per call."""
    await _raise_claimed(transaction, await _CLAIMS.rows(transaction, limit=_CLAIMS_MAX), ids, now)


async def clear_over(transaction: Connection, limit: int, ids: Ids, now: Instant) -> int:
    """Clear device alerts that are over, and delete those of removed nodes. Returns how many were cleared."""
    await _FORGET.run(transaction, limit=limit)
    over = await _OVER.rows(transaction, raised_until=now - LASTS_US, limit=limit)
    return await clear(transaction, [(alert.node_id, alert.about) for alert in over], ids, now)


async def _raise_claimed(transaction: Connection, claims: Sequence[_ClaimRow], ids: Ids, now: Instant) -> None:
    await raise_(transaction, [(claim.node_id, claimed_twice(claim.device, claim.uuid)) for claim in claims], ids, now)
