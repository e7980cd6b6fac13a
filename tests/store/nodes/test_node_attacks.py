"""What owners can try with nodes of their own: to fill the pool's disk, to escape challenges, to keep others waiting.

Each try is a test; each of them once worked.
"""

import time
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from tests.control.test_loops import parts_of
from tests.store.nodes.test_challenges import HERE, Pool, passed
from tests.worlds.databases.node_rows import COOL, IDS, LIMITS, an_owner, nodes_of, told
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.challenge.figures import LATE_MAX, ChallengeRefusal
from tidemill.core.nodes.challenge.messages import AnswerStep, ChallengeAnswer, ChallengePart, LinkRate
from tidemill.core.nodes.health.telemetry import PastBeat
from tidemill.core.nodes.machine.hardware import FACTS_MAX_BYTES, Device, DeviceKind, EngineVersion, Machine, facts_of
from tidemill.core.nodes.reports import Fact
from tidemill.store.database import Database
from tidemill.store.nodes import node_alerts, node_reports, node_views, presence
from tidemill.store.nodes.node_reports import ReportBatch
from tidemill.store.nodes.presence import LinkBeat, NodeLink


@pytest.fixture
async def pool(database: Database, ids: Ids, tmp_path: Path) -> Pool:
    return Pool(await parts_of(database, ids, tmp_path))


@pytest.fixture
async def owner_id(pool: Pool) -> UUID:
    return await an_owner(pool.database, pool.now)


async def test_answers_that_nobody_counts_are_kept_once_each(pool: Pool, owner_id: UUID) -> None:
    """A node that says the same about ever other places would fill the disk while its round goes on."""
    node = await pool.node(owner_id)
    await pool.tick()
    order = await node.order()
    assert order
    links = ChallengeAnswer(order.challenge, 0, AnswerStep.LINKS, links=(LinkRate(0, 1, 5),) * 256)
    floods = [replace(links, place=place) for place in range(1, 200)]
    floods += [replace(links, part=ChallengePart.MEMORY), replace(links, shown="AAAA" * 10_000)]
    floods += [
        ChallengeAnswer(order.challenge, 0, AnswerStep.CANNOT, place=place, words="No.") for place in range(1, 200)
    ]
    assert set(await node.say(*floods)) == {ChallengeRefusal.CHALLENGE_ANSWER_MALFORMED}
    assert await node.say(links, links) == [None, None]
    assert (await pool.row("SELECT count(*) AS n FROM challenge_answer"))["n"] == 1


async def test_a_machine_that_says_as_much_as_it_may_is_challenged_all_the_same(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    devices = [Device(n, DeviceKind.NVIDIA, "😀" * 60, f"{n:02}" + "😀" * 90, 1, "😀" * 80) for n in range(64)]
    big = Machine(
        "Linux", "6", "x86_64", "A CPU", 8, 64_000, 10**6, tuple(devices), engines=(EngineVersion("x" * 100),) * 8
    )
    assert FACTS_MAX_BYTES - 600 < len(facts_of(big)) <= FACTS_MAX_BYTES
    body = facts_of(big).replace(b',"links":[]', b"").replace(b',"network":{}', b"")
    async with pool.database.transaction() as transaction:
        await node_reports.apply(
            transaction, [ReportBatch(NodeLink(node.id, 1), 1, [Fact("machine", body)])], IDS, pool.now
        )
    await pool.tick()
    assert await node.order()


async def test_owners_who_cannot_be_asked_do_not_stand_before_the_others(pool: Pool) -> None:
    for _ in range(25):
        node = await pool.node(await an_owner(pool.database, pool.now))
        await pool.run("UPDATE node SET machine = '{}' WHERE id = $1", node.id)
    honest = [await pool.node(await an_owner(pool.database, pool.now)) for _ in range(3)]
    for _ in range(3):
        await pool.tick()
    assert all([await node.order() for node in honest])


async def test_beats_that_are_told_later_are_bounded_whatever_is_told(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    hour_ago = pool.now - 3600 * SECOND

    async def tell(first: int, ats: list[int]) -> int:
        past = [PastBeat(Instant(at), COOL) for at in ats]
        async with pool.database.transaction() as transaction:
            await node_reports.apply(transaction, [ReportBatch(NodeLink(node.id, 1), first, past)], IDS, pool.now)
        kept: int = (await pool.row("SELECT count(*) AS n FROM telemetry"))["n"]
        return kept

    assert await tell(1, [hour_ago + second * SECOND for second in range(600)]) == 20
    assert await tell(601, [hour_ago + second * SECOND for second in range(600)]) == 20, "the same hour once more"
    assert await tell(1201, [hour_ago + 600 * SECOND] * 500) == 21
    assert await tell(1701, [hour_ago - DAY]) == 21
    assert await tell(1702, [hour_ago + minute * 60 * SECOND for minute in range(11, 31)]) == 41, "an honest one's"


async def test_a_node_that_beats_without_end_is_kept_as_often_as_others(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    link = NodeLink(node.id, 1)
    for _ in range(100):
        await pool.pass_time(0.5)
        async with pool.database.transaction() as transaction:
            beats = [LinkBeat(link, pool.now, COOL)]
            await presence.note_heard(transaction, HERE, beats, [], limits=LIMITS, ids=IDS, now=pool.now)
    assert (await pool.row("SELECT count(*) AS n FROM telemetry"))["n"] in (5, 6)
    assert (await pool.row("SELECT beat_at FROM presence WHERE node_id = $1", node.id))["beat_at"] == pool.now


@pytest.mark.parametrize("what", ["it is time", "it has another device"])
async def test_nodes_that_come_and_go_do_not_put_off_a_challenge_for_ever(
    pool: Pool, owner_id: UUID, what: str
) -> None:
    """Two nodes that take turns in being away would have the others waited with for as long as they like."""
    node, flapping = await pool.node(owner_id), await pool.node(owner_id)
    await passed(pool, node, flapping)
    await pool.pass_time(3 * DAY / SECOND)
    if what == "it has another device":
        await pool.run("UPDATE node_challenge SET due_at = $1", pool.now + DAY)
        await pool.run("UPDATE device SET measured_at = NULL WHERE node_id = $1", node.id)
    for _ in range(40):
        await pool.run(
            "UPDATE presence SET process_id = NULL, linked_at = NULL, heard_at = $2 WHERE node_id = $1",
            flapping.id,
            pool.now,
        )
        await pool.tick()
        if await node.order():
            return
        await pool.pass_time(40)
    pytest.fail("it was never asked")


async def test_a_node_whose_link_was_lost_while_it_was_timed_is_late_and_not_slow(pool: Pool, owner_id: UUID) -> None:
    """Whoever can cut a cable, or kill a process of the pool, would have every node behind it fail."""
    node = await pool.node(owner_id, life="active")
    await passed(pool, node)
    for times in range(1, LATE_MAX + 1):
        await pool.pass_time(3 * DAY / SECOND)
        await pool.tick()
        order = await node.order()
        assert order
        await pool.pass_time(60)
        await pool.run("UPDATE presence SET linked_at = $2 WHERE node_id = $1", node.id, pool.now)
        await node.say(*node.commitments(order))
        await pool.tick()
        await node.open()
        await pool.tick()
        assert await pool.state(node) == ("failed" if times == LATE_MAX else "expired")
    (event,) = await told(pool.database, "node.challenge_failed")
    assert event.body["codes"] == ["challenge_late", "speed_below_earlier"]


async def test_what_was_shown_of_one_device_does_not_stand_for_another(pool: Pool, owner_id: UUID) -> None:
    """A node that passed with little would claim much as soon as it has."""
    node = await pool.node(owner_id)
    await passed(pool, node)
    claim = Machine("Linux", "6", "x86_64", "A CPU", 8, 64_000, 10**6, (Device(0, DeviceKind.AMD, "X", "u", 9, "d"),))
    async with pool.database.transaction() as transaction:
        said = [ReportBatch(NodeLink(node.id, 1), 1, [Fact("machine", facts_of(claim))])]
        await node_reports.apply(transaction, said, IDS, pool.now)
        assert not (await node_views.readings(transaction, [node.id]))[node.id].challenge_passed


async def test_nodes_without_number_that_claim_the_same_do_not_slow_down_reports(pool: Pool, owner_id: UUID) -> None:
    links = await nodes_of(pool.database, owner_id, 2_000, HERE, pool.now)
    await pool.run(
        "INSERT INTO device (node_id, index, kind, name, uuid, memory_mib, driver) "
        "SELECT n.id, i, 'nvidia', 'x', 'GPU-' || i, 1, 'd' FROM node AS n, generate_series(0, 63) AS i"
    )
    began = time.perf_counter()
    for link in links[:10]:
        async with pool.database.transaction() as transaction:
            await node_alerts.raise_claims_of(transaction, [link.node_id], IDS, pool.now)
    assert (time.perf_counter() - began) / 10 < 0.15
    assert len(await told(pool.database, "node.alert_raised")) == 640, "on their own devices, and on no others"
