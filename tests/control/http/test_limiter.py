"""Limiters of one process and of many: answers from memory that are right all the same, and attacks on them."""

import asyncio
import gc
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.control.test_loops import parts_of
from tests.worlds.clocks import HandClock
from tidemill.control.http.limiter import Limiter, _Bucket
from tidemill.control.http.limits_loop import LimitsLoop
from tidemill.control.loops.frame import Tick
from tidemill.control.operations.housekeeping import ForgettingLoop
from tidemill.core.clock import HOUR, SECOND, Instant
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.core.rate_limits import Limit, available
from tidemill.store.accounts import quotas
from tidemill.store.address import DatabaseUrls
from tidemill.store.database import Database, DatabaseLimits, connect
from tidemill.store.embedded import EmbeddedServer

NOW = Instant(1_800_000_000 * SECOND)
MINUTE = 60 * SECOND
LOGIN = Limit("login", 5, MINUTE)
CUSTOMER = Limit("customer", 100, MINUTE)
DATA_CENTRE = Limit("data_centre", 1000, MINUTE)


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW)


@pytest.fixture
async def limiter(database: Database, clock: HandClock) -> AsyncIterator[Limiter]:
    made = Limiter(database, clock)
    yield made
    await made.close()


@pytest.fixture
async def other(database: Database, clock: HandClock) -> AsyncIterator[Limiter]:
    """Another process."""
    made = Limiter(database, clock)
    yield made
    await made.close()


async def asked(limiter: Limiter, limit: Limit, times: int, key: str = "me") -> int:
    """How many of so many requests, one after the other, are allowed."""
    return sum([(await limiter.allowed(key, limit)).allowed for _ in range(times)])


async def in_the_database(database: Database, limit: Limit, now: Instant, key: str = "me") -> int:
    async with database.connection() as connection:
        (granted,) = await quotas.lease(connection, [quotas.BucketTokens(limit.key(key), limit, 0)], now)
    return available(granted.full_at, limit, now)


async def test_a_limit_is_used_up_refused_and_comes_back_token_by_token(limiter: Limiter, clock: HandClock) -> None:
    answers = [await limiter.allowed("me", LOGIN) for _ in range(7)]
    assert [answer.allowed for answer in answers] == [True] * 5 + [False] * 2
    assert [answer.remaining for answer in answers] == [4, 3, 2, 1, 0, 0, 0]
    assert [answer.reset_s for answer in answers] == [12, 24, 36, 48, 60, 60, 60]
    assert answers[-1].retry_after_s == 12
    clock.at = Instant(NOW + 12 * SECOND - 1)
    assert (await limiter.allowed("me", LOGIN)).retry_after_s == 1
    clock.at = Instant(NOW + 12 * SECOND)
    assert await asked(limiter, LOGIN, 5) == 1
    clock.at = Instant(NOW + HOUR)
    assert await asked(limiter, LOGIN, 10) == 5


async def test_who_is_refused_is_refused_from_memory_until_the_next_token_is_due(
    limiter: Limiter, clock: HandClock
) -> None:
    assert await asked(limiter, LOGIN, 6) == 5
    for wait_us in range(0, 12 * SECOND, SECOND // 7):
        answer = limiter.take("me", LOGIN, Instant(NOW + wait_us))
        assert answer is not None
        assert not answer.allowed
    assert limiter.take("me", LOGIN, Instant(NOW + 12 * SECOND)) is None


async def test_a_fast_caller_seldom_asks_the_database(limiter: Limiter, clock: HandClock) -> None:
    from_memory = 0
    for _ in range(900):
        clock.at = Instant(clock.at + SECOND // 100)
        if limiter.take("me", DATA_CENTRE, clock.at) is None:
            assert (await limiter.allowed("me", DATA_CENTRE)).allowed
        else:
            from_memory += 1
    assert from_memory > 860


async def test_callers_who_ask_at_once_share_one_lease(limiter: Limiter, database: Database) -> None:
    answers = await asyncio.gather(*(limiter.allowed("me", CUSTOMER) for _ in range(250)))
    assert sum(answer.allowed for answer in answers) == 100
    assert all(answer.retry_after_s == 1 for answer in answers if not answer.allowed)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT granted FROM quota") == 100


async def test_ten_thousand_callers_at_once_need_a_dozen_statements(limiter: Limiter, database: Database) -> None:
    answers = await asyncio.gather(*(limiter.allowed(f"key {number}", CUSTOMER) for number in range(10_000)))
    assert all(answer.allowed for answer in answers)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM quota") == 10_000
        assert await connection.fetchval("SELECT count(DISTINCT xmin::text) FROM quota") <= 12


async def test_a_flood_of_callers_stays_within_its_memory(database: Database, clock: HandClock) -> None:
    limiter = Limiter(database, clock, keys_max=2_000)
    for start in range(0, 50_000, 2_000):
        many = (f"2001:db8:{number:x}::/64" for number in range(start, start + 2_000))
        await asyncio.gather(*(limiter.allowed(key, LOGIN) for key in many))
        assert limiter.keys <= 2_000
        assert sum(type(thing) is _Bucket for thing in gc.get_objects()) <= 2_000
    await limiter.close()


async def test_a_flood_does_not_help_a_caller_who_is_refused(database: Database, clock: HandClock) -> None:
    """Memory that was dropped is asked for again, and the database remembers."""
    limiter = Limiter(database, clock, keys_max=10)
    assert await asked(limiter, LOGIN, 6) == 5
    await asyncio.gather(*(limiter.allowed(f"key {number}", LOGIN) for number in range(100)))
    assert limiter.take("me", LOGIN, NOW) is None
    assert await asked(limiter, LOGIN, 1) == 0
    await limiter.close()


async def test_a_lease_dropped_from_memory_is_still_given_back(database: Database, clock: HandClock) -> None:
    limiter = Limiter(database, clock, keys_max=10)
    assert await asked(limiter, CUSTOMER, 32) == 32
    await asyncio.gather(*(limiter.allowed(f"key {number}", CUSTOMER) for number in range(100)))
    assert limiter.take("me", CUSTOMER, NOW) is not None
    await asyncio.gather(*(limiter.allowed(f"key {number}", CUSTOMER) for number in range(100)))
    await limiter.close()
    assert await in_the_database(database, CUSTOMER, NOW) == 67


async def test_what_is_not_used_within_a_second_goes_back(
    limiter: Limiter, other: Limiter, database: Database, clock: HandClock
) -> None:
    assert await asked(limiter, CUSTOMER, 32) == 32
    left = await in_the_database(database, CUSTOMER, NOW)
    assert 100 - 32 - 10 <= left < 100 - 32
    clock.at = Instant(NOW + SECOND - 1)
    assert await limiter.give_back(clock.at) == 0
    clock.at = Instant(NOW + SECOND)
    assert await limiter.give_back(clock.at) == 1
    assert await limiter.give_back(clock.at) == 0
    assert await asked(other, CUSTOMER, 100) == 100 - 32 + 1  # one has come back in this second


async def test_a_process_that_stops_gives_back_all_of_it(
    limiter: Limiter, other: Limiter, database: Database, clock: HandClock
) -> None:
    assert await asked(limiter, CUSTOMER, 32) == 32
    await limiter.close()
    assert await asked(other, CUSTOMER, 100) == 68


async def test_two_processes_grant_together_what_one_would(limiter: Limiter, other: Limiter, clock: HandClock) -> None:
    allowed = 0
    for turn in range(3000):
        clock.at = Instant(NOW + turn * SECOND // 100)
        allowed += await asked(limiter if turn % 2 else other, DATA_CENTRE, 1)
        if turn % 100 == 0:
            await asyncio.gather(limiter.give_back(clock.at), other.give_back(clock.at))
    assert 0.95 * 1500 <= allowed <= 1500


async def test_one_caller_has_every_limit_for_itself(limiter: Limiter) -> None:
    assert await asked(limiter, LOGIN, 6) == 5
    assert await asked(limiter, Limit("mail", 5, HOUR), 6) == 5
    assert await asked(limiter, LOGIN, 6, key="you") == 5


async def test_a_request_may_cost_more_than_one_and_waits_until_it_can_be_paid(
    limiter: Limiter, clock: HandClock
) -> None:
    assert (await limiter.allowed("me", LOGIN, cost=3)).allowed
    refused = await limiter.allowed("me", LOGIN, cost=3)
    assert (refused.allowed, refused.retry_after_s) == (False, 12)
    assert await asked(limiter, LOGIN, 3) == 2
    clock.at = Instant(NOW + 36 * SECOND)
    assert (await limiter.allowed("me", LOGIN, cost=3)).allowed
    with pytest.raises(AssertionError):
        await limiter.allowed("me", LOGIN, cost=6)


async def test_costs_of_different_size_at_once_are_all_answered(limiter: Limiter) -> None:
    costs = [1, 50, 3, 80, 1, 20, 100, 2]
    answers = await asyncio.gather(*(limiter.allowed("me", CUSTOMER, cost) for cost in costs))
    spent = sum(cost for cost, answer in zip(costs, answers, strict=True) if answer.allowed)
    assert 50 <= spent <= 100


async def test_a_caller_whose_tokens_are_given_back_while_it_asks_for_more_is_not_refused(
    limiter: Limiter, clock: HandClock, database: Database
) -> None:
    assert await asked(limiter, CUSTOMER, 32) == 32
    assert await in_the_database(database, CUSTOMER, NOW) < 68, "some are in hand"
    clock.at = Instant(NOW + SECOND)
    asking = asyncio.create_task(limiter.allowed("me", CUSTOMER, cost=30))
    for _ in range(3):  # now it is with the database
        await asyncio.sleep(0)
    assert await limiter.give_back(clock.at) == 1
    assert (await asking).allowed


async def test_a_clock_set_back_closes_nobody_out_and_gives_nothing_away(limiter: Limiter, clock: HandClock) -> None:
    assert await asked(limiter, LOGIN, 6) == 5
    clock.at = Instant(NOW - HOUR)
    assert await asked(limiter, LOGIN, 10) == 0
    clock.at = Instant(NOW - HOUR + 12 * SECOND)
    assert await asked(limiter, LOGIN, 10) == 1
    clock.at = Instant(NOW - HOUR + 2 * MINUTE)
    assert await asked(limiter, LOGIN, 10) == 5


async def test_a_caller_who_went_away_uses_nothing(limiter: Limiter, database: Database) -> None:
    tasks = [asyncio.create_task(limiter.allowed("me", LOGIN)) for _ in range(5)]
    await asyncio.sleep(0)
    for task in tasks[1:]:
        task.cancel()
    assert (await tasks[0]).allowed
    await limiter.close()
    assert await in_the_database(database, LOGIN, NOW) == 4


async def test_names_that_no_database_can_store_harm_nobody(limiter: Limiter) -> None:
    names = ["\0", "a\0b", "\ud800", "x" * 1_000_000, "", "'; DROP TABLE quota; --", "ä", "\\", '{"', "me"]
    answers = await asyncio.gather(*(limiter.allowed(name, LOGIN) for name in names))
    assert all(answer.allowed for answer in answers)


async def test_an_unreachable_database_lets_nobody_in_without_a_lease(clock: HandClock) -> None:
    nowhere = await Database.open("postgresql://u:p@/none?host=/nonexistent", DatabaseLimits(2, 1, 1), "test")
    limiter = Limiter(nowhere, clock)
    answers = await asyncio.gather(*(limiter.allowed("me", LOGIN) for _ in range(3)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [DatabaseFault] * 3
    await limiter.close()
    await nowhere.close()


async def test_leases_outlive_the_connection_and_a_new_one_is_made(
    limiter: Limiter, clock: HandClock, server: EmbeddedServer
) -> None:
    assert await asked(limiter, DATA_CENTRE, 100) == 100
    superuser = await connect(server.superuser_url)
    await superuser.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'test'")
    await superuser.close()
    assert limiter.take("me", DATA_CENTRE, NOW) is not None
    await asyncio.sleep(0.1)
    assert await asked(limiter, DATA_CENTRE, 500) == 500


async def test_a_database_that_hangs_holds_nobody_up_for_ever(
    limiter: Limiter, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.control.http.limiter._LEASE_S", 0.3)
    assert await asked(limiter, LOGIN, 1) == 1
    async with database.transaction() as transaction:
        await transaction.execute("SELECT FROM quota FOR UPDATE")
        with pytest.raises(DatabaseFault):
            await limiter.allowed("me", LOGIN)
    # The statement we gave up on may have been carried out all the same: then its token is lost, and nobody has it.
    assert await asked(limiter, LOGIN, 6) in (3, 4)


async def test_the_loops_give_back_and_forget(database: Database, ids: Ids, tmp_path: Path) -> None:
    parts = await parts_of(database, ids, tmp_path)
    assert isinstance(parts.clock, HandClock)
    limiter = Limiter(database, parts.clock)
    began = parts.clock.at
    assert await asked(limiter, CUSTOMER, 32) == 32
    parts.clock.at = Instant(began + SECOND)
    assert await LimitsLoop(parts, limiter).tick(parts.clock.at) == Tick(seen=1, applied=1)
    assert await in_the_database(database, CUSTOMER, parts.clock.at) == 69
    forgetting = ForgettingLoop(parts)
    assert (await forgetting.tick(parts.clock.at)).applied == 0
    assert (await forgetting.tick(Instant(began + MINUTE))).applied == 1
    await limiter.close()
    await parts.poster.close()


async def start(urls: DatabaseUrls, limit: Limit, seconds: float) -> Process:
    arguments = [
        "-m",
        "tests.worlds.databases.limiter_process",
        urls.program,
        str(limit.count),
        str(limit.per_us),
        str(seconds),
    ]
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)


@pytest.mark.parametrize("processes", [2, 3])
async def test_busy_processes_grant_together_the_limit_and_no_more(urls: DatabaseUrls, processes: int) -> None:
    limit = Limit("test", 2_000, 4 * SECOND)
    started = [await start(urls, limit, 5) for _ in range(processes)]
    outputs = [output for output, _ in await asyncio.gather(*(process.communicate() for process in started))]
    lines = [output.decode().splitlines()[-1].split() for output in outputs]
    first_at, last_at = min(int(line[1]) for line in lines), max(int(line[2]) for line in lines)
    allowed = sum(int(line[3]) for line in lines)
    most = limit.count + limit.count * (last_at - first_at) // limit.per_us
    assert 0.9 * most <= allowed <= most
    assert all(int(line[4]) > 0 for line in lines), "every process was refused at times"


async def test_a_process_that_is_killed_takes_its_lease_with_it_and_no_more(
    urls: DatabaseUrls, database: Database
) -> None:
    limit = Limit("test", 1_000_000, 24 * HOUR)
    process = await start(urls, limit, 60)
    assert process.stdout
    for _ in range(100):
        line = await process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    rest, _ = await process.communicate()
    used = int((rest.decode().split() or line.decode().split())[-1])
    async with database.connection() as connection:
        row = await connection.fetchrow("SELECT full_at_us, extract(epoch FROM now()) * 1e6 AS now_us FROM quota")
    assert row
    left = available(row["full_at_us"], limit, Instant(int(row["now_us"])))
    assert limit.count - used - limit.count // 10 - 100 <= left <= limit.count - used
