"""A process that continues the audit trail without a pause, until it is killed.

Run as `python -m tests.worlds.databases.trail_sequencer URL`. It prints how many acts it chained, a line each time.
"""

import asyncio
import sys

from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.events import trail


async def run(url: str) -> None:
    database = await Database.open(url, DatabaseLimits(2, statement_s=30, lock_s=10), "sequencer")
    while True:
        if chained := await trail.continue_trail(database, limit=7):
            sys.stdout.write(f"{chained}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
