"""`tidemill ledger archive` on a pool that is up: out of the database, into a file, and still proved."""

import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest

from tests.worlds.pools.pool import pool_in
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.store import partitions
from tidemill.store.clock import read_clock
from tidemill.store.database import connect
from tidemill.store.embedded import attach
from tidemill.store.ledger import ledger
from tidemill.store.ledger.archive import ArchiveRefusal

BANK, CUSTOMER = LedgerAccount(AccountKind.EXTERNAL, name="bank"), LedgerAccount(AccountKind.CUSTOMER, UUID(int=7))


async def post_long_ago(home: Path) -> str:
    """A transfer of a hundred days ago. Answers its month."""
    ids = Ids(secrets.randbits)
    owner = await connect(attach(home).owner)
    now = await read_clock(owner)
    then = Instant(now - 100 * DAY)
    await partitions.create(owner, then, now, now)
    async with owner.transaction():
        await ledger.open_accounts(owner, [BANK, CUSTOMER], then)
        await ledger.post(
            owner, [Transfer(ids.new(then), BANK.id, CUSTOMER.id, 5, "credit", "deposit", "x")], ids, then
        )
    await owner.close()
    return f"{datetime.fromtimestamp(then / SECOND, UTC):%Y-%m}"


@pytest.mark.timeout(120)
async def test_a_month_is_archived_and_everything_still_adds_up(place: Path, tmp_path: Path) -> None:
    with pool_in(place) as pool:
        pool.up().until_ready()
        month = await post_long_ago(place)
        assert "no month" in pool.run("ledger", "archive", "soon", "--to", str(tmp_path)).stderr
        archived = json.loads(pool.run("ledger", "archive", month, "--to", str(tmp_path), "--json").stdout)
        assert (archived["month"], archived["entries"]) == (month, "1")
        again = pool.run("ledger", "archive", month, "--to", str(tmp_path))
        assert (again.returncode, again.stderr) == (1, ArchiveRefusal.NO_SUCH_MONTH.sentence + "\n")
        assert archived["sha256"] in pool.run("ledger", "archives").stdout
        checked = json.loads(pool.run("ledger", "check", "--archives", str(tmp_path), "--json").stdout)
        assert [check["ok"] for check in checked] == [True] * 5
        (tmp_path / archived["file"]).unlink()
        assert pool.run("ledger", "check", "--archives", str(tmp_path)).returncode == 1
        told = pool.run("ledger", "show", str(CUSTOMER.id), "--at", "2020-01-01")
        assert "archived" in told.stderr
