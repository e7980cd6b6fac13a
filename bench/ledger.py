"""Transfers a second, beside pgbench's TPC-B on the same server in the same run.

Prints one line of JSON. A ratio is transfers a second over pgbench's transactions a second, as pgbench comes; what it
reaches with prepared statements is told beside. Ours are posted in batches of 5,000; and by 16 clients that post one
transfer a call, and ten. Each payment is followed by a commission to one account; `hot_ratio` is the speed with that
over the speed without. `refused_share` is what was refused for want of funds. Everything is measured in turns, so that
what else the machine does falls on all alike.
"""

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Self
from uuid import UUID

import uvloop

from tidemill import __version__
from tidemill.core.clock import SECOND, ClockRules, Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.store.address import tool_arguments
from tidemill.store.clock import DatabaseClock
from tidemill.store.database import Database, DatabaseLimits, connect
from tidemill.store.embedded import EmbeddedServer, tool
from tidemill.store.embedded.system_user import clean_environment
from tidemill.store.ledger import ledger
from tidemill.store.ledger.poster import BATCH_MAX, Poster
from tidemill.store.migrate import migrate

ACCOUNTS = 10_000
OWNERS = [LedgerAccount(AccountKind.CUSTOMER, UUID(int=number)) for number in range(1, ACCOUNTS)]
BANK = LedgerAccount(AccountKind.EXTERNAL, name="bank")
COMMISSION = LedgerAccount(AccountKind.COMMISSION)
FUNDS_UC = 6_000


class Customers:
    """Makes payments between random accounts, each followed by its commission if there is one."""

    def __init__(self, clock: DatabaseClock) -> None:
        self.clock = clock
        self.ids = Ids(secrets.randbits)
        self.random = Random(1)
        self.accounts = [owner.id for owner in OWNERS]
        self.commission_id = COMMISSION.id

    def transfers(self, count: int, *, commission: bool) -> list[Transfer]:
        now, new, draw, accounts = self.clock.now(), self.ids.new, self.random.random, self.accounts
        made: list[Transfer] = []
        while len(made) < count:
            debit, amount_uc = accounts[int(draw() * len(accounts))], 10 + int(draw() * 2000)
            credit = accounts[int(draw() * len(accounts))]
            made.append(Transfer(new(now), debit, credit, amount_uc, "credit", "reward", "task:bench"))
            if commission:
                fee_uc = amount_uc // 10
                made.append(Transfer(new(now), debit, self.commission_id, fee_uc, "credit", "fee", "task:bench"))
        return made


@dataclass
class Speed:
    """What was answered, of that refused, in which time."""

    answered: int = 0
    refused: int = 0
    seconds: float = 0

    @property
    def per_s(self) -> float:
        return self.answered / self.seconds


async def measure(speed: Speed, poster: Poster, transfers: list[Transfer], *, clients: int, per_call: int) -> None:
    """Clients that each post, wait for the answer and post again. What they post was made before the clock runs."""
    calls = iter([transfers[start : start + per_call] for start in range(0, len(transfers), per_call)])

    async def client() -> None:
        for call in calls:
            for outcome in await poster.post(call):
                speed.refused += outcome.refusal is not None

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    speed.seconds += time.perf_counter() - began
    speed.answered += len(transfers)


async def fund(poster: Poster, database: Database, now: Instant, ids: Ids) -> None:
    """Open the accounts and give each customer a little; a poster that has seen every account knows them all."""
    async with database.transaction() as transaction:
        await ledger.open_accounts(transaction, [*OWNERS, BANK, COMMISSION], now)
    await poster.post([Transfer(ids.new(now), BANK.id, o.id, FUNDS_UC, "credit", "deposit", "bench") for o in OWNERS])


@asynccontextmanager
async def a_pool() -> AsyncIterator[tuple[EmbeddedServer, Customers, Poster]]:
    """A server of its own with a fresh schema, and customers with a little money."""
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-", dir="/var/tmp") as place:
        os.chmod(place, 0o711)  # as root the server runs as another user
        server = EmbeddedServer(Path(place))
        await server.start()
        try:
            await migrate(server.urls, Ids(secrets.randbits), __version__)
            database = await Database.open(server.urls.program, DatabaseLimits(4, 60, 30), "bench")
            clock = await DatabaseClock.begin(database, ClockRules(SECOND, SECOND, SECOND))
            customers = Customers(clock)
            poster = Poster(database, clock, customers.ids)
            await fund(poster, database, clock.now(), customers.ids)
            yield server, customers, poster
            await poster.close()
            await database.close()
        finally:
            await server.stop()


async def beside_pgbench(rounds: int) -> dict[str, float]:
    async with a_pool() as (server, customers, poster):
        return await ratios(await Pgbench.prepared(server.superuser_url), customers, poster, rounds)


async def ratios(bench: "Pgbench", customers: Customers, poster: Poster, rounds: int) -> dict[str, float]:
    batched, plain, ones, tens = Speed(), Speed(), Speed(), Speed()
    pgbench_tps = prepared_tps = 0.0
    for _ in range(rounds):
        await measure(batched, poster, customers.transfers(100_000, commission=True), clients=2, per_call=BATCH_MAX)
        await measure(plain, poster, customers.transfers(100_000, commission=False), clients=2, per_call=BATCH_MAX)
        await measure(ones, poster, customers.transfers(30_000, commission=True), clients=16, per_call=1)
        await measure(tens, poster, customers.transfers(60_000, commission=True), clients=16, per_call=10)
        pgbench_tps += bench.tps(4, "simple") / rounds
        prepared_tps += bench.tps(4, "prepared") / rounds
    return {
        "transfers_per_s": round(batched.per_s),
        "pgbench_tps": round(pgbench_tps),
        "pgbench_prepared_tps": round(prepared_tps),
        "ratio": round(batched.per_s / pgbench_tps, 2),
        "ratio_16_clients_1_per_call": round(ones.per_s / pgbench_tps, 2),
        "ratio_16_clients_10_per_call": round(tens.per_s / pgbench_tps, 2),
        "hot_ratio": round(batched.per_s / plain.per_s, 2),
        "refused_share": round(batched.refused / batched.answered, 3),
    }


async def beside_an_empty_one(history: int, rounds: int) -> dict[str, float]:
    """What a transfer costs in a ledger with a history, over what it costs in an empty one. In turns, as ever."""
    async with a_pool() as (_, customers, old):
        filling, full, empty = Speed(), Speed(), Speed()
        while filling.answered < history:
            await measure(filling, old, customers.transfers(100_000, commission=True), clients=2, per_call=BATCH_MAX)
        for _ in range(rounds):
            async with a_pool() as (_, newcomers, new):
                for _ in range(10):
                    made = customers.transfers(20_000, commission=True)
                    await measure(full, old, made, clients=2, per_call=BATCH_MAX)
                    made = newcomers.transfers(20_000, commission=True)
                    await measure(empty, new, made, clients=2, per_call=BATCH_MAX)
    return {
        "history": filling.answered,
        "transfers_per_s_with_history": round(full.per_s),
        "transfers_per_s_empty": round(empty.per_s),
        "cost_ratio_with_history": round(empty.per_s / full.per_s, 2),
    }


class Pgbench:
    """TPC-B, scale 10, 16 clients, on a database of its own beside ours."""

    def __init__(self, superuser_url: str) -> None:
        self.url, password = tool_arguments(superuser_url.replace("/postgres?", "/bench?"))
        self.environment = {**clean_environment(), **password}

    @classmethod
    async def prepared(cls, superuser_url: str) -> Self:
        superuser = await connect(superuser_url)
        await superuser.execute("CREATE DATABASE bench")
        await superuser.close()
        bench = cls(superuser_url)
        bench.run("-i", "-q", "-s", "10")
        return bench

    def tps(self, seconds: int, protocol: str) -> float:
        output = self.run("-c", "16", "-j", "2", "-T", str(seconds), "-M", protocol)
        return float(next(line.split()[2] for line in output.splitlines() if line.startswith("tps = ")))

    def run(self, *arguments: str) -> str:
        command = [tool("pgbench"), *arguments, self.url]
        return subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True).stdout


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--rounds", type=int, default=3, help="how often each measurement is taken")
    parser.add_argument(
        "--history",
        type=int,
        default=0,
        help="instead, fill a ledger with so many transfers and compare it with an empty one; 10 million take minutes",
    )
    options = parser.parse_args()
    if options.history:
        figures = await beside_an_empty_one(options.history, options.rounds)
    else:
        figures = await beside_pgbench(options.rounds)
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    uvloop.run(main())
