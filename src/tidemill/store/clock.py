"""The production clock: the database's time plus a monotonic offset, sampled by a loop, read without waiting."""

import time
from collections.abc import Callable

from tidemill.core.clock import ClockRules, ClockState, Instant, Observation, Sample, first_state, observe
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query

_READ = Query("clock/read", Instant)


def monotonic_us() -> int:
    return time.monotonic_ns() // 1000


async def read_clock(connection: Connection) -> Instant:
    """The database's time, for short commands that need it once."""
    return await _READ.only(connection)


class DatabaseClock:
    """Tells the time of one process. `trusted` is false while the database's clock is in doubt."""

    def __init__(self, state: ClockState, rules: ClockRules, monotonic: Callable[[], int] = monotonic_us) -> None:
        self._state = state
        self._rules = rules
        self._monotonic = monotonic

    @classmethod
    async def begin(cls, database: Database, rules: ClockRules) -> "DatabaseClock":
        return cls(first_state(await _sample(database, monotonic_us)), rules)

    def now(self) -> Instant:
        return self._state.at(self._monotonic())

    @property
    def trusted(self) -> bool:
        return self._state.trusted

    async def sample(self, database: Database) -> tuple[Observation, int]:
        """Take one sample. Returns the observation, and by how many microseconds the database differed."""
        sample = await _sample(database, self._monotonic)
        difference_us = sample.offset_us - self._state.offset_us
        self._state, observation = observe(self._state, sample, self._rules)
        return observation, difference_us


async def _sample(database: Database, monotonic: Callable[[], int]) -> Sample:
    async with database.connection() as connection:
        sent_us = monotonic()
        at = await read_clock(connection)
        return Sample(at, sent_us, monotonic())
