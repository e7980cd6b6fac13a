"""Transfers a second, beside pgbench's TPC-B on the same server in the same run.

Prints one line of JSON:
{"transfers_per_s": …, "pgbench_tps": …, "ratio": …}
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
from pathlib import Path
from random import Random
from uuid import UUID

from tidemill import __version__
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, LedgerAccount, Transfer
from tidemill.store import ledger
from tidemill.store.address import tool_arguments
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, Limits, connect
from tidemill.store.embedded import EmbeddedServer, tool
from tidemill.store.embedded.account import clean_environment
from tidemill.store.migrate import migrate

ACCOUNTS = 10_000
BATCH = 5_000
SECONDS = 8


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-", dir="/var/tmp") as place:
        os.chmod(place, 0o711)  # as root the server runs as another user
        home = Path(place)
        server = EmbeddedServer(home)
        await server.start()
        try:
            await migrate(server.urls, Ids(secrets.randbits), __version__)
            transfers_per_s = await ours(server.urls.program)
            pgbench_tps = await theirs(server.superuser_url)
        finally:
            await server.stop()
    figures = {
        "transfers_per_s": round(transfers_per_s),
        "pgbench_tps": round(pgbench_tps),
        "ratio": round(transfers_per_s / pgbench_tps, 2),
    }
    sys.stdout.write(json.dumps(figures) + "\n")


async def ours(url: str) -> float:
    ids, random = Ids(secrets.randbits), Random(1)
    database = await Database.open(url, Limits(2, 60, 30), "bench")
    owners = [LedgerAccount(AccountKind.CUSTOMER, UUID(int=number)) for number in range(1, ACCOUNTS)]
    external, commission = LedgerAccount(AccountKind.EXTERNAL, name="bank"), LedgerAccount(AccountKind.COMMISSION)
    async with database.transaction() as transaction:
        now = await read_clock(transaction)
        await ledger.open_accounts(transaction, [*owners, external, commission], now)
        fund = [Transfer(ids.new(now), external.id, o.id, 10_000, "credit", "deposit", "bench") for o in owners]
        await ledger.post(transaction, fund, ids, now)
    owner_ids, commission_id = [owner.id for owner in owners], commission.id
    posted = 0
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        now = Instant(now + 1000)
        batch = [_transfer(ids, random, owner_ids, commission_id, now) for _ in range(BATCH)]
        async with database.transaction() as transaction:
            outcomes = await ledger.post(transaction, batch, ids, now)
        posted += len(outcomes)
    took = time.perf_counter() - began
    await database.close()
    return posted / took


def _transfer(ids: Ids, random: Random, owners: list[UUID], commission: UUID, now: Instant) -> Transfer:
    debit = owners[int(random.random() * len(owners))]
    credit = commission if random.random() < 0.1 else owners[int(random.random() * len(owners))]
    return Transfer(ids.new(now), debit, credit, 1 + int(random.random() * 2000), "credit", "reward", "task:bench")


async def theirs(url: str) -> float:
    superuser = await connect(url)
    await superuser.execute("CREATE DATABASE bench")
    await superuser.close()
    bench, password = tool_arguments(url.replace("/postgres?", "/bench?"))
    environment = {**clean_environment(), **password}
    subprocess.run([tool("pgbench"), "-i", "-q", "-s", "10", bench], env=environment, check=True, capture_output=True)
    command = [tool("pgbench"), "-c", "16", "-j", "2", "-T", str(SECONDS), "-M", "prepared", bench]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return float(next(line.split()[2] for line in output.splitlines() if line.startswith("tps = ")))


if __name__ == "__main__":
    asyncio.run(main())
