"""The spool: numbers without a gap, groups that share a write, a limit that costs log lines and never receipts."""

import asyncio
import os
import sqlite3
import stat
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.worlds.agents.spool_reports import beat, lines, number_in, receipt
from tests.worlds.receiving import fresh
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import AgentFault
from tidemill.link.dialled.spool import BEAT_EVERY_US, Spool
from tidemill.link.dialled.spool_file import SpoolFile
from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import Facts, Report, Reports, encode
from tidemill.wire.outbox import Outbox
from tidemill.wire.spool_reports import DROPPED, PAST_BEAT, PastBeatReport, SpoolGap, as_facts, spool_report_in

MIB = 1024 * 1024
NOW = Instant(1_800_000_000 * SECOND)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spool.sqlite"


async def test_reports_are_numbered_from_one_and_read_back_in_order(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    sent: list[Report] = [receipt(1), lines(2), Facts("hardware", b"{}"), receipt(4)]
    assert [await spool.append(report) for report in sent] == [1, 2, 3, 4]
    assert await spool.read(0, MIB) == list(enumerate(sent, start=1))
    assert await spool.read(2, MIB) == [(3, sent[2]), (4, sent[3])]
    assert await spool.read(4, MIB) == []
    assert len(await spool.read(0, 1)) == 1, "one at the least, however large"
    await spool.close()


async def test_numbers_go_on_after_a_restart_also_when_nothing_waits(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    for mark in range(3):
        await spool.append(receipt(mark))
    await spool.begin_at(0)
    await spool.safe(3)
    await spool.close()
    spool = await Spool.open(file, MIB)
    assert (spool.last_number, spool.first_number, spool.has_met_the_pool) == (3, 4, True)
    assert await spool.append(receipt(9)) == 4
    await spool.close()


async def test_appends_at_the_same_time_share_writes_and_keep_their_order(file: Path) -> None:
    spool = await Spool.open(file, 10 * MIB)
    began = time.perf_counter()
    numbers = await asyncio.gather(*(spool.append(receipt(mark)) for mark in range(5_000)))
    assert numbers == list(range(1, 5_001))
    assert time.perf_counter() - began < 10, "five thousand single writes to a disk would take longer"
    assert [number_in(report) for _, report in await spool.read(0, 10 * MIB)] == list(range(1_000))
    await spool.close()


@pytest.mark.parametrize(("count", "within_s"), [(20_000, 12), pytest.param(100_000, 60, marks=pytest.mark.soak)])
async def test_reports_by_the_ten_thousand_are_kept_and_read_in_seconds(
    file: Path, count: int, within_s: float
) -> None:
    spool = await Spool.open(file, 100 * MIB)
    began = time.perf_counter()
    await asyncio.gather(*(spool.append(receipt(mark)) for mark in range(count)))
    after = 0
    while page := await spool.read(after, MIB):
        assert [number_in(report) for _, report in page] == [number - 1 for number, _ in page]
        after = page[-1][0]
        await spool.safe(after)
    assert after == count
    assert time.perf_counter() - began < within_s
    assert spool.has_room
    await spool.close()


async def test_writers_readers_and_acknowledgements_do_not_disturb_each_other(file: Path) -> None:
    spool = await Spool.open(file, 10 * MIB)
    seen: list[int] = []

    async def write(first: int) -> None:
        for mark in range(first, first + 200):
            await spool.append(receipt(mark))

    async def read() -> None:
        while len(seen) < 1_000:
            for number, report in await spool.read(len(seen), 5_000):
                assert number == len(seen) + 1
                seen.append(number_in(report))
            await spool.safe(len(seen))

    await asyncio.gather(*(write(first * 1_000) for first in range(5)), read())
    assert sorted(seen) == [first * 1_000 + mark for first in range(5) for mark in range(200)]
    await spool.close()


async def test_an_append_that_nobody_waits_for_any_more_holds_up_no_other(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    impatient = asyncio.create_task(spool.append(receipt(1)))
    patient = asyncio.create_task(spool.append(receipt(2)))
    await asyncio.sleep(0)
    impatient.cancel()
    assert await patient == 2
    await spool.close()


async def test_a_full_spool_drops_the_oldest_log_lines_and_no_receipt_and_tells_which(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    for first in range(1, 2_001, 100):
        marks = range(first, first + 100)
        await asyncio.gather(*(spool.append(receipt(n) if n % 10 == 0 else lines(n, 1_000)) for n in marks))
    found = await _all(spool)
    assert [number for number, _ in found] == list(range(1, 2_001))
    assert [number for number, report in found if number % 10 == 0 and number_in(report) != number] == []
    dropped = [number for number, report in found if number_in(report) == -1]
    kept_lines = [number for number, report in found if number % 10 and number_in(report) == number]
    assert max(dropped) < min(kept_lines), "the oldest go first"
    assert len(kept_lines) > 500
    for number, report in found:
        if number in dropped:
            assert isinstance(report, Facts)
            tens = number // 10 * 10
            assert spool_report_in(report) == SpoolGap(tens + 1, min(tens + 9, max(dropped)), "full")
    await spool.close()


async def test_a_spool_that_is_full_for_long_does_not_grow(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    sizes = []
    for _ in range(6):
        await asyncio.gather(*(spool.append(lines(mark, 500)) for mark in range(3_000)))
        sizes.append(sum(one.stat().st_size for one in file.parent.iterdir()))
    assert max(sizes) < 10 * MIB, sizes
    assert spool.last_number == 18_000
    await spool.close()
    assert file.stat().st_size < 3 * MIB
    spool = await Spool.open(file, MIB)
    assert spool.set_aside is None
    assert spool.last_number == 18_000
    await spool.close()


async def test_receipts_are_kept_above_the_limit_and_the_spool_says_that_it_has_no_room(file: Path) -> None:
    spool = await Spool.open(file, 100_000)
    assert spool.has_room
    for mark in range(200):
        await spool.append(receipt(mark, 1_000))
    assert not spool.has_room
    await spool.append(lines(7))
    assert [number_in(report) for _, report in await _all(spool)] == [*range(200), -1]
    await spool.safe(190)
    assert spool.has_room
    await spool.close()


async def test_what_the_pool_has_is_forgotten_also_in_the_middle_of_dropped_ones(file: Path) -> None:
    spool = await Spool.open(file, 100_000)
    for mark in range(1, 301):
        await spool.append(lines(mark, 1_000))
    await spool.safe(50)
    assert spool.first_number == 51
    ((number, report),) = await spool.read(50, 1)
    assert number == 51
    assert isinstance(report, Facts)
    said = spool_report_in(report)
    assert isinstance(said, SpoolGap)
    assert (said.first, said.why) == (51, "full")
    assert said.last > 200
    await spool.close()
    spool = await Spool.open(file, 100_000)
    assert (spool.set_aside, spool.first_number, spool.last_number) == (None, 51, 300)
    await spool.close()


async def test_a_new_file_gets_numbers_behind_what_the_pool_has_received(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    for mark in range(3):
        await spool.append(receipt(mark))
    assert not spool.has_met_the_pool
    await spool.begin_at(2)
    assert [(number, number_in(report)) for number, report in await spool.read(2, MIB)] == [(3, 0), (4, 1), (5, 2)]
    assert await spool.append(receipt(3)) == 6
    await spool.begin_at(4)
    assert [number for number, _ in await spool.read(0, MIB)] == [5, 6], "by now the pool knows these numbers"
    await spool.close()


@pytest.mark.parametrize("received", [0, 2, 50], ids=["all lost", "some lost", "ahead of us"])
async def test_a_pool_or_a_spool_that_was_restored_loses_nothing_that_waits(file: Path, received: int) -> None:
    spool = await Spool.open(file, MIB)
    await spool.begin_at(0)
    for mark in range(10):
        await spool.append(receipt(mark))
    await spool.safe(5)
    await spool.begin_at(received)
    waiting = [(number, number_in(report)) for number, report in await spool.read(received, MIB)]
    assert waiting == list(enumerate(range(5, 10), start=received + 1))
    assert spool.last_number == received + 5
    await spool.close()


async def test_what_an_older_link_acknowledged_deletes_nothing_after_numbers_were_given_anew(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    await spool.begin_at(0)
    for mark in range(10):
        await spool.append(receipt(mark))
    await spool.safe(5)
    old_word = asyncio.create_task(spool.safe(8))
    await asyncio.sleep(0)
    await spool.begin_at(20)
    await old_word
    kept = [number_in(report) for _, report in await spool.read(20, MIB)]
    assert kept in ([5, 6, 7, 8, 9], [8, 9]), "either it came before, or it says nothing"
    await spool.close()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("receipt"), st.integers(10, 3_000)),
            st.tuples(st.just("lines"), st.integers(10, 3_000)),
            st.tuples(st.just("safe"), st.integers(0, 100)),
            st.tuples(st.just("reopen"), st.just(0)),
        ),
        max_size=60,
    )
)
async def test_whatever_is_done_numbers_have_no_gap_and_receipts_stay(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int]]
) -> None:
    file = tmp_path_factory.mktemp("spool") / "spool.sqlite"
    spool = await Spool.open(file, 10_000)
    receipts: set[int] = set()
    safe = 0
    for act, value in acts:
        if act == "safe":
            safe = safe + (spool.last_number - safe) * value // 100
            await spool.safe(safe)
        elif act == "reopen":
            await spool.close()
            spool = await Spool.open(file, 10_000)
            assert spool.set_aside is None
        else:
            mark = spool.last_number + 1
            number = await spool.append(receipt(mark, value) if act == "receipt" else lines(mark, value))
            assert number == mark
            receipts |= {mark} if act == "receipt" else set()
    found = await _all(spool)
    assert [number for number, _ in found] == list(range(safe + 1, spool.last_number + 1))
    assert {number_in(report) for _, report in found} >= {mark for mark in receipts if mark > safe}
    standing = spool._file.standing
    await spool.close()
    counted = SpoolFile(file, 10_000)
    assert counted.standing == standing, "what is counted along is what is there"
    counted.close()


async def test_while_offline_one_beat_a_minute_is_kept(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    kept = [await spool.keep_beat(beat(n), Instant(NOW + n * 10 * SECOND)) for n in range(13)]
    assert [number for number in kept if number] == [1, 2, 3]
    facts = (await spool.read(0, MIB))[1][1]
    assert isinstance(facts, Facts)
    assert spool_report_in(facts) == PastBeatReport(NOW + BEAT_EVERY_US, beat(6))
    assert await spool.keep_beat(beat(99), Instant(NOW - SECOND)) == 4, "a clock that went back does not silence it"
    await spool.close()


async def test_reports_arrive_once_through_links_that_break(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    await asyncio.gather(*(spool.append(lines(mark, 300) if mark % 2 else receipt(mark)) for mark in range(1, 2_001)))
    received, arrived = 0, list[Report]()
    while received < spool.last_number:
        await spool.begin_at(received)
        outbox = Outbox(received)
        after = received
        for number, report in await spool.read(after, 200_000):
            assert outbox.add(report) == number
        batches = list(iter(outbox.batch, None))
        for batch in batches[: max(1, len(batches) - 1)]:  # the last one is lost with the link
            new, received = fresh(batch, received)
            arrived += new
        again, received = fresh(batches[0], received)
        assert not again
    marks = [number_in(report) for report in arrived if number_in(report) > 0]
    assert marks == sorted(set(marks))
    assert set(range(2, 2_001, 2)) <= set(marks)
    await spool.close()


DAMAGES = {
    "no database": lambda file: file.write_bytes(b"this is no database" * 1_000),
    "cut short": lambda file: os.truncate(file, file.stat().st_size // 2),
    "pages overwritten": lambda file: _overwrite(file, 4_096, 20_000),
    "header overwritten": lambda file: _overwrite(file, 0, 100),
    "rows removed": lambda file: _sql(file, "DELETE FROM report WHERE number = 5"),
    "table removed": lambda file: _sql(file, "DROP TABLE report"),
    "last number changed": lambda file: _sql(file, "UPDATE spool SET last_number = 3"),
    "count changed": lambda file: _sql(file, "UPDATE report SET reports = 'x' WHERE number = 200"),
    "state removed": lambda file: _sql(file, "DELETE FROM spool"),
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_set_aside_and_a_new_one_begun(file: Path, damage: str) -> None:
    spool = await Spool.open(file, MIB)
    await spool.begin_at(0)
    await asyncio.gather(*(spool.append(receipt(mark, 1_000)) for mark in range(200)))
    await spool.close()
    DAMAGES[damage](file)
    spool = await Spool.open(file, MIB)
    assert spool.set_aside == file.with_name("spool.sqlite.damaged")
    assert spool.set_aside.exists()
    assert not spool.has_met_the_pool
    assert await spool.append(receipt(7)) == 1
    await spool.begin_at(200)
    assert [(number, number_in(report)) for number, report in await spool.read(200, MIB)] == [(201, 7)]
    await spool.close()


async def test_a_report_that_the_disk_has_changed_is_told_as_damaged_and_stops_nothing(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    for mark in range(5):
        await spool.append(receipt(mark))
    await spool.close()
    _sql(file, "UPDATE report SET body = substr(body, 1, 20) || x'00' || substr(body, 22) WHERE number = 3")
    _sql(file, f"UPDATE report SET body = x'ff', checksum = {0xFF000000} WHERE number = 4")
    spool = await Spool.open(file, MIB)
    reports = dict(await spool.read(0, MIB))
    for number in (3, 4):
        facts = reports[number]
        assert isinstance(facts, Facts)
        assert spool_report_in(facts) == SpoolGap(number, number, "damaged")
    assert number_in(reports[5]) == 4
    await spool.close()


async def test_the_file_of_a_newer_agent_is_refused_and_left_alone(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    await spool.append(receipt(1))
    await spool.close()
    _sql(file, "PRAGMA user_version = 2")
    with pytest.raises(AgentFault, match="newer agent"):
        await Spool.open(file, MIB)
    assert [one.name for one in file.parent.iterdir()] == ["spool.sqlite"]


async def test_a_second_process_does_not_get_the_file(file: Path) -> None:
    spool = await Spool.open(file, MIB)
    with pytest.raises(AgentFault, match="Another process"):
        await Spool.open(file, MIB)
    assert await spool.append(receipt(1)) == 1
    await spool.close()


async def test_the_file_is_private_and_a_link_in_its_place_is_not_followed(file: Path, tmp_path: Path) -> None:
    spool = await Spool.open(file, MIB)
    await spool.append(receipt(1))
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o600}
    await spool.close()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AgentFault, match="cannot be used"):
        await Spool.open(file, MIB)


async def test_a_place_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(AgentFault, match="nowhere"):
        await Spool.open(tmp_path / "nowhere" / "spool.sqlite", MIB)


@pytest.mark.parametrize(
    "facts",
    [
        Facts(DROPPED, b"{}"),
        Facts(DROPPED, b'{"first":-1,"last":1,"why":"full"}'),
        Facts(DROPPED, b'{"first":1,"last":1,"why":"moon"}'),
        Facts(PAST_BEAT, b"["),
        Facts(PAST_BEAT, b'{"at":1,"beat":[1]}'),
    ],
)
def test_what_a_peer_makes_up_about_its_spool_is_refused(facts: Facts) -> None:
    with pytest.raises(ProtocolError):
        spool_report_in(facts)


def test_facts_about_something_else_are_not_the_spools() -> None:
    assert spool_report_in(Facts("hardware", b"{}")) is None
    assert len(encode(Reports(1, [as_facts(SpoolGap(1, 2**53, "damaged"))]))) < 100


async def _all(spool: Spool) -> list[tuple[int, Report]]:
    found: list[tuple[int, Report]] = []
    while page := await spool.read(found[-1][0] if found else spool.first_number - 1, 100_000):
        found += page
    return found


def _overwrite(file: Path, at: int, size_bytes: int) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(b"\xa5" * size_bytes)


def _sql(file: Path, statement: str) -> None:
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(statement)
    connection.close()
