"""Money that comes into a pool from outside, for tests in which somebody has some."""

from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.core.settlement.rewards import customer_account
from tidemill.store.database import Database
from tidemill.store.ledger import ledger


async def deposit(database: Database, ids: Ids, account_id: UUID, amount_uc: int, now: Instant) -> None:
    """Put money into an account."""
    bank, account = LedgerAccount(AccountKind.EXTERNAL, name="bank"), customer_account(account_id)
    async with database.transaction() as transaction:
        await ledger.open_accounts(transaction, [bank, account], now)
        paid_in = Transfer(ids.new(now), bank.id, account.id, amount_uc, "credit", "deposit", "a test")
        (outcome,) = await ledger.post(transaction, [paid_in], ids, now)
        assert outcome.refusal is None, outcome.refusal
