"""A process that appends events from several connections at once, and says which of its commits were acknowledged.

Run as `python -m tests.worlds.databases.event_writer URL NAME SEED TRANSACTIONS`. Each line it prints is one
acknowledged commit.
"""

import asyncio
import secrets
import sys
from random import Random

from tidemill.core.clock import Instant
from tidemill.core.events.log import SwitchThrown
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.store.clock import read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.events import events

CONNECTIONS = 4


class Abandoned(Exception):
    """A transaction that changed its mind."""


async def write(url: str, name: str, seed: str, transactions: int) -> None:
    database = await Database.open(url, DatabaseLimits(CONNECTIONS, statement_s=30, lock_s=10), name)
    ids = Ids(secrets.randbits)
    async with database.connection() as connection:
        now = await read_clock(connection)
    try:
        async with asyncio.TaskGroup() as group:
            for lane in range(CONNECTIONS):
                random = Random(f"{seed} {lane}")
                group.create_task(_lane(database, ids, now, f"{name}/{lane}", random, transactions))
    finally:
        await database.close()


async def _lane(database: Database, ids: Ids, now: Instant, name: str, random: Random, transactions: int) -> None:
    for number in range(transactions):
        words = [f"{name}/{number}/{part}" for part in range(random.randint(1, 4))]
        try:
            await _commit(database, ids, now, words, random)
        except Abandoned:
            continue
        except DatabaseFault:
            await asyncio.sleep(0.1)  # the server was killed; whether this commit counts, only the log can tell
            continue
        sys.stdout.write(" ".join(words) + "\n")
        sys.stdout.flush()


async def _commit(database: Database, ids: Ids, now: Instant, words: list[str], random: Random) -> None:
    async with database.transaction() as transaction:
        await events.append(transaction, [_event(word) for word in words[:1]], ids, now)
        if random.random() < 0.2:
            await asyncio.sleep(random.random() * 0.03)
        if words[1:]:
            await events.append(transaction, [_event(word) for word in words[1:]], ids, now)
        if random.random() < 0.1:
            raise Abandoned


def _event(word: str) -> SwitchThrown:
    return SwitchThrown("all", stopped=True, reason=word, by="ann")


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
