"""Tries to put the books wrong, with everything the program's role is able to say. Each stays here."""

import asyncio
import secrets
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.store.ledger import test_archive
from tests.store.ledger.test_archive import month_of, new_id
from tests.worlds.clocks import HandClock
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.faults import DatabaseFault, Fault
from tidemill.core.ids import Ids
from tidemill.core.ledger import RULES, AccountKind, Entry, Hold, LedgerAccount, PostingRefusal, Release, Transfer
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, connect
from tidemill.store.ledger import archive, books, ledger
from tidemill.store.ledger import poster as posters
from tidemill.store.ledger.archive import Archive, ArchiveRefusal
from tidemill.store.ledger.poster import Poster
from tidemill.store.query import Connection

BANK, CARD = (LedgerAccount(AccountKind.EXTERNAL, name=name) for name in ("bank", "card"))
ANN, BOB, CAROL = (LedgerAccount(AccountKind.CUSTOMER, UUID(int=number)) for number in (1, 2, 3))
NOBODY = UUID(int=99)
owner, old = test_archive.owner, test_archive.old  # fixtures


@pytest.fixture
async def now(database: Database, ids: Ids) -> Instant:
    """Ann and Bob have a thousand each."""
    async with database.transaction() as transaction:
        at = await read_clock(transaction)
        await ledger.open_accounts(transaction, [ANN, BOB, BANK, CARD], at)
        await ledger.post(transaction, [move(at, BANK, ANN, 1000), move(at, BANK, BOB, 1000)], ids, at)
    return at


def move(at: Instant, debit: LedgerAccount, credit: LedgerAccount, amount_uc: int) -> Transfer:
    return Transfer(new_id(at), debit.id, credit.id, amount_uc, "credit", "test", "test")


def hold_on(account: LedgerAccount, at: Instant, amount_uc: int) -> Hold:
    return Hold(new_id(at), account.id, amount_uc, "credit", Instant(at + DAY), "test")


async def say(connection: Connection, at: Instant, entries: list[Entry], /, **lies: Any) -> Any:
    """Call `post_entries` as the program could if it were our enemy."""
    values: dict[str, Any] = {
        "seen_number": await connection.fetchval("SELECT lock_ledger()"),
        "now": at,
        "unfloored_ids": [BANK.id, CARD.id],
        "event_id": new_id(at),
        "event_kind": "test",
        "event_subject": "test",
        "event_body": {},
        "event_public": False,
        **ledger._columns(entries),
        **ledger._refusals([]),
    }
    return await ledger._POST.row(connection, **(values | lies))


async def sound(connection: Connection) -> bool:
    return all(check.ok for check in await books.check_books(connection))


@pytest.mark.parametrize(
    "lies",
    [
        {"release_ids": None},
        {"seen_number": None},
        {"now": None},
        {"unfloored_ids": None},
        {
            "placed_account_ids": [BOB.id],
            "placed_amounts_uc": [0],
            "placed_currencies": ["credit"],
        },
        {"placed_account_ids": [BOB.id], "placed_amounts_uc": [-5]},
        {"amounts_uc": [5000, 1]},
        {"hold_ids": [None, None]},
        {"debit_ids": [None]},
        {"unfloored_ids": [NOBODY]},
    ],
)
async def test_an_incomplete_or_padded_batch_is_not_posted(
    database: Database, now: Instant, lies: dict[str, Any]
) -> None:
    unknown = Transfer(new_id(now), NOBODY, ANN.id, 5000, "credit", "test", "test")
    async with database.connection() as connection:
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await say(connection, now, [unknown], **lies)
        assert await sound(connection)


async def test_a_hold_cannot_be_captured_by_another_beside_its_owner(
    database: Database, now: Instant, ids: Ids
) -> None:
    of_ann, of_bob = hold_on(ANN, now, 100), hold_on(BOB, now, 100)
    async with database.transaction() as transaction:
        await ledger.post(transaction, [of_ann, of_bob], ids, now)
    captures: list[Entry] = [
        Transfer(new_id(now), account.id, BANK.id, amount_uc, "credit", "test", "test", of_ann.id)
        for account, amount_uc in ((ANN, 50), (BOB, 90))
    ]
    async with database.connection() as connection:
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await say(connection, now, captures)
        assert await sound(connection)


async def test_one_id_cannot_be_two_things(database: Database, now: Instant) -> None:
    transfer, hold = move(now, BANK, ANN, 5), hold_on(ANN, now, 10)
    async with database.connection() as connection:
        assert await say(connection, now, [transfer])
        assert await say(connection, now, [hold], placed_ids=[transfer.id]) is None
        assert await say(connection, now, [Release(transfer.id, hold.id, "test")]) is None


@pytest.mark.parametrize("statement", ["SELECT write_checkpoints(now())", "SELECT lock_ledger()"])
async def test_nothing_is_written_from_an_old_view_of_the_books(
    database: Database, now: Instant, statement: str
) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.RaiseError):
            async with connection.transaction(isolation="repeatable_read"):
                await connection.execute("SET LOCAL plpgsql.check_asserts = off")
                await connection.execute(statement)


async def test_accounts_are_what_their_kind_says(database: Database, now: Instant) -> None:
    accounts = [
        LedgerAccount(kind, UUID(int=7) if rules.owned else None, "näme" if rules.named else "", "euro")
        for kind, rules in RULES.items()
    ]
    async with database.connection() as connection:
        assert await ledger.open_accounts(connection, accounts, now) == len(RULES)
        rows = await connection.fetch("SELECT id, kind, floored FROM ledger_account WHERE currency = 'euro'")
    assert {row["kind"]: (row["id"], row["floored"]) for row in rows} == {
        account.kind.value: (account.id, RULES[account.kind].floored) for account in accounts
    }


async def test_a_checkpoint_does_not_change_the_past(database: Database, now: Instant, ids: Ids) -> None:
    between = Instant(now + 3 * SECOND)
    async with database.transaction() as transaction:
        await ledger.post(transaction, [move(now, BANK, ANN, 777)], ids, Instant(now + 5 * SECOND))
    async with database.connection() as connection:
        before = await books.balance_at(connection, BANK.id, between)
        await ledger.write_checkpoints(connection, Instant(now + 2 * SECOND))
        assert await books.balance_at(connection, BANK.id, between) == before == -2000
        assert await books.balance_at(connection, BANK.id, Instant(now + 5 * SECOND)) == -2777


async def test_an_archived_month_never_comes_back(
    database: Database, owner: Connection, old: Instant, now: Instant, ids: Ids, tmp_path: Path
) -> None:
    paid = move(old, BANK, ANN, 1000)
    async with database.transaction() as transaction:
        await ledger.post(transaction, [paid], ids, old)
    archived = await archive.archive_month(owner, month_of(old), tmp_path, ids, now)
    assert isinstance(archived, Archive)
    async with database.connection() as connection:
        await connection.execute("SELECT create_partitions($1, $2, $2)", old, now)
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await say(connection, now, [paid])
    assert await archive.archive_month(owner, month_of(old), tmp_path, ids, now) is ArchiveRefusal.NO_SUCH_MONTH
    assert all(check.ok for check in await archive.check_archives(owner, tmp_path))


async def test_a_file_that_is_there_is_not_overwritten(
    database: Database, owner: Connection, old: Instant, now: Instant, ids: Ids, tmp_path: Path
) -> None:
    async with database.transaction() as transaction:
        await ledger.post(transaction, [move(old, BANK, ANN, 1)], ids, old)
    file = tmp_path / f"ledger-{month_of(old)}.jsonl.gz"
    file.write_text("of another pool")
    with pytest.raises(Fault, match="something else"):
        await archive.archive_month(owner, month_of(old), tmp_path, ids, now)
    assert (file.read_text(), [one.name for one in tmp_path.iterdir()]) == ("of another pool", [file.name])
    assert await owner.fetchval("SELECT count(*) FROM archived_entries") == 0
    assert await sound(owner)


async def test_the_past_is_the_same_after_two_archives(
    database: Database, owner: Connection, old: Instant, now: Instant, ids: Ids, tmp_path: Path
) -> None:
    first = archive._Month.named(month_of(old))
    second = archive._Month.named(month_of(Instant(first.ends_at + DAY)))
    posted_at = Instant(second.ends_at + 5 * DAY)
    async with database.transaction() as transaction:
        at = Instant(first.ends_at - DAY)
        await ledger.open_accounts(transaction, [CAROL], at)
        await ledger.post(transaction, [move(at, CARD, CAROL, 1000)], ids, at)
    at = Instant(first.ends_at + 31 * DAY + SECOND)
    assert isinstance(await archive.archive_month(owner, first.name, tmp_path, ids, at), Archive)
    async with database.transaction() as transaction:
        late = move(Instant(second.ends_at - DAY), CARD, CAROL, 50)
        await ledger.post(transaction, [late], ids, posted_at)
    instant = Instant(posted_at + DAY)
    before = await books.balance_at(owner, CAROL.id, instant)
    at = Instant(second.ends_at + 31 * DAY + SECOND)
    assert isinstance(await archive.archive_month(owner, second.name, tmp_path, ids, at), Archive)
    assert await books.balance_at(owner, CAROL.id, instant) == before == 1050


async def test_who_reads_while_a_month_is_archived_sees_the_whole_balance(
    database: Database, owner: Connection, old: Instant, now: Instant, ids: Ids, tmp_path: Path
) -> None:
    async with database.transaction() as transaction:
        await ledger.post(transaction, [move(old, BANK, ANN, 1000)], ids, old)
    async with database.connection() as connection:
        before = await books.balances(connection, ids=[BANK.id])
        async with owner.transaction():
            assert isinstance(await archive.archive_month(owner, month_of(old), tmp_path, ids, now), Archive)
            reader = asyncio.create_task(books.balances(connection, ids=[BANK.id]))
            await asyncio.sleep(0.3)
        assert await reader == before == await books.balances(connection, ids=[BANK.id])


async def test_a_month_with_the_release_of_a_later_hold_stays(
    database: Database, owner: Connection, old: Instant, now: Instant, ids: Ids, tmp_path: Path
) -> None:
    month = archive._Month.named(month_of(old))
    late, after = Instant(month.ends_at - SECOND), Instant(month.ends_at + SECOND)
    hold = hold_on(ANN, after, 30)
    async with database.transaction() as transaction:
        entries = [move(late, BANK, ANN, 100), hold, Release(new_id(late), hold.id, "test")]
        assert not any(outcome.refusal for outcome in await ledger.post(transaction, entries, ids, after))
    assert await archive.archive_month(owner, month.name, tmp_path, ids, now) is ArchiveRefusal.LATER_HOLD
    assert await sound(owner)


async def test_an_id_as_old_as_it_may_be_finds_its_place(database: Database, now: Instant, ids: Ids) -> None:
    poster = Poster(database, HandClock(now), ids)
    (outcome,) = await poster.post([move(Instant(now - 29 * DAY), BANK, ANN, 1)])
    assert outcome.refusal is None
    await poster.close()


async def test_a_poster_remembers_no_more_than_it_may(
    database: Database, now: Instant, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posters, "REMEMBERED_MAX", 10)
    poster = Poster(database, HandClock(now), ids)
    for _ in range(10):
        holds = [hold_on(ANN, now, 1) for _ in range(10)]
        await poster.post(holds)
        await poster.post([Release(new_id(now), hold.id, "test") for hold in holds])
    assert len(poster._books.holds) <= 20
    await poster.close()


async def test_nobody_waits_for_ever_for_a_poster_that_is_closed(
    database: Database, now: Instant, ids: Ids, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posters, "_CLOSE_S", 0.3)
    poster = Poster(database, HandClock(now), ids)
    async with database.transaction() as transaction:
        await ledger.lock(transaction)
        callers = [asyncio.create_task(poster.post([move(now, BANK, ANN, 1)]))]
        await asyncio.sleep(0.2)
        callers.append(asyncio.create_task(poster.post([move(now, BANK, ANN, 1)])))
        await asyncio.sleep(0)
        await poster.close()
    answers = await asyncio.wait_for(asyncio.gather(*callers, return_exceptions=True), 3)
    assert [type(answer) for answer in answers] == [DatabaseFault, DatabaseFault]
    with pytest.raises(AssertionError):
        await poster.post([move(now, BANK, ANN, 1)])


async def test_a_storm_of_cancellations_changes_no_answer(
    database: Database, urls: DatabaseUrls, now: Instant, ids: Ids
) -> None:
    """Callers give up, statements are cancelled, connections are cut; two posters get in each other's way."""
    random, asked = Random(1), list[Entry]()
    both = [Poster(database, HandClock(now), Ids(secrets.randbits)) for _ in range(2)]
    enemy = await connect(urls.owner)
    for _ in range(80):
        sides = random.sample([ANN, BOB], 2)
        asked.append(move(now, *sides, random.randint(1, 600)))
        caller = asyncio.create_task(random.choice(both).post([asked[-1]]))
        await asyncio.sleep(random.random() * 0.004)
        chance = random.random()
        if chance < 0.25:
            caller.cancel()
        elif chance < 0.5:
            deed = "pg_cancel_backend" if chance < 0.4 else "pg_terminate_backend"
            others = "datname = current_database() AND pid <> pg_backend_pid() AND state = 'active'"
            await enemy.execute(f"SELECT {deed}(pid) FROM pg_stat_activity WHERE {others}")
        await asyncio.gather(caller, return_exceptions=True)
    answers = [await answer_of(both[0], entry) for entry in asked]
    assert [await answer_of(both[1], entry) for entry in asked] == answers
    assert await sound(enemy)
    for poster in both:
        await poster.close()
    await enemy.close()


async def answer_of(poster: Poster, entry: Entry) -> PostingRefusal | None:
    for _ in range(3):
        try:
            return (await poster.post([entry]))[0].refusal
        except DatabaseFault:
            continue
    raise AssertionError("the database does not come back")
