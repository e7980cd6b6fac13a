"""Nodes for tests, put straight into the tables: whose they are, and the links that a process holds."""

import secrets
from collections.abc import Sequence
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, RecordedEvent
from tidemill.core.ids import Ids
from tidemill.core.nodes.health.alerts import AlertLimits
from tidemill.core.nodes.health.telemetry import Beat, DeviceBeat
from tidemill.store.clock import read_clock
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.nodes.presence import NodeLink

IDS = Ids(secrets.randbits)
LIMITS = AlertLimits(hot_above_c=85, cool_at_c=80, slow_above_ms=10_000, disk_low_mib=10_240)
COOL = Beat(10, 2_000, 500_000, 40, (DeviceBeat(0, 100, 40, 60), DeviceBeat(5, 0, None, None)))


async def now_of(database: Database) -> Instant:
    async with database.connection() as connection:
        return await read_clock(connection)


async def an_owner(database: Database, now: Instant) -> UUID:
    account_id = Ids(secrets.randbits).new(now)  # a test that turns its clock on turns nobody else's
    async with database.connection() as connection:
        await connection.execute(
            "INSERT INTO account (id, address, address_key, password_hash, password_at, roles, language, created_at) "
            "VALUES ($1, $2, $2, '', $3, '{provider}', 'en', $3)",
            account_id,
            f"{account_id}@example.org",
            now,
        )
        await connection.execute(
            "INSERT INTO join_token (id, account_id, name, sha256, house, labels, uses_max, made_at, expires_at) "
            "VALUES ($1, $1, 'test', $2, false, '{}', 10000, $3, $3)",
            account_id,
            account_id.bytes,
            now,
        )
    return account_id


async def nodes_of(
    database: Database, owner_id: UUID, count: int, process_id: UUID | None, now: Instant
) -> Sequence[NodeLink]:
    """So many nodes that were heard now, each with a link of the process if there is one."""
    node_ids = [IDS.new(now) for _ in range(count)]
    async with database.transaction() as connection:
        await connection.execute(
            "INSERT INTO node (id, account_id, key, join_token_id, name, house, life, agent, rules, joined_at) "
            "SELECT id, $2, sha256(id::text::bytea), $2, 'node', false, 'active', 'tidemill/0.1', '{}', $3 "
            "FROM unnest($1::uuid[]) AS id",
            node_ids,
            owner_id,
            now,
        )
        await connection.execute(
            "INSERT INTO presence (node_id, generation, process_id, linked_at, heard_at, heard_listened_us) "
            "SELECT id, 1, $2, CASE WHEN $2::uuid IS NULL THEN NULL ELSE $3::timestamptz END, $3, l.listened_us "
            "FROM unnest($1::uuid[]) AS id, listening AS l",
            node_ids,
            process_id,
            now,
        )
    return [NodeLink(node_id, 1) for node_id in node_ids]


async def remove(database: Database, node_id: UUID, now: Instant) -> None:
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE node SET life = 'deregistered', removed_at = $2, removed_reason = '' WHERE id = $1", node_id, now
        )


async def relinked(database: Database, link: NodeLink, process_id: UUID, now: Instant) -> NodeLink:
    """The node is back over another link, of this process."""
    async with database.connection() as connection:
        await connection.execute(
            "UPDATE presence SET generation = $2, process_id = $3, linked_at = $4, heard_at = $4 WHERE node_id = $1",
            link.node_id,
            link.generation + 1,
            process_id,
            now,
        )
    return NodeLink(link.node_id, link.generation + 1)


async def told(database: Database, *kinds: str) -> Sequence[RecordedEvent]:
    """The events of these kinds that were appended, in their order."""
    async with database.connection() as connection:
        return [event for event in await events.read(connection, LOG_START, 10_000) if event.kind in kinds]
