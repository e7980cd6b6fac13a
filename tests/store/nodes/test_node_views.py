"""How nodes are shown: why they get no work, and what happened to them, to whom it concerns."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.worlds.databases.node_rows import COOL, IDS, LIMITS, an_owner, nodes_of, now_of
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import EventReader
from tidemill.core.nodes.events import LinkRefused, NodeRenamed
from tidemill.core.nodes.health.telemetry import Beat, DeviceBeat
from tidemill.core.nodes.life import Condition
from tidemill.core.nodes.no_work import NodeSituation, why_no_work
from tidemill.core.nodes.no_work_reasons import NoWorkCause
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.nodes import node_views, nodes, presence
from tidemill.store.nodes.presence import LinkBeat, NodeLink

HERE = UUID(int=7)
HEAT = HeatLimits(85, 80)


@pytest.fixture
async def now(database: Database) -> Instant:
    return await now_of(database)


async def view_of(database: Database, link: NodeLink, oldest: str = "0.1") -> NodeSituation:
    async with database.connection() as connection:
        node = await nodes.get(connection, link.node_id, None)
        assert node
        devices = await nodes.devices(connection, [node.id])
        return (await node_views.views(connection, [node], devices, HEAT, oldest))[node.id]


async def reasons(database: Database, link: NodeLink, now: Instant, oldest: str = "0.1") -> set[NoWorkCause]:
    return {reason.why for reason in why_no_work(await view_of(database, link, oldest), HEAT, now)}


async def hear(database: Database, link: NodeLink, beat: Beat, now: Instant) -> None:
    async with database.transaction() as transaction:
        heard = [LinkBeat(link, now, beat)]
        await presence.note_heard(transaction, HERE, heard, [], limits=LIMITS, ids=IDS, now=now)


def at(temperature_c: int, utilisation_pct: int = 0) -> Beat:
    return replace(COOL, devices=(DeviceBeat(utilisation_pct, 100, temperature_c, 60),))


async def set_up(database: Database, link: NodeLink, now: Instant, **rules: object) -> None:
    """A sound device, a passed challenge, and these rules."""
    async with database.transaction() as transaction:
        await transaction.execute(
            "INSERT INTO device (node_id, index, kind, name, uuid, memory_mib, driver, measured_at) "
            "VALUES ($1, 0, 'nvidia', 'H100', 'A', 1, '1', $2)",
            link.node_id,
            now,
        )
        await transaction.execute(
            "INSERT INTO node_challenge (node_id, due_at, begun_at, passed_at) VALUES ($1, $2, $2, $2)",
            link.node_id,
            now,
        )
        if rules:
            await nodes.change_rules(transaction, link.node_id, rules, owner=None, by="anna", ids=IDS, now=now)


async def test_a_sound_node_has_no_reason_to_get_no_work(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    assert await reasons(database, link, now) == {NoWorkCause.CHALLENGE_MISSING, NoWorkCause.FAILING_DEVICE}, (
        "it has no device yet"
    )
    await set_up(database, link, now)
    await hear(database, link, COOL, now)
    assert await reasons(database, link, now) == set()


async def test_every_reason_that_was_heard_of_is_said(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await set_up(database, link, now, work="drain", power_limit_w=50)
    await hear(database, link, at(90), now)
    async with database.connection() as connection:
        await connection.execute("UPDATE device SET failing = 'Xid 79.' WHERE node_id = $1", link.node_id)
        await connection.execute("UPDATE presence SET offline_since = $2 WHERE node_id = $1", link.node_id, now)
    assert await reasons(database, link, now, oldest="9.9") == {
        NoWorkCause.OFFLINE,
        NoWorkCause.VERSION_NOT_ACCEPTED,
        NoWorkCause.FAILING_DEVICE,
        NoWorkCause.TOO_HOT,
        NoWorkCause.TOO_MUCH_POWER,
        NoWorkCause.DRAINING,
    }
    assert Condition.DEGRADED in (await view_of(database, link)).conditions


async def test_a_node_that_was_hot_stays_so_until_it_has_cooled(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await set_up(database, link, now)
    for temperature_c, is_hot in ((82, False), (86, True), (82, True), (80, False)):
        await hear(database, link, at(temperature_c), now)
        assert (NoWorkCause.TOO_HOT in await reasons(database, link, now)) is is_hot


async def test_whether_a_machine_is_idle_is_left_to_it_unless_its_beat_shows_that_it_is_not(
    database: Database, now: Instant
) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await set_up(database, link, now, only_when_idle={"below_pct": 10, "for_s": 600})
    await hear(database, link, at(40, 5), now)
    assert await reasons(database, link, now) == set()
    await hear(database, link, at(40, 50), now)
    assert await reasons(database, link, now) == {NoWorkCause.NOT_IDLE}


async def test_what_a_node_proved_before_it_was_offline_counts_no_more(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await set_up(database, link, now)
    async with database.connection() as connection:
        await connection.execute("UPDATE presence SET offline_since = $2 WHERE node_id = $1", link.node_id, now)
    await hear(database, link, COOL, Instant(now + SECOND))
    assert await reasons(database, link, now) == {NoWorkCause.CHALLENGE_MISSING}


async def test_why_a_challenge_was_not_passed_is_said_with_its_figures(database: Database, now: Instant) -> None:
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await set_up(database, link, now)
    words = "Device 0, H100, claims 81,559 MiB and could not show what was asked for."
    async with database.connection() as connection:
        await connection.execute("UPDATE node_challenge SET passed_at = NULL, refused = $1", words)
    (reason,) = why_no_work(await view_of(database, link), HEAT, now)
    assert (reason.why, words in reason.sentence) == (NoWorkCause.CHALLENGE_MISSING, True), reason.sentence


async def test_history_is_read_backwards_by_whom_it_concerns(database: Database, now: Instant) -> None:
    owner = await an_owner(database, now)
    link, other = await nodes_of(database, owner, 2, HERE, now)
    for number in range(5):
        async with database.transaction() as transaction:
            told = [NodeRenamed(owner, node.node_id, f"name {number}", "anna") for node in (link, other)]
            refused = LinkRefused("bad_key", "203.0.113.7", link.node_id, 1)
            await events.append(transaction, [*told, refused], IDS, now)

    async with database.connection() as connection:
        mine = EventReader(account_id=owner)
        first = await node_views.history(connection, link.node_id, mine, None, 3)
        rest = await node_views.history(connection, link.node_id, mine, first[-1].cursor, 3)
        assert [event.body["name"] for event in (*first, *rest)] == [f"name {number}" for number in (4, 3, 2, 1, 0)]
        assert len(await node_views.history(connection, link.node_id, EventReader(operator=True), None, 100)) == 10
        for stranger in (EventReader(), EventReader(account_id=UUID(int=9))):
            assert not await node_views.history(connection, link.node_id, stranger, None, 100)


async def test_history_is_found_by_its_index(database: Database, now: Instant) -> None:
    async with database.connection() as connection:
        await connection.execute("SET enable_seqscan = off")
        plan = await connection.fetch(
            "EXPLAIN SELECT * FROM event WHERE subject = $1 AND subject LIKE 'node:%' "
            "ORDER BY generation DESC, transaction DESC, number DESC LIMIT 50",
            f"node:{IDS.new(now)}",
        )
        await connection.execute("RESET enable_seqscan")
    assert "subject_generation_transaction_number_idx" in "\n".join(row[0] for row in plan)
