"""The audit trail on a real server: continued by one at a time, refused every change, and found out when changed."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest

from tests.control.test_loops import parts_of
from tests.store.events.test_events import start_writer
from tests.worlds.databases.embedded_server import running
from tests.worlds.forks import Forked, module
from tidemill.control.events.loops import TipDuty, TrailLoop
from tidemill.core.clock import DAY, HOUR, Instant
from tidemill.core.events.log import LOG_START, PoolCreated, PoolRestored, SwitchThrown, TrailTipPublished
from tidemill.core.events.trail import NO_ACTS, Act, Damage, Flaw, TrailTip, TrailVerifier, chain_events, digest
from tidemill.core.faults import DatabaseFault, Fault
from tidemill.core.ids import Ids
from tidemill.store.address import DatabaseUrls, replace_database, role_of
from tidemill.store.checks import checks
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits, connect
from tidemill.store.embedded import EmbeddedServer
from tidemill.store.events import events, tips_file, trail
from tidemill.store.migrate import migrate
from tidemill.store.operations.backup import make_backup, restore
from tidemill.store.query import Connection

IDS = Ids(secrets.randbits)


async def append(database: Database, *reasons: str) -> None:
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        thrown = [SwitchThrown("all", True, reason, "ann") for reason in reasons]
        await events.append(transaction, thrown, IDS, now)


async def whole_trail(database: Database) -> list[Act]:
    async with database.connection() as connection:
        return [act async for act in trail.acts(connection)]


async def verified(database: Database, *heads: TrailTip) -> Flaw | None:
    """What `tidemill audit verify` does with the pool's own trail."""
    async with database.connection() as connection:
        verification = TrailVerifier(expected=[*await trail.published_tips(connection), *heads])
        async for act in trail.acts(connection):
            if flaw := verification.take(act):
                return flaw
        return verification.finish() or await trail.difference(connection)


@pytest.fixture
async def acts(database: Database) -> list[Act]:
    """A trail of some length, made in several steps."""
    for number in range(4):
        await append(database, *(f"reason {number} {part}" for part in range(5)))
        await trail.continue_trail(database, 3)
    while await trail.continue_trail(database, 100):
        pass
    return await whole_trail(database)


@pytest.fixture
async def superuser(server: EmbeddedServer, urls: DatabaseUrls) -> AsyncIterator[Connection]:
    """Somebody who may do everything, and has switched the triggers off."""
    connection = await connect(
        replace_database(server.superuser_url, urls.program.rpartition("/")[2].partition("?")[0])
    )
    await connection.execute("SET session_replication_role = replica")
    yield connection
    await connection.close()


async def test_every_audited_event_is_chained_once_and_others_are_not(database: Database, acts: list[Act]) -> None:
    assert [act.number for act in acts] == list(range(1, 22))
    assert acts[0].kind == PoolCreated.kind
    assert [act.body for act in acts[1:4]] == [
        f'{{"by":"ann","reason":"reason 0 {part}","stopped":true,"switch":"all"}}' for part in range(3)
    ]
    assert await verified(database) is None
    assert await trail.continue_trail(database, 100) == 0


async def test_the_database_computes_the_same_hash(database: Database, urls: DatabaseUrls) -> None:
    await append(database, "plain", 'quotes " and \\ and \x7f', "ünïcödé \N{SNOWMAN} \U0001f600", "two\nlines")
    await trail.continue_trail(database, 100)
    owner = await connect(urls.owner)
    rows = await owner.fetch("SELECT sha256, audit_trail_sha256(audit_trail) AS again FROM audit_trail")
    await owner.close()
    assert len(rows) == 5
    assert all(row["sha256"] == row["again"] for row in rows)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE audit_trail SET body = '{}'",
        "DELETE FROM audit_trail WHERE number = 3",
        "TRUNCATE audit_trail",
    ],
)
async def test_neither_the_program_nor_the_owner_can_change_the_trail(
    urls: DatabaseUrls, acts: list[Act], database: Database, statement: str
) -> None:
    for url, refused in (
        (urls.program, asyncpg.InsufficientPrivilegeError),
        (urls.owner, asyncpg.IntegrityConstraintViolationError),
    ):
        connection = await connect(url)
        with pytest.raises(refused):
            await connection.execute(statement)
        await connection.close()
    assert await whole_trail(database) == acts


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE audit_trail DISABLE TRIGGER ALL",
        "DROP TRIGGER never_changed ON audit_trail",
        "SET session_replication_role = replica",
        "DROP TABLE audit_trail",
        "ALTER TABLE audit_trail ADD COLUMN more text",
        "UPDATE event SET audited = false",
        "DELETE FROM event",
    ],
)
async def test_the_program_cannot_get_around_the_trail(database: Database, acts: list[Act], statement: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


async def test_a_right_to_change_the_trail_is_noticed_by_the_check(urls: DatabaseUrls) -> None:
    owner = await connect(urls.owner)
    await owner.execute(f"GRANT UPDATE ON audit_trail TO {role_of(urls.program)}")
    await owner.close()
    (rights,) = [check for check in await checks(urls) if check.name == "rights"]
    assert (rights.ok, "audit_trail" in rights.detail) == (False, True)


async def test_only_what_continues_the_chain_can_be_inserted(database: Database, acts: list[Act]) -> None:
    last = acts[-1]
    (good,) = chain_events(last.tip, [await unheard_event(database)])
    again = chain_events(acts[-3].tip, [await unheard_event(database)])[0]
    wrong = [
        replace(good, body='{"by":"mallory"}'),
        _sealed(replace(good, number=good.number + 1)),
        _sealed(replace(good, number=1)),
        _sealed(replace(good, previous=acts[-3].sha256)),
        _sealed(replace(good, transaction=acts[3].transaction, event_number=acts[3].event_number)),
        _sealed(replace(good, event_id=last.event_id)),
        again,
    ]
    for act in wrong:
        with pytest.raises(DatabaseFault, match="tidemill audit verify"):
            async with database.transaction() as transaction:
                await trail._append(transaction, [act])
    async with database.transaction() as transaction:
        await trail._append(transaction, [good])
    assert (await whole_trail(database))[-1] == good


def _sealed(act: Act) -> Act:
    return replace(act, sha256=digest(act))


async def unheard_event(database: Database) -> events.RecordedEvent:
    await append(database, "unheard")
    async with database.connection() as connection:
        return list(await events.read(connection, LOG_START, 1000))[-1]


EDITS = {
    "generation": "generation + 1",
    "transaction": "transaction + 1",
    "event_number": "event_number + 1",
    "at": "at + interval '1 microsecond'",
    "event_id": "'01900000-0000-7000-8000-000000000000'",
    "kind": "'pool.switch_thrown '",
    "subject": "'pool '",
    "body": "replace(body, 'ann', 'bob')",
    "previous": "sha256('x')",
    "sha256": "sha256('y')",
}


@pytest.mark.parametrize("column", EDITS)
async def test_a_superuser_who_edits_any_field_of_any_act_is_found_out(
    database: Database, superuser: Connection, acts: list[Act], column: str
) -> None:
    for number in (2, 11, 21):
        await superuser.execute("BEGIN")
        await superuser.execute(f"UPDATE audit_trail SET {column} = {EDITS[column]} WHERE number = {number}")
        await superuser.execute("COMMIT")
        flaw = await verified(database)
        assert flaw
        assert (flaw.damage, flaw.number) == (Damage.EDITED, number)
        await put_back(superuser, acts)
    assert await verified(database) is None


async def put_back(superuser: Connection, acts: Sequence[Act]) -> None:
    await superuser.execute("DELETE FROM audit_trail")
    await trail._append(superuser, acts)


async def test_a_superuser_who_removes_acts_is_found_out(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    await superuser.execute("DELETE FROM audit_trail WHERE number BETWEEN 7 AND 9")
    assert await verified(database) == Flaw(Damage.REMOVED, 7, "Acts 7 to 9 are missing.")
    await put_back(superuser, acts)
    await superuser.execute("DELETE FROM audit_trail WHERE number > 18")
    assert await verified(database) is None, "nobody has kept a head"
    flaw = await verified(database, acts[-1].tip)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.CUT, 19)


async def test_a_tail_that_was_cut_grows_again_as_it_was(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    await superuser.execute("DELETE FROM audit_trail WHERE number > 4")
    while await trail.continue_trail(database, 5):
        pass
    assert await whole_trail(database) == acts


async def test_a_tail_that_was_cut_with_its_events_is_found_out_by_what_was_published(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    async with database.transaction() as transaction:
        assert await trail.publish_tip(transaction, IDS, await read_clock(transaction)) == acts[-1].tip
    await superuser.execute("DELETE FROM event WHERE id IN (SELECT event_id FROM audit_trail WHERE number > 15)")
    await superuser.execute("DELETE FROM audit_trail WHERE number > 15")
    flaw = await verified(database)
    assert flaw
    assert flaw.damage is Damage.CUT
    await append(database, *map(str, range(10)))
    await trail.continue_trail(database, 100)
    flaw = await verified(database)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REWRITTEN, 21)


async def test_a_superuser_who_swaps_or_renumbers_acts_is_found_out(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    await superuser.execute(
        "ALTER TABLE audit_trail DROP CONSTRAINT audit_trail_number_check;"
        "UPDATE audit_trail SET number = -1 WHERE number = 5; UPDATE audit_trail SET number = 5 WHERE number = 9;"
        "UPDATE audit_trail SET number = 9 WHERE number = -1"
    )
    flaw = await verified(database)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REORDERED, 5)
    await put_back(superuser, acts)
    await superuser.execute("UPDATE audit_trail SET number = number + 1000 WHERE number > 9")
    flaw = await verified(database)
    assert flaw
    assert flaw.damage is Damage.REORDERED
    await put_back(superuser, acts)
    await superuser.execute("UPDATE audit_trail SET number = -7 WHERE number = 12")
    flaw = await verified(database)
    assert flaw
    assert flaw.damage is Damage.REORDERED


async def test_a_trail_that_was_written_anew_from_some_act_on_is_found_out(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    changed = [*acts[:6], replace(acts[6], body="{}"), *acts[7:]]
    await put_back(superuser, _anew(changed))
    flaw = await verified(database, acts[-1].tip)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REWRITTEN, 21)
    flaw = await verified(database)
    assert flaw, "nobody has kept a head, but the event still says what happened"
    assert (flaw.damage, flaw.number) == (Damage.REWRITTEN, 7)


async def test_an_act_that_was_left_out_of_a_trail_written_anew_is_found_out(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    await put_back(superuser, _anew([*acts[:6], *acts[7:]]))
    flaw = await verified(database)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.UNTOLD, 7)
    assert str(acts[6].event_id) in flaw.sentence


async def test_a_body_that_is_no_json_is_a_flaw_and_no_fault(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    await put_back(superuser, _anew([*acts[:6], replace(acts[6], body="{"), *acts[7:]]))
    flaw = await verified(database)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REWRITTEN, 7)


async def test_a_forged_act_in_the_middle_is_found_out(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    behind = replace(acts[9], number=11, event_number=acts[9].event_number + 1, previous=acts[9].sha256)
    loose = replace(behind, event_id=IDS.new(behind.at), body="{}")
    pushed = [replace(act, number=act.number + 1) for act in acts[10:]]
    await put_back(superuser, [*acts[:10], _sealed(loose)])
    with pytest.raises(DatabaseFault, match="audit_trail_previous_key"):
        await trail._append(superuser, pushed)
    await superuser.execute("ALTER TABLE audit_trail DROP CONSTRAINT audit_trail_previous_key")
    await trail._append(superuser, pushed)
    flaw = await verified(database)
    assert flaw
    assert (flaw.damage, flaw.number) == (Damage.REORDERED, 12)


def _anew(acts: Sequence[Act]) -> list[Act]:
    made: list[Act] = []
    head = NO_ACTS
    for act in acts:
        made.append(_sealed(replace(act, number=head.number + 1, previous=head.sha256)))
        head = made[-1].tip
    return made


async def test_a_trail_that_cannot_be_continued_is_a_fault_that_says_what_to_do(
    database: Database, superuser: Connection, acts: list[Act]
) -> None:
    await superuser.execute("UPDATE audit_trail SET transaction = 1 WHERE number = 21")
    with pytest.raises(DatabaseFault, match="tidemill audit verify"):
        await trail.continue_trail(database, 100)


async def test_an_open_transaction_holds_the_trail_back_and_nothing_is_missed(database: Database) -> None:
    await trail.continue_trail(database, 100)
    async with database.transaction() as slow:
        await events.append(slow, [SwitchThrown("all", True, "slow", "ann")], IDS, await read_clock(slow))
        await append(database, "quick")
        assert await trail.continue_trail(database, 100) == 0
    assert await trail.continue_trail(database, 100) == 2
    assert [json.loads(act.body)["reason"] for act in (await whole_trail(database))[1:]] == ["slow", "quick"]


async def test_copies_that_run_at_once_chain_everything_once(database: Database) -> None:
    async def write() -> None:
        for number in range(40):
            await append(database, str(number), f"{number} again")

    async def sequence(done: asyncio.Event) -> None:
        while not (await trail.continue_trail(database, 3) == 0 and done.is_set()):
            await asyncio.sleep(0)

    done = asyncio.Event()
    copies = [asyncio.create_task(sequence(done)) for _ in range(4)]
    await asyncio.gather(*(write() for _ in range(3)))
    done.set()
    await asyncio.gather(*copies)
    while await trail.continue_trail(database, 100):
        pass
    assert len(await whole_trail(database)) == 241
    assert await verified(database) is None


@pytest.mark.timeout(120)
async def test_sequencers_that_are_killed_leave_one_whole_chain_with_everything_once(
    urls: DatabaseUrls, database: Database, tmp_path: Path
) -> None:
    writers = [start_writer(urls.program, f"w{n}", tmp_path / f"w{n}", 60) for n in range(2)]
    steady = start_sequencer(urls.program, tmp_path / "steady")
    for life in range(4):
        victim = start_sequencer(urls.program, tmp_path / f"victim{life}")
        while not (tmp_path / f"victim{life}").read_bytes() and any(one.returncode is None for one in writers):
            await asyncio.sleep(0.01)
        victim.kill()
        assert await victim.wait() == -9
    assert await asyncio.gather(*(writer.wait() for writer in writers)) == [0, 0]
    steady.kill()
    await steady.wait()
    while await trail.continue_trail(database, 1000):
        pass
    assert await verified(database) is None
    async with database.connection() as connection:
        audited = await connection.fetch("SELECT id FROM event WHERE audited ORDER BY generation, transaction, number")
    chain = await whole_trail(database)
    assert len(chain) > 500
    assert [act.event_id for act in chain] == [row["id"] for row in audited]


def start_sequencer(url: str, output: Path) -> Forked:
    with output.open("ab") as out:
        return module("tests.worlds.databases.trail_sequencer", url, said=out.fileno())


async def test_ten_thousand_events_are_chained_by_a_loop_among_many_that_are_not_audited(
    database: Database, tmp_path: Path
) -> None:
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        for _ in range(10):
            noise = [TrailTipPublished(1, "x", 1)] * 500
            await events.append(transaction, [SwitchThrown("all", True, "many", "ann")] * 1000, IDS, now)
            await events.append(transaction, noise, IDS, now)
    parts = await parts_of(database, IDS, tmp_path)
    loop = TrailLoop(parts)
    ticks = 0
    while (await loop.tick(now)).more:
        ticks += 1
    assert ticks == 10
    async with database.connection() as connection:
        verification = TrailVerifier()
        async for act in trail.acts(connection):
            assert verification.take(act) is None
        assert verification.head.number == 10_001
        assert await trail.difference(connection) is None
        after = (await trail.listed(connection, limit=1))[0].cursor
        plan = await connection.fetch(
            f"EXPLAIN (FORMAT TEXT) {trail._WAITING.sql}", after.generation, after.transaction, after.number, 100
        )
    await parts.poster.close()
    text = "\n".join(row[0] for row in plan)
    assert "Seq Scan on event" not in text, text


async def test_heads_are_published_when_they_have_moved(database: Database, acts: list[Act], tmp_path: Path) -> None:
    parts = await parts_of(database, IDS, tmp_path)
    duty = TipDuty(parts)
    now = parts.clock.now()
    file = tmp_path / tips_file.NAME
    assert (await duty.tick(now)).applied == 1
    assert (await duty.tick(Instant(now + HOUR))).applied == 0, "it has not moved"
    await append(database, "more")
    await TrailLoop(parts).tick(now)
    assert (await duty.tick(Instant(now + 2 * HOUR - 1))).applied == 0, "it is not due"
    assert (await duty.tick(Instant(now + 2 * HOUR))).applied == 1
    heads, strange = tips_file.read_tips(file.read_text().splitlines())
    async with database.connection() as connection:
        assert list(await trail.published_tips(connection)) == heads
        last = list(await events.read(connection, LOG_START, 1000))[-1]
    assert (last.kind, last.public, [head.number for head in heads], strange) == (
        TrailTipPublished.kind,
        True,
        [21, 22],
        0,
    )
    assert await verified(database, *heads) is None
    await parts.poster.close()


async def test_a_torn_line_spoils_no_other_head(tmp_path: Path, acts: list[Act]) -> None:
    file = tmp_path / tips_file.NAME
    assert tips_file.add_tip(tmp_path, acts[0].tip)
    file.write_text(file.read_text() + "2 abc")
    assert tips_file.add_tip(tmp_path, acts[2].tip)
    assert not tips_file.add_tip(tmp_path, acts[2].tip)
    assert tips_file.read_tips(file.read_text().splitlines()) == ([acts[0].tip, acts[2].tip], 1)


async def test_a_home_that_cannot_be_written_is_a_fault(tmp_path: Path, acts: list[Act]) -> None:
    (tmp_path / tips_file.NAME).mkdir()
    with pytest.raises(Fault, match="audit-heads"):
        tips_file.add_tip(tmp_path, acts[0].tip)


async def test_acts_can_be_paged_by_kind_and_subject_and_time(database: Database, acts: list[Act]) -> None:
    async with database.connection() as connection:
        page = await trail.listed(connection, kind=SwitchThrown.kind, limit=5)
        assert [act.number for act in page] == [21, 20, 19, 18, 17]
        page = await trail.listed(connection, subject="pool", before=3, limit=5)
        assert [act.number for act in page] == [2, 1]
        assert await trail.listed(connection, kind="nothing") == []
        first, last = await trail.bounds(connection, acts[1].at, acts[-1].at)
        assert (first, last) == (2, 16)
        assert await trail.bounds(connection, Instant(acts[-1].at + DAY), Instant(acts[0].at - 1)) == (2**63 - 1, 0)


async def test_a_restored_pool_goes_on_with_its_trail_and_says_that_acts_are_gone(place: Path) -> None:
    async with running(place) as server:
        await migrate(server.urls, IDS, "1.0")
        database = await Database.open(server.urls.program, DatabaseLimits(5, statement_s=30, lock_s=10), "test")
        await append(database, "kept", "kept, too")
        await trail.continue_trail(database, 100)
        await append(database, "kept and not chained yet")
        await make_backup(server.urls.owner, place / "a.dump")
        await append(database, "gone", "gone, too")
        await trail.continue_trail(database, 100)
        lost = (await whole_trail(database))[-1].tip
        await database.close()
        await restore(server.superuser_url, server.urls, place / "a.dump", IDS, "1.0")
        assert [check for check in await checks(server.urls) if not check.ok] == []
        database = await Database.open(server.urls.program, DatabaseLimits(5, statement_s=30, lock_s=10), "test")
        await append(database, "new life")
        await trail.continue_trail(database, 100)
        kinds = [act.kind for act in await whole_trail(database)]
        assert kinds == [PoolCreated.kind, *[SwitchThrown.kind] * 3, PoolRestored.kind, SwitchThrown.kind]
        assert await verified(database, lost) is None
        verification = TrailVerifier(demanded=[lost])
        flaws = [flaw for act in await whole_trail(database) if (flaw := verification.take(act))]
        assert [flaw.damage for flaw in flaws] == [Damage.REWRITTEN], "whoever kept that head is told that it is gone"
        with pytest.raises(DatabaseFault):
            async with database.transaction() as transaction:
                await trail._append(transaction, (await whole_trail(database))[:1])
        await database.close()
