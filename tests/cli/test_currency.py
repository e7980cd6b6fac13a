"""A pool that calls its credit otherwise shows every amount in that name, and keeps its books as they are."""

import secrets
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.places import reachable_directory
from tests.worlds.pools.pool import Pool, Running, pool_in
from tests.worlds.pools.two_operators import two_operators
from tidemill.core.currency import CREDIT
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.ledger import ledger

CUSTOMER = LedgerAccount(AccountKind.CUSTOMER, UUID(int=7))
BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with reachable_directory() as home, pool_in(home, TIDEMILL_MONEY_CURRENCY="token") as started:
        yield started


@pytest.fixture(scope="module")
def up(pool: Pool) -> Running:
    running = pool.up()
    running.set_up()
    return running


async def test_every_amount_is_shown_in_the_pools_own_name_and_kept_under_one_word(pool: Pool, up: Running) -> None:
    ids = Ids(secrets.randbits)
    connection = await connect(attach(pool.home).program)
    async with connection.transaction():
        now = await read_clock(connection)
        await ledger.open_accounts(connection, [CUSTOMER, BANK], now)
        paid = Transfer(ids.new(now), BANK.id, CUSTOMER.id, 1_000_000, CREDIT, "deposit", "invoice:1")
        assert [one.refusal for one in await ledger.post(connection, [paid], ids, now)] == [None]
    await connection.close()

    assert up.get("/api/v1/marketplace/pricing", headers=up.operator).json()["currency"] == "token"
    account = f"/api/v1/ledger/accounts/{CUSTOMER.id}"
    assert up.get(account, headers=up.operator).json()["currency"] == "token"
    (line,) = up.get(f"{account}/statement", headers=up.operator).json()["items"]
    assert line["currency"] == "token"
    assert '"token"' in up.get(f"{account}/statement.csv", headers=up.operator).text
    assert pool.json("ledger", "show", f"customer:{CUSTOMER.owner_id}")["currency"] == "token"
    assert pool.json("ledger", "show", f"customer:{CUSTOMER.owner_id}@token")["id"] == str(CUSTOMER.id)


@pytest.mark.parametrize("written", ["token", CREDIT])
def test_either_name_means_the_same_money(pool: Pool, up: Running, tmp_path: Path, written: str) -> None:
    ann, _ = two_operators(up)
    asked = {"debit": str(BANK.id), "credit": str(CUSTOMER.id), "amount": "1", "reason": "lost", "currency": written}
    made = up.post("/api/v1/ledger/adjustments", json=asked, headers=ann.bearer)
    assert (made.status_code, made.json()["currency"]) == (201, "token")
    told = pool.run("ledger", "post", "--debit", "external:bank", "--credit", "commission", "--amount", "2",
                    "--reason", "found", "--currency", written, **ann.log_in(up, tmp_path))  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert {one["currency"] for one in pool.json("ledger", "adjustments")} == {"token"}
