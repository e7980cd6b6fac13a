"""The registry of nodes in the database. Every change appends its event in the same transaction.

`owner` limits the answer to one account's nodes: another's node is reported as unknown. Without an owner all nodes are
meant, which is for operators and for nodes themselves. Changes that a node has to know are counted in its wishes:
whoever holds its link compares the count with what it told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import Event
from tidemill.core.ids import Ids
from tidemill.core.nodes.events import NodeRemoved, NodeRenamed, NodeRulesChanged, NodeSuspended
from tidemill.core.nodes.life import LifeChange, LifeRefusal, NodeLife, after
from tidemill.core.nodes.node import KnownDevice, Node, NodeRefusal, checked_name, removal_reason
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rule_book import RuleOrigin
from tidemill.core.reasons import checked_reason
from tidemill.core.refusals import Refusal
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class NodeFilter:
    """Which nodes a list is about."""

    owner: UUID | None = None
    name: str | None = None
    removed: bool = False


@dataclass(frozen=True)
class PassHolder:
    """A node that shows its pass: its key and owner, and whether the node is removed or the owner blocked."""

    key: bytes
    account_id: UUID
    removed: bool
    blocked: bool


class _OwnerRow(NamedTuple):
    id: UUID
    address: str | None


_LIST = Query("nodes/node/list", Node)
_LINKED = Query("nodes/node/linked", Node)
_HOUSES = Query("nodes/node/houses", Node)
_FIND = Query("nodes/node/find", Node)
_LOCK = Query("nodes/node/lock")
_LOCK_PRESENCE = Query("nodes/node/lock_presence")
_RENAME = Query("nodes/node/rename")
_SET_RULES = Query("nodes/node/set_rules")
_SET_SUSPENDED = Query("nodes/node/set_suspended")
_REMOVE = Query("nodes/node/remove")
_LEFT = Query("nodes/node/left", bool)
_DEVICES = Query("nodes/node/devices", KnownDevice)
_OWNERS = Query("nodes/node/owners", _OwnerRow)
_CALLER = Query("nodes/node/caller", PassHolder)


async def holder(connection: Connection, node_id: UUID) -> PassHolder | None:
    """The key and owner behind a node's passes."""
    return await _CALLER.row(connection, id=node_id)


async def listed(connection: Connection, filter_: NodeFilter, after_id: UUID | None, limit: int) -> Sequence[Node]:
    """Nodes, newest first."""
    return await _LIST.rows(
        connection, owner=filter_.owner, name=filter_.name, removed=filter_.removed, after=after_id, limit=limit
    )


async def linked(
    connection: Connection, only: Sequence[UUID] | None, after_id: UUID | None, limit: int
) -> Sequence[Node]:
    """Nodes with a link, all or those among `only`, ordered by id."""
    return await _LINKED.rows(connection, only=None if only is None else list(only), after=after_id, limit=limit)


async def houses(connection: Connection, limit: int) -> Sequence[Node]:
    """The house nodes of the pool, online or not."""
    return await _HOUSES.rows(connection, limit=limit)


async def get(connection: Connection, node_id: UUID, owner: UUID | None) -> Node | None:
    return await _FIND.row(connection, id=node_id, owner=owner)


async def devices(connection: Connection, node_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[KnownDevice]]:
    """The devices of these nodes; every node is in the answer."""
    by_node: dict[UUID, list[KnownDevice]] = {node_id: [] for node_id in node_ids}
    for device in await _DEVICES.rows(connection, node_ids=list(node_ids)):
        by_node[device.node_id].append(device)
    return by_node


async def rename(
    transaction: Connection, node_id: UUID, name: str, *, owner: UUID | None, by: str, ids: Ids, now: Instant
) -> Node | Refusal:
    kept = checked_name(name)
    if isinstance(kept, Refusal):
        return kept
    node = await _present(transaction, node_id, owner)
    if isinstance(node, Refusal):
        return node
    await _RENAME.run(transaction, id=node.id, name=kept)
    return await _append_event(transaction, node, NodeRenamed(node.account_id, node.id, kept, by), ids, now)


async def change_rules(
    transaction: Connection,
    node_id: UUID,
    wishes: Mapping[str, object],
    *,
    owner: UUID | None,
    by: str,
    ids: Ids,
    now: Instant,
) -> Node | Refusal:
    """Set rules in the pool, all of them or none. The node is told, and merges them with its own."""
    node = await _present(transaction, node_id, owner)
    if isinstance(node, Refusal):
        return node
    book = rule_book.change(node.book, wishes, by=by, place=RuleOrigin.POOL, now=now)
    if isinstance(book, Refusal):
        return book
    rules = rule_book.book_json(book)
    await _SET_RULES.run(transaction, id=node.id, rules=rules)
    values = {name: rules[name]["value"] for name in sorted(wishes)}
    changed = NodeRulesChanged(node.account_id, node.id, values, RuleOrigin.POOL.value, by)
    return await _append_event(transaction, node, changed, ids, now)


async def remove(
    transaction: Connection, node_id: UUID, reason: str, *, owner: UUID | None, by: str, ids: Ids, now: Instant
) -> Node | Refusal:
    """Remove a node: its identity is no longer valid. Its owner and the node itself need no reason."""
    await _LOCK_PRESENCE.run(transaction, id=node_id)
    node = await _present(transaction, node_id, owner)
    if isinstance(node, Refusal):
        return node
    kept = removal_reason(reason, own=owner is not None or by == f"node:{node.id}")
    if isinstance(kept, Refusal):
        return kept
    assert after(node.life, LifeChange.REMOVED) is NodeLife.DEREGISTERED, "a node that is there can be removed"
    await _REMOVE.run(transaction, id=node.id, reason=kept, now=now)
    removed = NodeRemoved(node.account_id, node.id, node.name, kept, by)
    return await _append_event(transaction, node, removed, ids, now)


async def suspend(
    transaction: Connection, node_id: UUID, *, suspended: bool, reason: str, by: str, ids: Ids, now: Instant
) -> Node | Refusal:
    """Suspend a node, or let it work again, for an operator. It stays connected, so that it can still report."""
    kept = checked_reason(reason)
    if isinstance(kept, Refusal):
        return kept
    node = await _present(transaction, node_id, None)
    if isinstance(node, Refusal):
        return node
    if (node.suspended_reason is not None) == suspended:
        return NodeRefusal.NODE_SUSPENDED if suspended else NodeRefusal.NODE_NOT_SUSPENDED
    await _SET_SUSPENDED.run(transaction, id=node.id, reason=kept if suspended else None)
    return await _append_event(
        transaction, node, NodeSuspended(node.account_id, node.id, suspended, kept, by), ids, now
    )


async def owners(connection: Connection, listed: Sequence[Node]) -> Mapping[UUID, str | None]:
    """The addresses of the accounts that nodes belong to, by account."""
    return dict(await _OWNERS.rows(connection, account_ids=list({node.account_id for node in listed})))


async def left_nodes(connection: Connection, account_id: UUID) -> bool:
    """Whether an account still has nodes."""
    return await _LEFT.only(connection, account_id=account_id)


async def _present(transaction: Connection, node_id: UUID, owner: UUID | None) -> Node | Refusal:
    """The node, locked, if it is the owner's and was not removed."""
    await _LOCK.run(transaction, id=node_id)
    node = await get(transaction, node_id, owner)
    if node is None:
        return NodeRefusal.UNKNOWN_NODE
    return LifeRefusal.NODE_REMOVED if node.life is NodeLife.DEREGISTERED else node


async def _append_event(transaction: Connection, node: Node, event: Event, ids: Ids, now: Instant) -> Node:
    await events.append(transaction, [event], ids, now)
    changed = await get(transaction, node.id, None)
    assert changed, "the node is locked"
    return changed
