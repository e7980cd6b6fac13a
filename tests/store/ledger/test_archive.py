"""Archiving: a month goes into a file, and nobody can tell by the answers."""

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.clocks import HandClock
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, Entry, Hold, LedgerAccount, PostingRefusal, Release, Transfer
from tidemill.store import partitions
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, connect
from tidemill.store.ledger import archive, books, ledger
from tidemill.store.ledger.archive import Archive, ArchiveRefusal
from tidemill.store.ledger.poster import Poster
from tidemill.store.query import Connection

BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")
COMMISSION = LedgerAccount(AccountKind.COMMISSION)
ANN, BOB = (LedgerAccount(AccountKind.CUSTOMER, UUID(int=number)) for number in (1, 2))
ACCOUNTS = [BANK, COMMISSION, ANN, BOB]
IDS = Ids(secrets.randbits)


def new_id(at: Instant) -> UUID:
    """Whenever; a source of ids itself never goes back."""
    return Ids(secrets.randbits).new(at)


def month_of(instant: Instant) -> str:
    return f"{datetime.fromtimestamp(instant / SECOND, UTC):%Y-%m}"


@pytest.fixture
async def now(database: Database) -> Instant:
    async with database.connection() as connection:
        return await read_clock(connection)


@pytest.fixture
def old(now: Instant) -> Instant:
    """A hundred days ago: its month is over in every sense."""
    return Instant(now - 100 * DAY)


@pytest.fixture
async def owner(urls: DatabaseUrls, database: Database, old: Instant, now: Instant) -> AsyncIterator[Connection]:
    connection = await connect(urls.owner)
    await partitions.create(connection, old, now, now)
    await ledger.open_accounts(connection, ACCOUNTS, old)
    yield connection
    await connection.close()


def some_entries(at: Instant) -> list[Entry]:
    """A deposit, a payment with its commission, a hold that is captured and released, and two that are refused."""
    new = Ids(secrets.randbits).new
    hold = Hold(new(at), BOB.id, 30, "credit", Instant(at + DAY), 'a "quoted" \\ cause')
    return [
        Transfer(new(at), BANK.id, ANN.id, 1000, "credit", "deposit", "bank:1"),
        Transfer(new(at), ANN.id, BOB.id, 100, "credit", "reward", "task:1"),
        Transfer(new(at), ANN.id, COMMISSION.id, 10, "credit", "commission", "task:1"),
        hold,
        Transfer(new(at), BOB.id, ANN.id, 20, "credit", "capture", "job:1", hold.id),
        Release(new(at), hold.id, "done"),
        Transfer(new(at), ANN.id, BOB.id, 10_000, "credit", "reward", "task:2"),
        Hold(new(at), COMMISSION.id, 1, "credit", Instant(at + DAY), "job:2"),
    ]


async def post(database: Database, entries: list[Entry], at: Instant) -> list[PostingRefusal | None]:
    async with database.transaction() as transaction:
        return [outcome.refusal for outcome in await ledger.post(transaction, entries, IDS, at)]


async def all_balances(connection: Connection) -> dict[UUID, tuple[int, int]]:
    return {one.id: (one.posted_uc, one.held_uc) for one in await books.balances(connection)}


async def failed(connection: Connection) -> list[str]:
    return [check.name for check in await books.check_books(connection) if not check.ok]


async def test_the_same_id_gets_the_same_answer_also_when_it_is_archived(
    database: Database, owner: Connection, old: Instant, now: Instant, tmp_path: Path
) -> None:
    entries = some_entries(old)
    answers = await post(database, entries, old)
    assert answers == [None] * 6 + [PostingRefusal.INSUFFICIENT_FUNDS] * 2
    assert isinstance(await archive.archive_month(owner, month_of(old), tmp_path, IDS, now), Archive)
    assert await owner.fetchval("SELECT count(*) FROM transfer") == 0
    poster = Poster(database, HandClock(now), IDS)
    await poster.post(some_entries(now))  # what it remembers must not hide what is archived
    assert [outcome.refusal for outcome in await poster.post(entries)] == answers
    assert await post(database, entries, now) == answers
    others = [replace(entry, cause="another") for entry in entries]
    assert await post(database, others, now) == [PostingRefusal.ID_REUSED] * 8
    assert await post(database, some_entries(old), now) == [PostingRefusal.ID_OUT_OF_TIME] * 8
    await poster.close()


async def test_balances_statements_and_checks_are_the_same_after_archiving(
    database: Database, owner: Connection, old: Instant, now: Instant, tmp_path: Path
) -> None:
    await post(database, some_entries(old), old)
    await ledger.write_checkpoints(owner, old)
    later = Instant(old + 40 * DAY)
    await post(database, some_entries(later), later)
    await ledger.write_checkpoints(owner, later)
    before, between = await all_balances(owner), Instant(later - DAY)
    assert before[COMMISSION.id] == (20, 0)
    past = await books.balance_at(owner, ANN.id, between)
    assert await failed(owner) == []

    archived = await archive.archive_month(owner, month_of(old), tmp_path, IDS, now)
    assert isinstance(archived, Archive)
    assert archived.entries == 8
    assert await all_balances(owner) == before
    assert await failed(owner) == []
    assert await books.balance_at(owner, ANN.id, between) == past == 910
    assert await books.balance_at(owner, ANN.id, Instant(old - SECOND)) is books.PastRefusal.ARCHIVED
    await post(database, some_entries(now), now)
    await ledger.write_checkpoints(owner, now)
    assert await failed(owner) == []
    assert (await all_balances(owner))[COMMISSION.id] == (30, 0)
    assert len(await books.statement(owner, COMMISSION.id, None, 10)) == 2


async def test_files_and_tables_prove_the_books_together(
    database: Database, owner: Connection, old: Instant, now: Instant, tmp_path: Path
) -> None:
    await post(database, some_entries(old), old)
    archived = await archive.archive_month(owner, month_of(old), tmp_path, IDS, now)
    assert isinstance(archived, Archive)
    assert await archive.archives(owner) == [archived]
    assert [check.ok for check in await archive.check_archives(owner, tmp_path)] == [True]
    await owner.execute("UPDATE ledger_account SET posted_uc = posted_uc + 1 WHERE id = $1", ANN.id)
    assert [check.ok for check in await archive.check_archives(owner, tmp_path)] == [False]
    assert await failed(owner) == ["balances"]
    file = tmp_path / archived.file
    file.write_bytes(file.read_bytes()[:-1])
    (changed,) = await archive.check_archives(owner, tmp_path)
    assert archived.file in changed.detail
    file.unlink()
    assert [check.ok for check in await archive.check_archives(owner, tmp_path)] == [False]


async def test_a_tampered_checkpoint_is_noticed(database: Database, owner: Connection, now: Instant) -> None:
    await post(database, some_entries(now), now)
    assert await ledger.write_checkpoints(owner, now) == 2
    assert await ledger.write_checkpoints(owner, now) == 0
    assert await failed(owner) == []
    await owner.execute("UPDATE ledger_checkpoint SET posted_uc = posted_uc + 1 WHERE account_id = $1", BANK.id)
    assert await failed(owner) == ["checkpoints"]


async def test_what_cannot_be_archived_is_refused_and_stays(
    database: Database, owner: Connection, old: Instant, now: Instant, tmp_path: Path
) -> None:
    entries = some_entries(old)[:2]
    hold = Hold(new_id(old), BOB.id, 30, "credit", Instant(old + DAY), "job")
    assert await post(database, [*entries, hold], old) == [None] * 3

    async def archived(instant: Instant) -> Archive | ArchiveRefusal:
        return await archive.archive_month(owner, month_of(instant), tmp_path, IDS, now)

    assert await archived(Instant(old - 400 * DAY)) is ArchiveRefusal.NO_SUCH_MONTH
    assert await archived(now) is ArchiveRefusal.NOT_THE_OLDEST
    assert await archived(old) is ArchiveRefusal.HOLDS_OPEN
    assert await archive.archive_month(owner, month_of(old), tmp_path, IDS, old) is ArchiveRefusal.NOT_OVER
    assert await post(database, [Release(new_id(now), hold.id, "expired")], now) == [None]
    assert isinstance(await archived(old), Archive)
    assert await archived(old) is ArchiveRefusal.NO_SUCH_MONTH
    assert await failed(owner) == []


async def test_the_program_cannot_archive(database: Database, owner: Connection, now: Instant, tmp_path: Path) -> None:
    async with database.connection() as connection:
        for statement in (
            "SELECT drop_month('transfer', '2020-01')",
            "DELETE FROM ledger_checkpoint",
            "INSERT INTO ledger_archive SELECT * FROM ledger_archive",
            "DELETE FROM archived_entries",
        ):
            with pytest.raises(Exception, match="permission denied"):
                await connection.execute(statement)
