"""`tidemill ledger` on a pool that is up."""

import csv
import io
import json
import secrets
import subprocess
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.people import people_of
from tests.worlds.pools.pool import Pool, pool_in
from tests.worlds.pools.two_operators import Operator, two_operators
from tidemill.cli.client.local_pool import operator_name
from tidemill.core.accounts.operator_word import OperatorWord
from tidemill.core.accounts.roles import Role, Scope, name_of_account
from tidemill.core.clock import DAY, Instant
from tidemill.core.ids import Ids, short_id
from tidemill.core.ledger import (
    AccountKind,
    AccountRefusal,
    Adjustment,
    AdjustmentRefusal,
    Hold,
    LedgerAccount,
    PostingRefusal,
    Transfer,
)
from tidemill.core.money import MoneyRefusal
from tidemill.core.reasons import ReasonRefusal
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.ledger import adjustments, ledger

CUSTOMER = LedgerAccount(AccountKind.CUSTOMER, UUID(int=7))
BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")

ANN = name_of_account(UUID(int=11))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home) as started:
        started.up().set_up()
        yield started


@pytest.fixture(scope="module")
def operators(pool: Pool) -> tuple[dict[str, str], dict[str, str]]:
    """The environments of two operators who are logged in."""
    ann, bob = two_operators(pool.running[0])
    return ann.log_in(pool.running[0], pool.home / "ann"), bob.log_in(pool.running[0], pool.home / "bob")


async def test_the_books_can_be_read_in_every_form(pool: Pool) -> None:
    ids = Ids(secrets.randbits)
    connection = await connect(attach(pool.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        await ledger.open_accounts(connection, [CUSTOMER, BANK], now)
        paid = Transfer(ids.new(now), BANK.id, CUSTOMER.id, 12_500_000, "credit", "deposit", "invoice:1")
        hold = Hold(ids.new(now), CUSTOMER.id, 500_001, "credit", Instant(now + DAY), "job:1")
        assert [outcome.refusal for outcome in await ledger.post(connection, [paid, hold], ids, now)] == [None, None]
    await connection.close()

    listed = {account["kind"]: account for account in pool.json("ledger", "accounts")}
    assert (listed["customer"]["posted"], listed["customer"]["held"]) == ("12.5", "0.500001")
    assert listed["customer"]["available"] == "11.999999"
    assert listed["external"]["posted"] == "-12.5"
    shown = pool.json("ledger", "show", str(CUSTOMER.id))
    assert [(line["amount"], line["cause"]) for line in shown["lines"]] == [("12.5", "invoice:1")]
    past = pool.json("ledger", "show", str(CUSTOMER.id), "--at", "2020-01-01")
    assert past["posted_then"] == "0"
    rows = list(csv.DictReader(io.StringIO(pool.run("ledger", "show", str(CUSTOMER.id), "--csv").stdout)))
    assert rows[0]["transfer"] == str(paid.id)
    assert [one["hold"] for one in pool.json("ledger", "holds")] == [str(hold.id)]
    assert pool.run("ledger", "check").returncode == 0
    for arguments in (["accounts"], ["show", str(CUSTOMER.id)], ["holds"], ["check"]):
        assert pool.run("ledger", *arguments).stdout
    assert pool.run("ledger", "show", str(UUID(int=9))).returncode == 1
    for text in (f"customer:{CUSTOMER.owner_id}", f"customer:{CUSTOMER.owner_id}@credit"):
        assert pool.json("ledger", "show", text) == shown
        assert [one["hold"] for one in pool.json("ledger", "holds", "--account", text)] == [str(hold.id)]
    assert pool.json("ledger", "show", "external:bank")["lines"][0]["amount"] == "-12.5"


def post(pool: Pool, *options: str, amount: str = "2.5", **settings: str) -> subprocess.CompletedProcess[str]:
    """Propose a gift of the bank's."""
    fixed = ("--debit", "external:bank", "--amount", amount, "--reason", "=lost payment 17")
    return pool.run("ledger", "post", *fixed, *options, **settings)


async def proposed_by_ann(pool: Pool, debit: LedgerAccount, credit: LedgerAccount) -> str:
    connection = await connect(attach(pool.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        await ledger.open_accounts(connection, [debit, credit], now)
        asked = Adjustment(Ids(secrets.randbits).new(now), debit.id, credit.id, 1, "credit", "by hand", ANN, now)
        word = OperatorWord(ANN, now)
        assert await adjustments.propose_adjustment(connection, asked, word, Ids(secrets.randbits)) == asked
    await connection.close()
    return str(asked.id)


Environments = tuple[dict[str, str], dict[str, str]]


def test_a_proposal_opens_its_accounts_and_waits_for_another_operator(pool: Pool, operators: Environments) -> None:
    ann, _ = operators
    customer = LedgerAccount(AccountKind.CUSTOMER, UUID(int=8))
    told = post(pool, "--credit", f"customer:{customer.owner_id}", **ann)
    assert (told.returncode, told.stdout) == (0, ""), told.stderr
    (waiting,) = [one for one in pool.json("ledger", "adjustments") if one["credit"] == str(customer.id)]
    assert f"`tidemill ledger approve {short_id(waiting['id'])}`" in told.stderr
    assert (waiting["amount"], waiting["currency"], waiting["state"]) == ("2.5", "credit", "proposed")
    assert (waiting["debit"], waiting["reason"]) == (str(BANK.id), "=lost payment 17")
    assert waiting["proposed_by"].startswith("account:")
    for text in (str(customer.id), short_id(customer.id)):
        assert pool.json("ledger", "show", text)["posted"] == "0", text
    assert "no such account" in pool.run("ledger", "show", "customer:00000008").stderr, "nobody has this id"

    alone = pool.run("ledger", "approve", waiting["id"], **ann)
    assert (alone.returncode, AdjustmentRefusal.SECOND_OPERATOR_NEEDED.sentence in alone.stderr) == (1, True)
    assert "this needs another operator: they run it after their own `tidemill login`" in alone.stderr
    taken_back = json.loads(pool.run("ledger", "reject", waiting["id"], "--json", **ann).stdout)
    assert (taken_back["state"], taken_back["decided_by"]) == ("rejected", waiting["proposed_by"])
    assert pool.run("ledger", "approve", waiting["id"], **ann).returncode == 1


def test_a_new_operators_word_is_said_beforehand_not_to_count_yet(pool: Pool, operators: Environments) -> None:
    with people_of(pool.running[0]) as people:
        bob = people.person(Role.CUSTOMER, second_factor=True)
        given = pool.run("admin", "roles", bob.address, "operator", "--reason", "our second")
        assert "Their word counts in decisions of two from 20" in given.stderr, given.stderr
        new = Operator(bob, people.session(bob), people.key(bob, Role.OPERATOR, Scope.POOL_WRITE))
    refused = post(pool, "--credit", "bonus_fund", **new.log_in(pool.running[0], pool.home / "new"))
    assert (refused.returncode, "your word counts from 20" in refused.stderr) == (1, True), refused.stderr
    assert "`trail.critical_delay_s`" in refused.stderr
    told = json.loads(post(pool, "--credit", "bonus_fund", "--json", **operators[0]).stdout)
    assert told["approvable_from"].startswith("1970"), "the other one who set the pool up counts at once"
    assert pool.run("admin", "roles", bob.address, "customer", "--reason", "was a trial").returncode == 0


def test_an_owner_is_written_as_their_address_or_their_id_whole_or_short(pool: Pool, operators: Environments) -> None:
    with people_of(pool.running[0]) as people:
        anna = people.person(Role.CUSTOMER)
    told = post(pool, "--credit", f"customer:{anna.address}", "--json", **operators[0])
    assert told.returncode == 0, told.stderr
    account = json.loads(told.stdout)["credit"]
    assert account == str(LedgerAccount(AccountKind.CUSTOMER, anna.id).id)
    for owner in (anna.address, str(anna.id), short_id(anna.id)):
        for text in (f"customer:{owner}", f"customer:{owner}@credit"):
            assert pool.json("ledger", "show", text)["id"] == account, text
    assert "no such account" in pool.run("ledger", "show", "customer:nobody@nowhere.example").stderr


async def test_whoever_has_the_machine_neither_proposes_nor_approves(pool: Pool) -> None:
    """They would be both: by the command, and by the token in the home."""
    asked = await proposed_by_ann(pool, BANK, LedgerAccount(AccountKind.CUSTOMER, UUID(int=12)))
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        alone = pool.run("ledger", "approve", asked, **{name: "bob"})
        assert (alone.returncode, AdjustmentRefusal.OWN_ACCOUNT_NEEDED.sentence in alone.stderr) == (1, True)
        assert "this needs the account of an operator: run `tidemill login`" in alone.stderr
    refused = post(pool, "--credit", "customer:00000000-0000-0000-0000-00000000000d")
    assert (refused.returncode, AdjustmentRefusal.OWN_ACCOUNT_NEEDED.sentence in refused.stderr) == (1, True)
    assert pool.json("ledger", "reject", asked)["state"] == "rejected"


async def test_a_second_operators_approval_posts_the_money(pool: Pool, operators: Environments) -> None:
    customer = LedgerAccount(AccountKind.CUSTOMER, UUID(int=9))
    asked = await proposed_by_ann(pool, BANK, customer)
    listed = pool.run("ledger", "adjustments", "--state", "proposed").stdout
    assert short_id(asked) in listed
    assert "external:bank" in listed
    approved = json.loads(pool.run("ledger", "approve", asked, "--json", **operators[1]).stdout)
    assert (approved["state"], approved["proposed_by"]) == ("approved", ANN)
    shown = pool.json("ledger", "show", f"customer:{customer.owner_id}")
    assert [(line["amount"], line["kind"], line["cause"]) for line in shown["lines"]] == [
        ("0.000001", "adjustment", "by hand")
    ]
    assert asked in {one["id"] for one in pool.json("ledger", "adjustments", "--state", "approved")}
    assert pool.run("ledger", "check").returncode == 0


async def test_an_approval_that_cannot_be_posted_leaves_the_adjustment_proposed(
    pool: Pool, operators: Environments
) -> None:
    asked = await proposed_by_ann(pool, LedgerAccount(AccountKind.BONUS_FUND), BANK)
    refused = pool.run("ledger", "approve", asked, **operators[1])
    assert (refused.returncode, "the account to debit has 0 available" in refused.stderr) == (1, True), refused.stderr
    assert asked in {one["id"] for one in pool.json("ledger", "adjustments", "--state", "proposed")}


def test_a_currency_is_told_once_or_with_each_account(pool: Pool, operators: Environments) -> None:
    ann, _ = operators
    in_euro = json.loads(post(pool, "--credit", "commission", "--currency", "euro", "--json", **ann).stdout)
    assert (in_euro["currency"], in_euro["amount"]) == ("euro", "2.5")
    assert pool.json("ledger", "show", "commission@euro")["id"] == in_euro["credit"]
    assert pool.json("ledger", "show", "external:bank@euro")["id"] == in_euro["debit"]
    mixed = post(pool, "--credit", "commission@pound", **ann)
    assert (mixed.returncode, mixed.stderr) == (1, PostingRefusal.CURRENCY_MISMATCH.sentence + "\n")
    assert pool.run("ledger", "show", "commission@pound").returncode == 1, "what was refused has opened nothing"


def test_an_account_is_frozen_and_unfrozen_with_a_reason(pool: Pool, operators: Environments) -> None:
    assert post(pool, "--credit", "audit_budget", **operators[0]).returncode == 0
    assert pool.json("ledger", "freeze", "audit_budget", "--reason", "inquiry")["frozen"] is True
    assert pool.run("ledger", "freeze", "audit_budget", "--reason", "again").returncode == 1
    assert "frozen" in pool.run("ledger", "show", "audit_budget").stdout
    assert "open again" in pool.run("ledger", "unfreeze", "audit_budget", "--reason", "over").stderr
    assert pool.run("ledger", "unfreeze", "audit_budget", "--reason", "again").returncode == 1
    log = [json.loads(line) for line in pool.run("events", "--json").stdout.splitlines()]
    told = [event["body"] for event in log if event["kind"] == "ledger.account_frozen"]
    assert [(one["frozen"], one["reason"], one["by"]) for one in told] == [
        (True, "inquiry", operator_name()),
        (False, "over", operator_name()),
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["show", "nonsense"], AccountRefusal.ACCOUNT_KIND_UNKNOWN.sentence),
        (["show", "customer"], AccountRefusal.ACCOUNT_OWNER_NEEDED.sentence),
        (["holds", "--account", "no way"], AccountRefusal.ACCOUNT_MALFORMED.sentence),
        (["freeze", "burn", "--reason", "x"], PostingRefusal.UNKNOWN_ACCOUNT.sentence),
        (["freeze", "external:bank", "--reason", " "], ReasonRefusal.REASON_MISSING.sentence),
        (["approve", str(UUID(int=1))], AdjustmentRefusal.UNKNOWN_ADJUSTMENT.sentence),
        (["reject", str(UUID(int=1))], AdjustmentRefusal.UNKNOWN_ADJUSTMENT.sentence),
    ],
)
def test_a_no_is_a_sentence(pool: Pool, arguments: list[str], sentence: str) -> None:
    done = pool.run("ledger", *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence + "\n")


@pytest.mark.parametrize(
    ("credit", "amount", "sentence"),
    [
        ("burn", "1e999999999", MoneyRefusal.AMOUNT_MALFORMED.sentence),
        ("burn", "0.0000001", MoneyRefusal.AMOUNT_TOO_FINE.sentence),
        ("burn", "-1", MoneyRefusal.AMOUNT_NEGATIVE.sentence),
        ("burn", "0", PostingRefusal.AMOUNT_OUT_OF_BOUNDS.sentence),
        ("external:bank", "1", PostingRefusal.SAME_ACCOUNT.sentence),
        (str(UUID(int=1)), "1", PostingRefusal.UNKNOWN_ACCOUNT.sentence),
    ],
)
def test_a_proposal_that_cannot_be_is_refused(
    pool: Pool, operators: Environments, credit: str, amount: str, sentence: str
) -> None:
    done = post(pool, "--credit", credit, amount=amount, **operators[0])
    assert (done.returncode, done.stdout, done.stderr) == (1, "", sentence + "\n")


async def test_csv_for_a_spreadsheet_holds_no_formula(pool: Pool) -> None:
    ids = Ids(secrets.randbits)
    customer = LedgerAccount(AccountKind.CUSTOMER, UUID(int=10))
    connection = await connect(attach(pool.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        await ledger.open_accounts(connection, [customer, BANK], now)
        await ledger.post(
            connection, [Transfer(ids.new(now), BANK.id, customer.id, 1, "credit", "deposit", "=1+1")], ids, now
        )
    await connection.close()
    rows = list(csv.DictReader(io.StringIO(pool.run("ledger", "show", "external:bank", "--csv").stdout)))
    assert (rows[0]["cause"], rows[0]["amount"]) == ("'=1+1", "-0.000001")
