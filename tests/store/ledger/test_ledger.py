"""The ledger on a real server, beside a model in plain Python; and what nobody can do to it."""

import asyncio
import secrets
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.clocks import HandClock
from tests.worlds.databases.ledger_model import Mischief, Model, some_accounts
from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import LOG_START, LedgerPosted
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, Entry, Hold, LedgerAccount, PostingRefusal, Release, Transfer
from tidemill.core.ledger.posting import POSTED
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, connect
from tidemill.store.events import events
from tidemill.store.ledger import books, ledger
from tidemill.store.ledger.poster import Poster
from tidemill.store.query import Connection


async def compare(database: Database, ids: Ids, seed: int, steps: int) -> None:
    """Random batches, one after the other, to the ledger and to the model: answers and books must be the same.

    Most go through a poster, which remembers; some do not, and what it remembers is then out of date.
    """
    async with database.connection() as connection:
        now = await read_clock(connection)
        accounts = some_accounts(ids.new(now))
        await ledger.open_accounts(connection, accounts, now)
    model, clock = Model({account.id: account for account in accounts}), HandClock(now)
    poster = Poster(database, clock, ids)
    mischief, random, done = Mischief(seed, accounts), Random(seed), 0
    while done < steps:
        clock.at = now = Instant(now + random.randint(0, 5) * SECOND)
        if random.random() < 0.3:
            await set_frozen(database, model, random)
        batch = mischief.batch(now)
        if random.random() < 0.8:
            outcomes = await poster.post(batch)
        else:
            async with database.transaction() as transaction:
                outcomes = await ledger.post(transaction, batch, ids, now)
        expected = model.post(batch, now)
        for entry, outcome, refusal in zip(batch, outcomes, expected, strict=True):
            assert outcome.refusal == refusal, f"seed {seed}: {entry}"
        await same_books(database, model, seed)
        model.forget()
        done += len(batch)
    await poster.close()
    await same_reading(database, model)


async def set_frozen(database: Database, model: Model, random: Random) -> None:
    model.frozen = {account_id for account_id in model.accounts if random.random() < 0.03}
    async with database.transaction() as transaction:
        for account_id in model.accounts:
            await transaction.execute("SELECT set_frozen($1, $2)", account_id, account_id in model.frozen)


async def same_books(database: Database, model: Model, seed: int) -> None:
    async with database.connection() as connection:
        rows = await connection.fetch(
            "SELECT * FROM ledger_account WHERE id = ANY($1) AND floored", list(model.accounts)
        )
        open_holds = await connection.fetch(
            "SELECT id, amount_uc - captured_uc - released_uc AS left_uc FROM hold "
            "WHERE captured_uc + released_uc < amount_uc AND account_id = ANY($1)",
            list(model.accounts),
        )
    for row in rows:
        account_id = row["id"]
        books = (row["posted_uc"], row["held_uc"])
        assert books == (model.posted.get(account_id, 0), model.held(account_id)), f"seed {seed}"
    lefts = {hold_id: left for hold_id, (_, left) in model.holds.items() if left}
    assert {row["id"]: row["left_uc"] for row in open_holds} == lefts, f"seed {seed}"


async def same_reading(database: Database, model: Model) -> None:
    """Balances, sums of statements and the check say what the model says."""
    async with database.connection() as connection:
        for balance in await books.balances(connection, ids=list(model.accounts)):
            lines = await whole_statement(connection, balance.id)
            assert balance.posted_uc == sum(line.amount_uc for line in lines) == model.posted.get(balance.id, 0)
            assert [line.number for line in lines] == sorted({line.number for line in lines}, reverse=True)
            if lines:
                middle = lines[len(lines) // 2].at
                then_uc = sum(line.amount_uc for line in lines if line.at <= middle)
                assert await books.balance_at(connection, balance.id, middle) == then_uc
        assert [check for check in await books.check_books(connection) if not check.ok] == []


async def whole_statement(connection: Connection, account_id: UUID) -> list[books.StatementLine]:
    lines: list[books.StatementLine] = []
    while page := await books.statement(connection, account_id, lines[-1].number if lines else None, 37):
        lines += page
    return lines


async def test_the_ledger_does_what_the_model_does(database: Database, ids: Ids) -> None:
    for seed in range(8):
        await compare(database, ids, seed, 10_000)


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
async def test_the_ledger_does_what_the_model_does_for_ten_million_steps(database: Database, ids: Ids) -> None:
    for seed in range(100, 200):
        await compare(database, ids, seed, 100_000)


OPENED = LedgerAccount(AccountKind.CUSTOMER, UUID(int=1))
OTHER = LedgerAccount(AccountKind.CUSTOMER, UUID(int=2))
WORLD = LedgerAccount(AccountKind.EXTERNAL, name="bank")


@pytest.fixture
async def now(database: Database) -> Instant:
    """Three accounts are open, and one has a hundred micro-credits."""
    async with database.transaction() as transaction:
        at = await read_clock(transaction)
        await ledger.open_accounts(transaction, [OPENED, OTHER, WORLD], at)
        await ledger.post(transaction, [transfer(at, WORLD, OPENED, 100)], Ids(secrets.randbits), at)
    return at


def transfer(at: Instant, debit: LedgerAccount, credit: LedgerAccount, amount_uc: int, **more: Any) -> Transfer:
    return Transfer(Ids(secrets.randbits).new(at), debit.id, credit.id, amount_uc, "credit", "test", "test", **more)


async def post(database: Database, now: Instant, *batch: Entry) -> list[PostingRefusal | None]:
    async with database.transaction() as transaction:
        return [outcome.refusal for outcome in await ledger.post(transaction, batch, Ids(secrets.randbits), now)]


async def test_a_transfer_may_rely_on_an_earlier_one_of_its_batch(database: Database, now: Instant) -> None:
    there, back = transfer(now, OPENED, OTHER, 100), transfer(now, OTHER, OPENED, 100)
    assert await post(database, now, back, there) == [PostingRefusal.INSUFFICIENT_FUNDS, None]
    assert await post(database, now, transfer(now, OTHER, OPENED, 60), transfer(now, OPENED, OTHER, 60)) == [None, None]


async def test_the_same_id_gets_the_same_answer_whatever_has_happened_since(database: Database, now: Instant) -> None:
    posted, refused = transfer(now, OPENED, OTHER, 100), transfer(now, OPENED, OTHER, 1)
    for _ in range(3):
        assert await post(database, now, posted, refused) == [None, PostingRefusal.INSUFFICIENT_FUNDS]
    await post(database, now, transfer(now, WORLD, OPENED, 500))
    assert await post(database, now, refused) == [PostingRefusal.INSUFFICIENT_FUNDS]
    assert await post(database, now, replace(posted, amount_uc=99)) == [PostingRefusal.ID_REUSED]


async def test_many_clients_at_once_never_overdraw(database: Database, now: Instant) -> None:
    answers = await asyncio.gather(*(post(database, now, transfer(now, OPENED, OTHER, 10)) for _ in range(30)))
    assert [answer for (answer,) in answers].count(None) == 10


async def test_a_hold_is_captured_in_parts_and_the_rest_released(database: Database, now: Instant) -> None:
    new = Ids(secrets.randbits).new
    hold = Hold(new(now), OPENED.id, 80, "credit", Instant(now + 60 * SECOND), "job")
    assert await post(database, now, hold, transfer(now, OPENED, OTHER, 21)) == [
        None,
        PostingRefusal.INSUFFICIENT_FUNDS,
    ]
    parts = [transfer(now, OPENED, OTHER, 30, hold_id=hold.id), transfer(now, OPENED, WORLD, 10, hold_id=hold.id)]
    assert await post(database, now, *parts) == [None, None]
    rest = [Release(new(now), hold.id, "done"), transfer(now, OPENED, OTHER, 60)]
    assert await post(database, now, *rest) == [None, None]
    assert await post(database, now, transfer(now, OPENED, OTHER, 1, hold_id=hold.id)) == [PostingRefusal.HOLD_OVER]


async def test_nothing_can_be_captured_from_a_hold_that_has_expired(database: Database, now: Instant) -> None:
    hold = Hold(Ids(secrets.randbits).new(now), OPENED.id, 80, "credit", Instant(now + SECOND), "job")
    assert await post(database, now, hold) == [None]
    later = Instant(now + SECOND)
    assert await post(database, later, transfer(later, OPENED, OTHER, 1, hold_id=hold.id)) == [PostingRefusal.HOLD_OVER]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfer SET amount_uc = 1",
        "DELETE FROM transfer",
        "TRUNCATE transfer",
        "INSERT INTO transfer SELECT * FROM transfer",
        "UPDATE ledger_account SET posted_uc = posted_uc + 1",
        "INSERT INTO ledger_account SELECT * FROM ledger_account",
        "SELECT setval('ledger_number', 0)",
        "INSERT INTO refused_entry SELECT * FROM refused_entry",
        "UPDATE hold SET amount_uc = 1",
        "DELETE FROM refused_entry",
        "UPDATE ledger_account SET floored = false",
        "UPDATE ledger_account SET frozen = false",
    ],
)
async def test_the_program_cannot_touch_the_books(database: Database, now: Instant, statement: str) -> None:
    async with database.connection() as connection:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)


NOTHING_ID = UUID(int=99)


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount_uc": 101},
        {"amount_uc": 0},
        {"amount_uc": -5},
        {"credit_id": OPENED.id},
        {"credit_id": NOTHING_ID},
        {"currency": "euro"},
        {"hold_id": NOTHING_ID},
        {"kind": "adjustment"},
    ],
)
async def test_the_database_refuses_what_a_wrong_decision_would_post(
    database: Database, now: Instant, wrong: dict[str, Any]
) -> None:
    await write_wrongly(database, now, replace(transfer(now, OPENED, OTHER, 100), **wrong))


@pytest.mark.parametrize("account", [LedgerAccount(AccountKind.CUSTOMER, UUID(int=7)), WORLD])
async def test_the_database_refuses_a_hold_on_what_cannot_be_held(
    database: Database, now: Instant, account: LedgerAccount
) -> None:
    new_id = Ids(secrets.randbits).new(now)
    await write_wrongly(database, now, Hold(new_id, account.id, 1, "credit", Instant(now + SECOND), "job"))


async def test_the_database_refuses_a_release_of_nothing(database: Database, now: Instant) -> None:
    await write_wrongly(database, now, Release(Ids(secrets.randbits).new(now), NOTHING_ID, "x"))


async def write_wrongly(database: Database, now: Instant, entry: Entry) -> None:
    """Write an entry down that should have been refused: the database does not take it."""
    decision = ledger.PostingDecision([POSTED], [entry], [], {WORLD.id})
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        async with database.transaction() as transaction:
            await ledger.write(transaction, await ledger.lock(transaction), decision, Ids(secrets.randbits), now)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM transfer") == 1
        assert [check for check in await books.check_books(connection) if not check.ok] == []


async def test_a_decision_on_older_books_is_not_written(database: Database, now: Instant) -> None:
    entry, ids = transfer(now, OPENED, OTHER, 100), Ids(secrets.randbits)
    decision = ledger.PostingDecision([POSTED], [entry], [], set())
    async with database.transaction() as transaction:
        number = await ledger.lock(transaction)
    assert await post(database, now, transfer(now, OPENED, OTHER, 1)) == [None]
    async with database.connection() as connection:
        assert await ledger.write(connection, number, decision, ids, now) is None
    async with database.transaction() as transaction:
        number = await ledger.lock(transaction)
        known = ledger.PostingDecision(
            [POSTED], [transfer(now, WORLD, OTHER, 1), await first_posted(transaction)], [], {WORLD.id}
        )
        assert await ledger.write(transaction, number, known, ids, now) is None


async def first_posted(connection: Connection) -> Transfer:
    row = await connection.fetchrow("SELECT * FROM transfer ORDER BY number LIMIT 1")
    assert row
    fields = {name: value for name, value in row.items() if name not in ("at", "number")}
    return Transfer(**fields)


async def test_the_database_lets_nobody_out_of_a_frozen_account(database: Database, now: Instant) -> None:
    async with database.connection() as connection:
        await connection.execute("SELECT set_frozen($1, true)", OPENED.id)
    await write_wrongly(database, now, transfer(now, OPENED, OTHER, 1))
    assert await post(database, now, transfer(now, OPENED, OTHER, 1)) == [PostingRefusal.ACCOUNT_FROZEN]


@pytest.mark.parametrize(
    ("tampering", "noticed"),
    [
        ("UPDATE ledger_account SET posted_uc = posted_uc + 1 WHERE posted_uc > 0", "balances"),
        ("UPDATE transfer SET amount_uc = amount_uc - 1", "balances"),
        ("DELETE FROM transfer", "balances"),
        ("UPDATE ledger_account SET held_uc = 1 WHERE posted_uc > 0", "balances"),
        ("UPDATE hold SET captured_uc = 1", "holds"),
        ("UPDATE transfer SET credit_id = id", "sum"),
        ("UPDATE transfer SET currency = 'euro'", "sum"),
    ],
)
async def test_the_check_notices_whoever_tampers_with_the_books(
    database: Database, urls: DatabaseUrls, now: Instant, tampering: str, noticed: str
) -> None:
    hold = Hold(Ids(secrets.randbits).new(now), OPENED.id, 80, "credit", Instant(now + SECOND), "job")
    await post(database, now, hold)
    owner = await connect(urls.owner)
    assert [check for check in await books.check_books(owner) if not check.ok] == []
    await owner.execute(tampering)
    assert noticed in [check.name for check in await books.check_books(owner) if not check.ok]
    await owner.close()


async def test_small_posts_of_many_callers_share_batches_and_keep_their_order(database: Database, now: Instant) -> None:
    poster = Poster(database, HandClock(now), Ids(secrets.randbits))
    there = [transfer(now, OPENED, OTHER, 1) for _ in range(100)]
    answers = await asyncio.gather(
        *(poster.post([one]) for one in there), poster.post([transfer(now, OPENED, OTHER, 1)])
    )
    assert [outcome.refusal for (outcome,) in answers] == [None] * 100 + [PostingRefusal.INSUFFICIENT_FUNDS]
    async with database.connection() as connection:
        batches = [one for one in await events.read(connection, LOG_START, 100) if one.kind == LedgerPosted.kind]
    assert len(batches) < 10
    assert sum(one.body["posted"] for one in batches) == 101
    await poster.close()


async def test_posters_of_two_processes_never_overdraw_together(database: Database, now: Instant) -> None:
    posters = [Poster(database, HandClock(now), Ids(secrets.randbits)) for _ in range(2)]
    tries = [transfer(now, OPENED, OTHER, 1) for _ in range(160)]
    answers = await asyncio.gather(*(posters[at % 2].post([one]) for at, one in enumerate(tries)))
    assert [outcome.refusal for (outcome,) in answers].count(None) == 100
    again = await asyncio.gather(*(posters[(at + 1) % 2].post([one]) for at, one in enumerate(tries)))
    assert [outcome.refusal for (outcome,) in again] == [outcome.refusal for (outcome,) in answers]
    for poster in posters:
        await poster.close()


async def test_a_poster_whose_connection_is_cut_looks_again(database: Database, now: Instant) -> None:
    poster = Poster(database, HandClock(now), Ids(secrets.randbits))
    assert (await poster.post([transfer(now, OPENED, OTHER, 60)]))[0].refusal is None
    assert await post(database, now, transfer(now, OTHER, OPENED, 60)) == [None]
    async with database.connection() as connection:
        others = "usename = current_user AND pid <> pg_backend_pid()"
        await connection.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")
    cut = transfer(now, OPENED, OTHER, 90)
    with suppress(DatabaseFault):
        await poster.post([cut])
    assert (await poster.post([cut]))[0].refusal is None
    await poster.close()


async def test_a_link_ends_with_its_caller(database: Database, now: Instant) -> None:
    poster = Poster(database, HandClock(now), Ids(secrets.randbits))
    first = poster.post([replace(transfer(now, OPENED, OTHER, 10), linked=True)])
    second = poster.post([transfer(now, OPENED, OTHER, 1000)])
    ((one,), (two,)) = await asyncio.gather(first, second)
    assert (one.refusal, two.refusal) == (None, PostingRefusal.INSUFFICIENT_FUNDS)


async def test_a_bug_in_one_entry_is_told_to_its_caller_alone(database: Database, now: Instant) -> None:
    poster = Poster(database, HandClock(now), Ids(secrets.randbits))
    unapproved = replace(transfer(now, OPENED, OTHER, 1), kind="adjustment")
    asked = [transfer(now, OPENED, OTHER, 1), unapproved, transfer(now, OPENED, OTHER, 1)]
    one, bug, other = await asyncio.gather(*(poster.post([entry]) for entry in asked), return_exceptions=True)
    assert isinstance(bug, asyncpg.IntegrityConstraintViolationError)
    for answer in (one, other, await poster.post([transfer(now, OPENED, OTHER, 1)])):
        assert isinstance(answer, list)
        assert answer[0].refusal is None
    await poster.close()


@pytest.mark.parametrize("cause", ["", "a\0b", "a\ud800b", "x" * 2_001])
def test_what_cannot_be_stored_cannot_be_asked_for(cause: str) -> None:
    with pytest.raises(AssertionError):
        Transfer(NOTHING_ID, OPENED.id, OTHER.id, 1, "credit", "test", cause)


@pytest.mark.parametrize(
    "cause", ['"', "\\", '\\"', "NULL", "{}", ",", "a\nb", "ünïcödé 漢字 🌊", "x" * 2_000, "'", "\x1f"]
)
async def test_a_cause_is_kept_as_it_was_given(database: Database, now: Instant, cause: str) -> None:
    posted = [
        replace(transfer(now, OPENED, OTHER, 1), cause=cause),
        replace(transfer(now, OPENED, OTHER, 999), cause=cause),
    ]
    answers = [None, PostingRefusal.INSUFFICIENT_FUNDS]
    assert await post(database, now, *posted) == await post(database, now, *posted) == answers
    async with database.connection() as connection:
        (line,) = await books.statement(connection, OTHER.id, None, 10)
    assert line.cause == cause
