"""What a limit costs each request: in microseconds, as a ratio to a bare dictionary lookup, and in database statements.

Prints one line of JSON. `allowed_us` and `refused_us` are answers from memory with the reading of the clock,
`headers_us` the making of the headers; the ratios are taken in turns with the lookup. `lease_us` is a request that has
to ask the database, alone; `lease_us_together` is one of a thousand callers who ask at once. `asks_…` is the share of
requests that asked the database, for a caller who keeps an even pace at its limit and for one who uses it all at once;
`asks_per_s_flooded` is how often a caller who asks 10,000 times a second beyond a limit makes us ask.
"""

import argparse
import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop

from tidemill import __version__
from tidemill.control.http.limiter import Limiter, headers
from tidemill.core.clock import SECOND, ClockRules, Instant
from tidemill.core.ids import Ids
from tidemill.core.rate_limits import Limit
from tidemill.store.clock import DatabaseClock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.embedded import EmbeddedServer
from tidemill.store.migrate import migrate

MINUTE = 60 * SECOND
TURNS = 20
"""In a round; they are short, so that the best of them was not interrupted."""

KEYS = [f"key-{number}" for number in range(1000)]


class PacedClock:
    """Time that passes as the benchmark says, so that a minute at a caller's pace takes no minute."""

    trusted = True

    def __init__(self, at: Instant) -> None:
        self.at = at

    def now(self) -> Instant:
        return self.at


@asynccontextmanager
async def a_database() -> AsyncIterator[Database]:
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-", dir="/var/tmp") as place:
        os.chmod(place, 0o711)  # as root the server runs as another user
        server = EmbeddedServer(Path(place))
        await server.start()
        try:
            await migrate(server.urls, Ids(secrets.randbits), __version__)
            database = await Database.open(server.urls.program, DatabaseLimits(4, 60, 30), "bench")
            yield database
            await database.close()
        finally:
            await server.stop()


def per_call_us(call: Callable[[str], object]) -> float:
    began = time.perf_counter()
    for name in KEYS:
        call(name)
    return (time.perf_counter() - began) / len(KEYS) * 1_000_000


async def from_memory(database: Database, rounds: int) -> dict[str, float]:
    """Callers with leases in hand, and callers who have used up their limit, beside a lookup in a dictionary."""
    clock = await DatabaseClock.begin(database, ClockRules(SECOND, SECOND, SECOND))
    limiter = Limiter(database, clock)
    # Half an hour, so that nothing becomes due while we measure.
    plenty, spent = Limit("plenty", 10_000_000, 30 * MINUTE), Limit("spent", 1, 30 * MINUTE)
    for name in KEYS:
        await limiter.allowed(name, spent)
        while (kept := limiter._kept(plenty.key(name))) is None or kept.tokens <= rounds * TURNS:
            await limiter.allowed(name, plenty, cost=10)
    await asyncio.gather(*(limiter.allowed(name, spent) for name in KEYS))
    allowance, lookup = limiter.take(KEYS[0], plenty, clock.now()), dict.fromkeys(KEYS)
    assert allowance
    assert allowance.allowed
    calls: dict[str, Callable[[str], object]] = {
        "lookup_us": lookup.get,
        "allowed_us": lambda name: limiter.take(name, plenty, clock.now()),
        "refused_us": lambda name: limiter.take(name, spent, clock.now()),
        "headers_us": lambda _: headers(allowance),
    }
    turns = [{name: per_call_us(call) for name, call in calls.items()} for _ in range(rounds * TURNS)]
    best = {name: min(turn[name] for turn in turns) for name in calls}
    await limiter.close()
    return {
        **{name: round(us, 3) for name, us in best.items()},
        "allowed_ratio": round(best["allowed_us"] / best["lookup_us"], 1),
        "refused_ratio": round(best["refused_us"] / best["lookup_us"], 1),
    }


async def asking(database: Database, rounds: int) -> dict[str, float]:
    """Callers nobody has seen before."""
    limiter = Limiter(database, PacedClock(Instant(MINUTE)))
    limit = Limit("asking", 100, MINUTE)
    began = time.perf_counter()
    for number in range(500 * rounds):
        await limiter.allowed(f"alone {number}", limit)
    alone_us = (time.perf_counter() - began) / 500 / rounds * 1_000_000
    began = time.perf_counter()
    for turn in range(10 * rounds):
        await asyncio.gather(*(limiter.allowed(f"together {turn} {number}", limit) for number in range(1000)))
    together_us = (time.perf_counter() - began) / 10_000 / rounds * 1_000_000
    await limiter.close()
    return {"lease_us": round(alone_us, 1), "lease_us_together": round(together_us, 1)}


async def share_asked(database: Database, limit: Limit, requests: int, every_us: float) -> float:
    """The share of requests that had to ask the database; a loop gives back what was not used, as in a process."""
    clock = PacedClock(Instant(MINUTE))
    limiter = Limiter(database, clock)
    asked, given_back_at = 0, clock.at
    for number in range(requests):
        clock.at = Instant(MINUTE + int(number * every_us))
        if clock.at - given_back_at >= SECOND:
            given_back_at = clock.at
            asked += bool(await limiter.give_back(clock.at))
        if limiter.take("caller", limit, clock.at) is None:
            asked += 1
            await limiter.allowed("caller", limit)
    await limiter.close()
    return asked / requests


async def shares(database: Database) -> dict[str, float]:
    found = {}
    for count in (100, 1_000, 100_000):
        pace = Limit(f"pace {count}", count, MINUTE)
        found[f"asks_{count}_even"] = round(await share_asked(database, pace, count, MINUTE / count), 4)
        burst = Limit(f"burst {count}", count, MINUTE)
        found[f"asks_{count}_at_once"] = round(await share_asked(database, burst, count, 10), 4)
        flood = Limit(f"flood {count}", count, MINUTE)
        found[f"asks_per_s_flooded_{count}"] = round(await share_asked(database, flood, 300_000, 100) * 10_000, 1)
    return found


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one line of JSON, which is what is printed anyway")
    parser.add_argument("--rounds", type=int, default=5, help="how often each measurement is taken")
    options = parser.parse_args()
    async with a_database() as database:
        figures = await from_memory(database, options.rounds)
        figures |= await asking(database, options.rounds)
        figures |= await shares(database)
    sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    uvloop.run(main())
