"""A process with a limiter of its own, and callers that ask as fast as they can.

Run as `python -m tests.worlds.databases.limiter_process URL COUNT PER_US SECONDS`. It prints `used N` now and then,
and at its end
`done` with the instants of its first and last request and how many were allowed and refused.
"""

import asyncio
import sys

from tidemill.control.http.limiter import Limiter
from tidemill.core.clock import SECOND, ClockRules
from tidemill.core.rate_limits import Limit
from tidemill.store.clock import DatabaseClock
from tidemill.store.database import Database, DatabaseLimits

CALLERS = 20
KEY = "shared"


class Callers:
    """Ask until the time is over, and count the answers."""

    def __init__(self, limiter: Limiter, limit: Limit) -> None:
        self.limiter = limiter
        self.limit = limit
        self.allowed = 0
        self.refused = 0

    async def ask(self) -> None:
        while True:
            if (await self.limiter.allowed(KEY, self.limit)).allowed:
                self.allowed += 1
                if self.allowed % 100 == 0:
                    _say("used", self.allowed)
                await asyncio.sleep(0)
            else:
                self.refused += 1
                await asyncio.sleep(0.001)

    async def give_back(self, clock: DatabaseClock) -> None:
        while True:
            await asyncio.sleep(1)
            await self.limiter.give_back(clock.now())


async def run(url: str, limit: Limit, seconds: float) -> None:
    database = await Database.open(url, DatabaseLimits(4, statement_s=10, lock_s=10), "limiter")
    clock = await DatabaseClock.begin(database, ClockRules(SECOND, SECOND, SECOND))
    limiter = Limiter(database, clock)
    callers = Callers(limiter, limit)
    first_at = clock.now()
    tasks = [asyncio.create_task(callers.ask()) for _ in range(CALLERS)]
    tasks.append(asyncio.create_task(callers.give_back(clock)))
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    last_at = clock.now()
    await limiter.close()
    await database.close()
    _say("done", first_at, last_at, callers.allowed, callers.refused)


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    url, count, per_us, seconds = sys.argv[1:]
    asyncio.run(run(url, Limit("test", int(count), int(per_us)), float(seconds)))
