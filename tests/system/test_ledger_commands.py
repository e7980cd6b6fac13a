"""`tidemill ledger` on a pool that is up."""

import csv
import io
import secrets
from collections.abc import Iterator
from uuid import UUID

import pytest

from tests.places import reachable_directory
from tests.system.pool import Pool, pool_in
from tidemill.core.clock import DAY, Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, Hold, LedgerAccount, Transfer
from tidemill.store import ledger
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach

CUSTOMER = LedgerAccount(AccountKind.CUSTOMER, UUID(int=7))
BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home) as started:
        started.up().until_ready()
        yield started


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
