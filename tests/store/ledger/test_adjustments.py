"""What operators do by hand: freezing, and adjustments that need two of them."""

import secrets
from dataclasses import replace
from uuid import UUID

import asyncpg
import pytest

from tests.worlds.databases.operator_rows import operators_of
from tidemill.core.accounts.operator_word import OperatorWord, OperatorWordRefusal
from tidemill.core.accounts.roles import name_of_account
from tidemill.core.clock import DAY, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.ids import Ids
from tidemill.core.ledger import (
    AccountKind,
    Adjustment,
    AdjustmentRefusal,
    AdjustmentState,
    FreezeRefusal,
    LedgerAccount,
    PostingRefusal,
)
from tidemill.core.reasons import ReasonRefusal
from tidemill.core.refusals import Refusal
from tidemill.core.settings.sections.trail import TrailSettings
from tidemill.store.accounts import operator_words
from tidemill.store.clock import read_clock
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.ledger import adjustments, books, ledger

BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")
CUSTOMER = LedgerAccount(AccountKind.CUSTOMER, UUID(int=1))
ANN, BOB, NEWCOMER, OLDER = (name_of_account(UUID(int=number)) for number in (11, 12, 13, 14))
IDS = Ids(secrets.randbits)


@pytest.fixture
async def asked(database: Database) -> Adjustment:
    await operators_of(database, ANN, BOB)
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        await ledger.open_accounts(transaction, [BANK, CUSTOMER], now)
    return Adjustment(IDS.new(now), BANK.id, CUSTOMER.id, 5_000_000, "credit", "lost payment 17", ANN, now)


async def propose(database: Database, asked: Adjustment) -> Adjustment | Refusal:
    async with database.transaction() as transaction:
        word = await operator_words.read(transaction, asked.proposed_by, TrailSettings())
        return await adjustments.propose_adjustment(transaction, asked, word, IDS)


async def settle(database: Database, adjustment_id: UUID, *, by: str, now: Instant, approve: bool = True) -> object:
    async with database.transaction() as transaction:
        word = await operator_words.read(transaction, by, TrailSettings())
        return await adjustments.settle_adjustment(
            transaction, adjustment_id, approve=approve, word=word, ids=IDS, now=now
        )


async def posted(database: Database) -> int:
    async with database.connection() as connection:
        (customer,) = await books.balances(connection, ids=[CUSTOMER.id])
    return customer.posted_uc


async def test_two_operators_post_an_adjustment_once(database: Database, asked: Adjustment) -> None:
    now = asked.proposed_at
    assert await propose(database, asked) == asked
    assert await posted(database) == 0
    assert await settle(database, asked.id, by=ANN, now=now) is AdjustmentRefusal.SECOND_OPERATOR_NEEDED
    settled = await settle(database, asked.id, by=BOB, now=now)
    assert settled == replace(asked, state=AdjustmentState.APPROVED, decided_by=BOB, decided_at=now)
    assert await settle(database, asked.id, by=BOB, now=now) is AdjustmentRefusal.ALREADY_DECIDED
    assert await posted(database) == 5_000_000
    async with database.connection() as connection:
        (line,) = await books.statement(connection, CUSTOMER.id, None, 10)
        told = [one.kind for one in await events.read(connection, LOG_START, 100)]
    assert (line.id, line.kind, line.cause) == (asked.id, "adjustment", "lost payment 17")
    assert told[-3:] == ["ledger.adjustment_proposed", "ledger.posted", "ledger.adjustment_settled"]


async def test_who_has_just_been_given_the_role_is_no_second_operator(database: Database, asked: Adjustment) -> None:
    """One operator gave the role to a second account of theirs, which approved at once what the first had proposed."""
    now = asked.proposed_at
    await operators_of(database, NEWCOMER, since=now)
    await operators_of(database, OLDER, since=Instant(now - DAY))
    await propose(database, asked)
    assert await settle(database, asked.id, by=NEWCOMER, now=now) is OperatorWordRefusal.OPERATOR_TOO_NEW
    by_newcomer = replace(asked, id=IDS.new(now), proposed_by=NEWCOMER)
    assert await propose(database, by_newcomer) is OperatorWordRefusal.OPERATOR_TOO_NEW
    assert isinstance(await settle(database, asked.id, by=OLDER, now=now), Adjustment)


async def test_a_rejected_adjustment_is_never_posted(database: Database, asked: Adjustment) -> None:
    now = asked.proposed_at
    await propose(database, asked)
    assert isinstance(await settle(database, asked.id, by=ANN, now=now, approve=False), Adjustment)
    assert await settle(database, asked.id, by=BOB, now=now) is AdjustmentRefusal.ALREADY_DECIDED
    assert await posted(database) == 0


async def test_an_adjustment_that_cannot_be_posted_stays_proposed(database: Database, asked: Adjustment) -> None:
    now = asked.proposed_at
    backwards = replace(asked, debit_id=CUSTOMER.id, credit_id=BANK.id)
    await propose(database, backwards)
    with pytest.raises(RuntimeError, match="INSUFFICIENT_FUNDS"):
        async with database.transaction() as transaction:
            answer = await adjustments.settle_adjustment(
                transaction, backwards.id, approve=True, word=OperatorWord(BOB, Instant(0)), ids=IDS, now=now
            )
            raise RuntimeError(str(answer))
    async with database.connection() as connection:
        (waiting,) = await adjustments.adjustments(connection, state=AdjustmentState.PROPOSED)
    assert waiting == backwards


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ({"reason": "  "}, ReasonRefusal.REASON_MISSING),
        ({"amount_uc": 0}, PostingRefusal.AMOUNT_OUT_OF_BOUNDS),
        ({"amount_uc": 10**16}, PostingRefusal.AMOUNT_OUT_OF_BOUNDS),
        ({"credit_id": BANK.id}, PostingRefusal.SAME_ACCOUNT),
        ({"credit_id": UUID(int=9)}, PostingRefusal.UNKNOWN_ACCOUNT),
        ({"currency": "euro"}, PostingRefusal.CURRENCY_MISMATCH),
    ],
)
async def test_what_is_wrong_at_once_is_refused_at_once(
    database: Database, asked: Adjustment, wrong: dict[str, object], refusal: Refusal
) -> None:
    assert await propose(database, replace(asked, **wrong)) is refusal  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE adjustment SET state = 'approved', decided_by = 'bob', decided_at = now()",
        "SELECT settle_adjustment(id, 'approved', proposed_by, now(), now()) FROM adjustment",
        "SELECT settle_adjustment(id, 'approved', 'operator', now(), now()) FROM adjustment",
        "SELECT settle_adjustment(id, 'approved', 'root', now(), now()) FROM adjustment",
        f"SELECT settle_adjustment(id, 'approved', '{NEWCOMER}', now() - interval '1 day', now()) FROM adjustment",
        "INSERT INTO adjustment SELECT * FROM adjustment",
        "DELETE FROM adjustment",
    ],
)
async def test_the_database_lets_nobody_approve_alone(database: Database, asked: Adjustment, statement: str) -> None:
    await operators_of(database, NEWCOMER, since=asked.proposed_at)
    await propose(database, asked)
    async with database.connection() as connection:
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.CheckViolationError)):
            await connection.execute(statement)


async def test_the_database_posts_no_adjustment_that_was_not_approved(database: Database, asked: Adjustment) -> None:
    await propose(database, asked)
    for entry in (asked.transfer, replace(asked.transfer, id=IDS.new(asked.proposed_at))):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            async with database.transaction() as transaction:
                await ledger.post(transaction, [entry], IDS, asked.proposed_at)
    assert await posted(database) == 0


async def test_a_frozen_account_is_frozen_once_and_the_log_says_why(database: Database, asked: Adjustment) -> None:
    now = asked.proposed_at
    for frozen, again in ((True, FreezeRefusal.ALREADY_FROZEN), (False, FreezeRefusal.NOT_FROZEN)):
        async with database.transaction() as transaction:
            changed = await adjustments.set_frozen(
                transaction, CUSTOMER.id, frozen=frozen, reason="stolen card", by=ANN, ids=IDS, now=now
            )
            assert isinstance(changed, books.Balance)
            assert changed.frozen is frozen
            told = await adjustments.set_frozen(
                transaction, CUSTOMER.id, frozen=frozen, reason="again", by=ANN, ids=IDS, now=now
            )
            assert told is again
    async with database.connection() as connection:
        log = [one for one in await events.read(connection, LOG_START, 100) if one.kind == "ledger.account_frozen"]
    assert [one.body["frozen"] for one in log] == [True, False]
    assert log[0].body["reason"] == "stolen card"
