"""Applies reports of nodes, once each and many nodes at a time, in a handful of statements. Core interprets them.

The number of received reports is written in the transaction of their effects: a repeated report changes nothing. An
unreadable report of one node is refused by itself and never fails another's. Lock order: presence before nodes, each by
id.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt_reports import AttemptReport
from tidemill.core.nodes.health.alerts import of_machine
from tidemill.core.nodes.life import NodeLife
from tidemill.core.nodes.machine.abilities import abilities_bytes
from tidemill.core.nodes.machine.hardware import Machine, facts_of
from tidemill.core.nodes.reports import (
    Fact,
    NodeReport,
    ReportEffects,
    StoredNode,
    events_allowed,
    fresh_reports,
    weigh_reports,
)
from tidemill.core.nodes.rules.rule_book import RuleBook, book_from_json, book_json
from tidemill.core.refusals import Refusal
from tidemill.store.events import events
from tidemill.store.nodes import node_alerts, nodes, telemetry
from tidemill.store.nodes.presence import NodeLink
from tidemill.store.nodes.telemetry import NodeBeat
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class ReportBatch:
    """Reports of one link in order; `first` is the number of the first."""

    link: NodeLink
    first: int
    said: Sequence[NodeReport]


@dataclass(frozen=True)
class ReceivedReports:
    """Reports up to this number are stored. `left` says that the node removed itself with them.

    `others` are new reports of kinds that are unknown here, and `works` those about attempts, to be handed on in the
    same transaction.
    """

    link: NodeLink
    received: int
    left: bool = False
    others: tuple[Fact, ...] = ()
    works: tuple[AttemptReport, ...] = ()
    told_until: Instant | None = field(default=None, compare=False)
    """Until when the node's share of events is used up: see `events_allowed`."""


@dataclass(frozen=True)
class OutdatedLink:
    """The link is no longer the node's, so nothing was changed."""

    link: NodeLink
    removed: bool


@dataclass(frozen=True)
class MissingReports:
    """Reports before these never arrived, so nothing was changed: the first and the last missing number."""

    link: NodeLink
    first: int
    last: int


ReportOutcome: TypeAlias = ReceivedReports | OutdatedLink | MissingReports


@dataclass(frozen=True)
class _Fresh:
    """The new reports of one node and their effects."""

    reported: ReportBatch
    received: int
    told_until: Instant | None
    known: StoredNode
    weighed: ReportEffects


class _PresenceRow(NamedTuple):
    node_id: UUID
    generation: int
    received: int
    told_until: Instant | None
    past_until: Instant | None


class _NodeRow(NamedTuple):
    id: UUID
    account_id: UUID
    life: NodeLife
    machine: dict[str, Any] | None
    carries: dict[str, Any] | None
    rules: dict[str, Any]
    utc_offset_s: int


_LOCK = Query("nodes/node_report/lock", _PresenceRow)
_NODES = Query("nodes/node_report/nodes", _NodeRow)
_CHANGE = Query("nodes/node_report/change")
_DROP_DEVICES = Query("nodes/node_report/drop_devices")
_DEVICES = Query("nodes/node_report/devices")
_RECEIVED = Query("nodes/node_report/received")
_TOLD = Query("nodes/node_report/told")


async def apply(
    transaction: Connection, batches: Sequence[ReportBatch], ids: Ids, now: Instant
) -> Sequence[ReportOutcome]:
    """Apply reports, once each. One answer per batch, in order; a node has one batch at a time."""
    node_ids = sorted({batch.link.node_id for batch in batches})
    assert len(node_ids) == len(batches), "the order of a node's reports is kept by one batch at a time"
    presence = {row.node_id: row for row in await _LOCK.rows(transaction, node_ids=node_ids)}
    stored = {row.id: row for row in await _NODES.rows(transaction, node_ids=node_ids)}
    weighed: list[_Fresh | OutdatedLink | MissingReports] = []
    for batch in batches:
        weighed.append(_weighed(batch, presence.get(batch.link.node_id), stored.get(batch.link.node_id), now))
        await asyncio.sleep(0)  # looking at a large machine takes a millisecond, and others want their turn
    todo = sorted(
        (outcome for outcome in weighed if isinstance(outcome, _Fresh)), key=lambda fresh: fresh.reported.link.node_id
    )
    if todo:
        await _write(transaction, todo, ids, now)
    return [_applied(outcome, now) if isinstance(outcome, _Fresh) else outcome for outcome in weighed]


async def append_bounded(
    transaction: Connection, received: ReceivedReports, caused: Sequence[Event], ids: Ids, now: Instant
) -> None:
    """Append what a node's reports on its attempts caused, as far as its share of events goes. Its row is locked."""
    allowed, until = events_allowed(len(caused), received.told_until, now)
    if allowed:
        await events.append(transaction, caused[:allowed], ids, now)
        await _TOLD.run(transaction, node_id=received.link.node_id, told_until=until)


def _weighed(
    reported: ReportBatch, presence: _PresenceRow | None, node: _NodeRow | None, now: Instant
) -> _Fresh | OutdatedLink | MissingReports:
    link = reported.link
    if presence is None or node is None or node.life is NodeLife.DEREGISTERED:
        return OutdatedLink(link, removed=node is not None)
    if presence.generation != link.generation:
        return OutdatedLink(link, removed=False)
    received = presence.received
    new = fresh_reports(received, reported.first, reported.said)
    if new is None:
        return MissingReports(link, received + 1, reported.first - 1)
    book = book_from_json(node.rules)
    assert isinstance(book, RuleBook), "a book is checked before it is kept"
    known = StoredNode(
        node.account_id,
        link.node_id,
        node.machine,
        book,
        node.utc_offset_s,
        presence.past_until,
        node.carries,
    )
    return _Fresh(reported, received + len(new), presence.told_until, known, weigh_reports(known, new, now))


def _applied(fresh: _Fresh, now: Instant) -> ReceivedReports:
    weighed = fresh.weighed
    allowed, until = events_allowed(len(weighed.events), fresh.told_until, now)
    return ReceivedReports(
        fresh.reported.link,
        fresh.received,
        weighed.leaves is not None,
        weighed.others,
        weighed.attempt_reports,
        until if allowed else fresh.told_until,
    )


async def _write(transaction: Connection, todo: Sequence[_Fresh], ids: Ids, now: Instant) -> None:
    await _change(transaction, todo)
    machines = {fresh.known.node_id: fresh.weighed.machine for fresh in todo if fresh.weighed.machine is not None}
    if machines:
        await _write_devices(transaction, machines, ids, now)
    beats = [NodeBeat(fresh.known.node_id, past.at, past.beat) for fresh in todo for past in fresh.weighed.beats]
    await telemetry.keep(transaction, beats, ids, now)
    shares = [events_allowed(len(fresh.weighed.events), fresh.told_until, now) for fresh in todo]
    new_events = [
        event for fresh, (count, _) in zip(todo, shares, strict=True) for event in fresh.weighed.events[:count]
    ]
    if new_events:
        await events.append(transaction, new_events, ids, now)
    await _RECEIVED.run(
        transaction,
        node_ids=[fresh.known.node_id for fresh in todo],
        receiveds=[fresh.received for fresh in todo],
        told_untils=[until if count else None for count, until in shares],
        past_untils=[fresh.weighed.beats[-1].at if fresh.weighed.beats else None for fresh in todo],
    )
    for fresh in todo:
        if fresh.weighed.leaves is not None:
            await _leave(transaction, fresh.known.node_id, fresh.weighed.leaves, ids, now)


async def _leave(transaction: Connection, node_id: UUID, reason: str, ids: Ids, now: Instant) -> None:
    """The owner removed the node on the machine itself. A reason that cannot be stored does not prevent that."""
    removed = await nodes.remove(transaction, node_id, reason, owner=None, by=f"node:{node_id}", ids=ids, now=now)
    if isinstance(removed, Refusal):
        await nodes.remove(transaction, node_id, "", owner=None, by=f"node:{node_id}", ids=ids, now=now)


async def _change(transaction: Connection, todo: Sequence[_Fresh]) -> None:
    """Write what has changed in the rows of nodes."""
    changed = [(fresh.known.node_id, fresh.weighed) for fresh in todo if _is_change(fresh.weighed)]
    if not changed:
        return
    await _CHANGE.run(
        transaction,
        node_ids=[node_id for node_id, _ in changed],
        machines=[None if effects.machine is None else json.loads(facts_of(effects.machine)) for _, effects in changed],
        carried=[
            None if effects.abilities is None else json.loads(abilities_bytes(effects.abilities))
            for _, effects in changed
        ],
        rules=[None if effects.rules is None else book_json(effects.rules) for _, effects in changed],
        offsets=[effects.utc_offset_s for _, effects in changed],
        wishes=[int(effects.disagrees) for _, effects in changed],
    )


def _is_change(weighed: ReportEffects) -> bool:
    parts = (weighed.machine, weighed.abilities, weighed.rules, weighed.utc_offset_s)
    return weighed.disagrees or any(part is not None for part in parts)


async def _write_devices(transaction: Connection, machines: Mapping[UUID, Machine], ids: Ids, now: Instant) -> None:
    """Write the devices of machines, and raise alerts for those that fail and those that others claim, too."""
    rows = [(node_id, device) for node_id, machine in machines.items() for device in machine.devices]
    devices = [device for _, device in rows]
    same = {
        "owners": [node_id for node_id, _ in rows],
        "indexes": [device.index for device in devices],
        "kinds": [device.kind.value for device in devices],
        "names": [device.name for device in devices],
        "uuids": [device.uuid for device in devices],
        "memories": [device.memory_mib for device in devices],
    }
    await _DROP_DEVICES.run(transaction, node_ids=list(machines), **same)
    await _DEVICES.run(
        transaction,
        **same,
        models=[device.gpu_type.name if device.gpu_type else None for device in devices],
        drivers=[device.driver for device in devices],
        cudas=[device.cuda for device in devices],
        power_limits=[device.power_limit_w for device in devices],
        eccs=[device.ecc for device in devices],
        failings=[device.failing for device in devices],
    )
    raised = [(node_id, alert) for node_id, machine in machines.items() for alert in of_machine(machine)]
    await node_alerts.raise_(transaction, raised, ids, now)
    await node_alerts.raise_claims_of(transaction, list(machines), ids, now)
