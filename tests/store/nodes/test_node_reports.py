"""Reports are applied once, in order, from the link that counts; and what cannot be is refused by itself."""

import asyncio
import json
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.databases.node_rows import COOL, IDS, an_owner, nodes_of, now_of, relinked, remove, told
from tidemill.control.nodes import wire_values
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.jobs.attempt_reports import AttemptLease, ProgressReport
from tidemill.core.nodes.health.alerts import LASTS_US
from tidemill.core.nodes.health.telemetry import PastBeat
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine, Network, facts_of
from tidemill.core.nodes.node import Node
from tidemill.core.nodes.reports import EVENTS_SAVED, DroppedReport, Fact, NodeReport
from tidemill.core.nodes.rules import rule_book
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleOrigin
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, connect
from tidemill.store.nodes import node_alerts, node_reports, nodes, telemetry
from tidemill.store.nodes.node_reports import MissingReports, OutdatedLink, ReceivedReports, ReportBatch, ReportOutcome
from tidemill.store.nodes.presence import NodeLink
from tidemill.wire import messages, spool_reports
from tidemill.wire.errors import ProtocolError

HERE = UUID(int=7)


def gpu(index: int, uuid: str, name: str = "NVIDIA H100 80GB HBM3", failing: str | None = None) -> Device:
    return Device(index, DeviceKind.NVIDIA, name, uuid, 81_559, "550.54", cuda="12.4", failing=failing)


def machine(*devices: Device, **fields: object) -> Machine:
    return replace(Machine("Linux", "6.1", "x86_64", "EPYC", 64, 512_000, 4_000_000, devices), **fields)  # type: ignore[arg-type]


NONSENSE = [
    Fact(kind, body)
    for kind in ("machine", "rules", "clock", "leave", "sandbox", "unheard_of", "", "'; DROP TABLE node; --")
    for body in (
        b"",
        b"\xff",
        b"null",
        b"{}",
        b"[" * 60_000,
        b'{"utc_offset_s": 1e99}',
        b'{"reason": "\\u0000"}',
        json.dumps({"price": {"value": "1", "by": "\x00", "place": "node", "at": 5}}).encode(),
        facts_of(machine(gpu(0, "A"))).replace(b"Linux", b"\\u0000"),
        facts_of(machine(gpu(0, "A"))).replace(b'"Linux"', b'"\\ud800"'),
        b"9" * 5_000,
    )
]


def as_fact(of: Machine) -> Fact:
    return Fact("machine", facts_of(of))


def rules(place: RuleOrigin = RuleOrigin.NODE, at: int = 5, **wishes: object) -> RuleBook:
    book = rule_book.change(RuleBook(), wishes, by="anna", place=place, now=Instant(at))
    assert isinstance(book, RuleBook)
    return book


def as_rules(book: RuleBook) -> Fact:
    return Fact("rules", rule_book.to_json(book))


@pytest.fixture
async def now(database: Database) -> Instant:
    return await now_of(database)


@pytest.fixture
async def link(database: Database, now: Instant) -> NodeLink:
    (made,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    return made


async def apply(database: Database, now: Instant, *batches: ReportBatch) -> list[ReportOutcome]:
    async with database.transaction() as transaction:
        return list(await node_reports.apply(transaction, batches, IDS, now))


async def report(database: Database, now: Instant, link: NodeLink, first: int, *said: NodeReport) -> ReportOutcome:
    (outcome,) = await apply(database, now, ReportBatch(link, first, said))
    return outcome


async def row_of(database: Database, node_id: UUID) -> asyncpg.Record:
    async with database.connection() as connection:
        row = await connection.fetchrow(
            "SELECT n.*, p.received FROM node AS n JOIN presence AS p ON p.node_id = n.id WHERE n.id = $1", node_id
        )
    assert row
    return row


async def uuids_of(database: Database, node_id: UUID) -> list[str]:
    async with database.connection() as connection:
        return [device.uuid for device in (await nodes.devices(connection, [node_id]))[node_id]]


async def alerts_of(database: Database, node_id: UUID) -> list[tuple[str, int]]:
    async with database.connection() as connection:
        found = (await node_alerts.of_nodes(connection, [node_id])).get(node_id, ())
    return [(alert.kind.value, alert.device) for alert in found]


async def test_the_same_reports_twice_change_nothing_twice(database: Database, now: Instant, link: NodeLink) -> None:
    said = (as_fact(machine(gpu(0, "A"))), DroppedReport(damaged=False), PastBeat(Instant(now - DAY), COOL))
    assert await report(database, now, link, 1, *said) == ReceivedReports(link, 3)
    before = await row_of(database, link.node_id)
    assert await report(database, now, link, 1, *said) == ReceivedReports(link, 3)
    assert await report(database, now, link, 2, *said[1:], DroppedReport(damaged=True)) == ReceivedReports(link, 4)
    assert dict(await row_of(database, link.node_id)) == {**before, "received": 4}
    assert len(await told(database, "node.hardware_changed")) == 1
    dropped = [(event.body["full"], event.body["damaged"]) for event in await told(database, "node.reports_dropped")]
    assert dropped == [(1, 0), (0, 1)]
    async with database.connection() as connection:
        (beat,) = await telemetry.recent(connection, link.node_id, None, 10)
    assert (beat.at, beat.beat) == (now - DAY, COOL)


async def test_reports_with_a_gap_change_nothing_and_the_gap_is_named(
    database: Database, now: Instant, link: NodeLink
) -> None:
    await report(database, now, link, 1, DroppedReport(damaged=False))
    before = await row_of(database, link.node_id)
    assert await report(database, now, link, 5, as_fact(machine(gpu(0, "A")))) == MissingReports(link, 2, 4)
    assert await row_of(database, link.node_id) == before


async def test_reports_of_an_old_link_or_a_removed_node_change_nothing(
    database: Database, now: Instant, link: NodeLink
) -> None:
    new = await relinked(database, link, HERE, now)
    before = await row_of(database, link.node_id)
    assert await report(database, now, link, 1, as_fact(machine(gpu(0, "A")))) == OutdatedLink(link, removed=False)
    assert await row_of(database, link.node_id) == before
    await remove(database, link.node_id, now)
    assert await report(database, now, new, 1, as_fact(machine(gpu(0, "A")))) == OutdatedLink(new, removed=True)
    assert await uuids_of(database, link.node_id) == []
    strange = NodeLink(UUID(int=1), 1)
    assert await report(database, now, strange, 1, DroppedReport(damaged=True)) == OutdatedLink(strange, removed=False)


async def test_a_machine_is_kept_and_only_what_changed_is_told(
    database: Database, now: Instant, link: NodeLink
) -> None:
    first = machine(gpu(0, "A"), gpu(1, "B"))
    await report(database, now, link, 1, as_fact(first))
    measured = replace(first, network=Network(down_bps=10**9))
    await report(database, now, link, 2, as_fact(measured), as_fact(measured))
    assert (await row_of(database, link.node_id))["machine"]["network"] == {"down_bps": 10**9}
    assert len(await told(database, "node.hardware_changed")) == 1, "a measured network is no other machine"
    await report(database, now, link, 4, as_fact(replace(measured, devices=(gpu(0, "A"), gpu(1, "C")))))
    assert await uuids_of(database, link.node_id) == ["A", "C"]
    event = (await told(database, "node.hardware_changed"))[-1]
    assert event.body["changed"] == ["devices"]
    await report(database, now, link, 5, as_fact(machine(gpu(0, "C"))))
    assert await uuids_of(database, link.node_id) == ["C"]


async def test_what_a_node_carries_out_is_kept_beside_its_machine(
    database: Database, now: Instant, link: NodeLink
) -> None:
    body = abilities_bytes(NodeAbilities(("script", "matmul"), ("TIME",)))
    await report(database, now, link, 1, as_fact(machine(gpu(0, "A"))), Fact("sandbox", body))
    await report(database, now, link, 3, Fact("sandbox", b"nonsense"))
    async with database.connection() as connection:
        found = await nodes.get(connection, link.node_id, None)
    assert isinstance(found, Node)
    assert found.carries == {"kinds": ["script", "matmul"], "abilities": ["TIME"], "why_not": []}
    assert found.machine is not None


async def test_a_device_that_stays_keeps_what_others_wrote_beside_it(
    database: Database, urls: DatabaseUrls, now: Instant, link: NodeLink
) -> None:
    """What was measured of a device goes only with the device itself."""
    await report(database, now, link, 1, as_fact(machine(gpu(0, "A"), gpu(1, "B"))))
    owner = await connect(urls.owner)
    try:
        await owner.execute("ALTER TABLE device ADD COLUMN measured text")
        await owner.execute("UPDATE device SET measured = 'quick'")
        swapped = machine(replace(gpu(0, "A"), driver="560.1"), gpu(1, "C"))
        await report(database, now, link, 2, as_fact(swapped))
        rows = await owner.fetch("SELECT uuid, driver, measured FROM device ORDER BY index")
    finally:
        await owner.close()
    assert [tuple(row) for row in rows] == [("A", "560.1", "quick"), ("C", "550.54", None)]


async def test_what_cannot_be_is_refused_with_its_figures_and_the_rest_is_taken(
    database: Database, now: Instant, link: NodeLink
) -> None:
    (other,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    impossible = replace(gpu(0, "A"), memory_mib=500_000)
    outcomes = await apply(
        database,
        now,
        ReportBatch(link, 1, (as_fact(machine(impossible)), Fact("clock", b'{"utc_offset_s": 3600}'))),
        ReportBatch(other, 1, (as_fact(machine(gpu(0, "B"))),)),
    )
    assert outcomes == [ReceivedReports(link, 2), ReceivedReports(other, 1)]
    row = await row_of(database, link.node_id)
    assert (row["machine"], row["utc_offset_s"]) == (None, 3600)
    assert await uuids_of(database, other.node_id) == ["B"]
    (event,) = await told(database, "node.facts_refused")
    assert event.body["code"] == "device_memory_implausible"
    assert "500,000 MiB" in event.body["sentence"]


async def test_nonsense_of_some_nodes_never_fails_anothers(database: Database, now: Instant) -> None:
    *bad, good = await nodes_of(database, await an_owner(database, now), len(NONSENSE) + 1, HERE, now)
    batches = [ReportBatch(link, 1, (fact,)) for link, fact in zip(bad, NONSENSE, strict=True)]
    outcomes = await apply(database, now, *batches, ReportBatch(good, 1, (as_fact(machine(gpu(0, "B"))),)))
    assert [outcome.received for outcome in outcomes if isinstance(outcome, ReceivedReports)] == [1] * (
        len(NONSENSE) + 1
    )
    assert await uuids_of(database, good.node_id) == ["B"]
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM device") == 1


async def test_rules_of_node_and_pool_are_merged_and_a_node_that_knows_less_is_told(
    database: Database, now: Instant, link: NodeLink
) -> None:
    await report(database, now, link, 1, as_rules(rules(price=1, work="pause")))
    row = await row_of(database, link.node_id)
    assert row["wishes"] == 0, "the node knows all there is"
    (event,) = await told(database, "node.rules_changed")
    assert event.body["rules"] == {"price": "1", "work": "pause"}
    assert (event.body["place"], event.body["by"]) == ("node", "anna")
    async with database.transaction() as transaction:
        changed = await nodes.change_rules(
            transaction, link.node_id, {"work": "run"}, owner=None, by="operator", ids=IDS, now=now
        )
    assert isinstance(changed, nodes.Node)
    wishes = changed.wishes
    await report(database, now, link, 2, as_rules(rules(price=2, at=9)))
    row = await row_of(database, link.node_id)
    assert row["wishes"] == wishes + 1
    assert {name: entry["value"] for name, entry in row["rules"].items()} == {"price": "2", "work": "run"}
    book = rule_book.book_from_json(row["rules"])
    assert isinstance(book, RuleBook)
    await report(database, now, link, 3, as_rules(book))
    assert (await row_of(database, link.node_id))["wishes"] == wishes + 1, "now both know the same"


async def test_rules_changed_on_both_sides_at_once_are_both_kept(
    database: Database, now: Instant, link: NodeLink
) -> None:
    async def in_the_pool() -> None:
        async with database.transaction() as transaction:
            await nodes.change_rules(
                transaction, link.node_id, {"region": "Oslo"}, owner=None, by="anna", ids=IDS, now=now
            )

    await asyncio.gather(in_the_pool(), report(database, now, link, 1, as_rules(rules(price=3))))
    assert (await row_of(database, link.node_id))["rules"].keys() == {"region", "price"}


async def test_a_device_that_two_nodes_claim_alerts_both_until_one_lets_go(
    database: Database, now: Instant, link: NodeLink
) -> None:
    (thief,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await report(database, now, link, 1, as_fact(machine(gpu(0, "A"), gpu(1, "B"))))
    await report(database, now, thief, 1, as_fact(machine(gpu(0, "B"))))
    assert await alerts_of(database, thief.node_id) == [("device_claimed_twice", 0)]
    async with database.transaction() as transaction:
        await node_alerts.raise_claims(transaction, IDS, now)
    assert await alerts_of(database, link.node_id) == [("device_claimed_twice", 1)]
    await report(database, now, thief, 2, as_fact(machine(gpu(0, "C"))))
    async with database.transaction() as transaction:
        assert await node_alerts.clear_over(transaction, 100, IDS, now) == 0, "an alert lasts a while"
        assert await node_alerts.clear_over(transaction, 100, IDS, Instant(now + LASTS_US)) == 2
    assert await alerts_of(database, link.node_id) == []
    assert len(await told(database, "node.alert_raised", "node.alert_cleared")) == 4


async def test_a_removed_node_claims_nothing_and_its_alerts_go(
    database: Database, now: Instant, link: NodeLink
) -> None:
    (thief,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    await report(database, now, link, 1, as_fact(machine(gpu(0, "A"))))
    await report(database, now, thief, 1, as_fact(machine(gpu(0, "A"))))
    await remove(database, thief.node_id, now)
    async with database.transaction() as transaction:
        await node_alerts.raise_claims(transaction, IDS, now)
        await node_alerts.clear_over(transaction, 100, IDS, Instant(now + LASTS_US))
    assert await alerts_of(database, link.node_id) == await alerts_of(database, thief.node_id) == []


async def test_machines_with_nothing_but_a_processor_do_not_claim_each_others(database: Database, now: Instant) -> None:
    links = await nodes_of(database, await an_owner(database, now), 2, HERE, now)
    processor = Device(0, DeviceKind.CPU, "EPYC", "CPU-0", 1_000, "Linux 6.1")
    await apply(database, now, *(ReportBatch(link, 1, (as_fact(machine(processor)),)) for link in links))
    assert await uuids_of(database, links[0].node_id) == ["CPU-0"]
    assert not await told(database, "node.alert_raised")


async def test_nodes_that_claim_one_device_at_the_same_moment_are_found_by_the_next_look(
    database: Database, now: Instant
) -> None:
    links = await nodes_of(database, await an_owner(database, now), 4, HERE, now)
    await asyncio.gather(*(report(database, now, link, 1, as_fact(machine(gpu(0, "A")))) for link in links))
    async with database.transaction() as transaction:
        await node_alerts.raise_claims(transaction, IDS, now)
        await node_alerts.raise_claims(transaction, IDS, now)
    assert len(await told(database, "node.alert_raised")) == 4


async def test_a_failing_device_is_alerted_until_it_works(database: Database, now: Instant, link: NodeLink) -> None:
    await report(database, now, link, 1, as_fact(machine(gpu(0, "A", failing="Xid 79."))))
    assert await alerts_of(database, link.node_id) == [("failing_device", 0)]
    await report(database, now, link, 2, as_fact(machine(gpu(0, "A"))))
    async with database.transaction() as transaction:
        assert await node_alerts.clear_over(transaction, 100, IDS, Instant(now + LASTS_US)) == 1


@pytest.mark.parametrize("body", [b'{"reason": "sold it"}', b"{}", b"nonsense", b'{"reason": "' + b"x" * 300 + b'"}'])
async def test_a_node_can_leave_whatever_it_says(database: Database, body: bytes) -> None:
    now = await now_of(database)
    (link,) = await nodes_of(database, await an_owner(database, now), 1, HERE, now)
    assert await report(database, now, link, 1, Fact("leave", body)) == ReceivedReports(link, 1, left=True)
    row = await row_of(database, link.node_id)
    assert (row["life"], row["received"]) == ("deregistered", 1)
    assert await report(database, now, link, 2, DroppedReport(damaged=False)) == OutdatedLink(link, removed=True)
    assert len(await told(database, "node.removed")) == 1


async def test_beats_of_another_time_are_left_out(database: Database, now: Instant, link: NodeLink) -> None:
    ats = [0, now - 31 * DAY, now - 29 * DAY, now, now + SECOND, 2**53]
    outcome = await report(database, now, link, 1, *(PastBeat(Instant(at), COOL) for at in ats))
    assert outcome == ReceivedReports(link, len(ats))
    async with database.connection() as connection:
        found = await telemetry.recent(connection, link.node_id, None, 10)
    assert [one.at for one in found] == [now, now - 29 * DAY]


async def test_a_node_that_changes_its_mind_all_the_time_fills_no_log(
    database: Database, now: Instant, link: NodeLink
) -> None:
    for number in range(1, 61):
        await report(database, now, link, number, as_fact(machine(gpu(0, f"device-{number}"))))
    assert len(await told(database, "node.hardware_changed")) == EVENTS_SAVED
    assert await uuids_of(database, link.node_id) == ["device-60"], "what it says last is known all the same"


async def test_fresh_facts_of_other_kinds_are_handed_on_once(database: Database, now: Instant, link: NodeLink) -> None:
    answer = Fact("challenge", b"{}")
    assert await report(database, now, link, 1, answer) == ReceivedReports(link, 1, others=(answer,))
    assert await report(database, now, link, 1, answer) == ReceivedReports(link, 1)


async def test_reports_of_many_nodes_at_once_never_block_each_other(database: Database, now: Instant) -> None:
    links = await nodes_of(database, await an_owner(database, now), 60, HERE, now)
    ways = (links[::-1], links[1::2], links)

    async def many(order: list[NodeLink]) -> None:
        said = (as_fact(machine(gpu(0, "A"))), as_rules(rules(price=1)))
        await apply(database, now, *(ReportBatch(link, 1, said) for link in order))

    await asyncio.wait_for(asyncio.gather(*(many(list(order)) for order in ways)), 30)
    assert len(await told(database, "node.hardware_changed")) == len(links)


def test_what_the_wire_carries_becomes_what_is_kept() -> None:
    beat = messages.BeatMessage(
        1,
        10,
        2_000,
        500_000,
        40,
        [messages.DeviceBeatMessage(0, 100, 40, 60), messages.DeviceBeatMessage(5, 0, None, None)],
    )
    reports: list[messages.Report] = [
        messages.Facts("machine", b"{}"),
        messages.ProgressMessage(b"0" * 16, 1, 5),
        spool_reports.as_facts(spool_reports.PastBeatReport(7, beat)),
        spool_reports.as_facts(spool_reports.SpoolGap(1, 9, "damaged")),
    ]
    assert wire_values.node_reports(reports) == [
        Fact("machine", b"{}"),
        ProgressReport(AttemptLease(UUID(bytes=b"0" * 16), 1), 5),
        PastBeat(Instant(7), COOL),
        DroppedReport(damaged=True),
    ]
    with pytest.raises(ProtocolError):
        wire_values.node_reports([messages.Facts("past_beat", b'{"at": -1}')])
