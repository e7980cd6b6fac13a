"""A process that posts from eight clients at once, and says of every transfer what it was told.

Run as `python -m tests.worlds.databases.ledger_client HOME NAME`. It prints `asked ID` before it posts and `told ID
ANSWER` after;
it ends only when it is killed, and outlives a database that is killed.
"""

import asyncio
import secrets
import sys
from pathlib import Path
from random import Random
from uuid import UUID

from tidemill.core.clock import SECOND, ClockRules
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.store.clock import DatabaseClock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.embedded import attach
from tidemill.store.ledger.poster import Poster

CLIENTS = 8
BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")
CUSTOMERS = [LedgerAccount(AccountKind.CUSTOMER, UUID(int=number)) for number in range(1, 21)]


async def run(home: Path, name: str) -> None:
    database = await Database.open(attach(home).program, DatabaseLimits(4, statement_s=10, lock_s=10), name)
    clock = await DatabaseClock.begin(database, ClockRules(SECOND, SECOND, SECOND))
    ids = Ids(secrets.randbits)
    poster = Poster(database, clock, ids)
    await asyncio.gather(*(_client(poster, clock, ids, Random(f"{name} {lane}")) for lane in range(CLIENTS)))


async def _client(poster: Poster, clock: DatabaseClock, ids: Ids, random: Random) -> None:
    while True:
        transfer = _some_transfer(ids.new(clock.now()), random)
        _say("asked", transfer.id, f"{transfer.debit_id} {transfer.credit_id} {transfer.amount_uc}")
        for _ in range(3):
            try:
                (outcome,) = await poster.post([transfer])
            except DatabaseFault:
                await asyncio.sleep(0.2)  # the same id again, until there is an answer
                continue
            _say("told", transfer.id, outcome.refusal.code if outcome.refusal else "posted")
            break


def _some_transfer(transfer_id: UUID, random: Random) -> Transfer:
    debit, credit = random.sample(CUSTOMERS, 2)
    if random.random() < 0.2:
        debit = BANK
    return Transfer(transfer_id, debit.id, credit.id, random.randint(1, 500), "credit", "test", "test")


def _say(what: str, transfer_id: UUID, more: str) -> None:
    sys.stdout.write(f"{what} {transfer_id} {more}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), sys.argv[2]))
