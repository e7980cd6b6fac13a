"""The frame around loops: sharing, backing off, obeying switches, doubting the clock, stopping."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from tests.worlds.clocks import HandClock
from tests.worlds.databases.keyrings import keyring_of
from tidemill.control.events.feed import EventFeed
from tidemill.control.ledger.loops import CheckpointDuty, HoldExpiryLoop
from tidemill.control.loops.duty import Duty
from tidemill.control.loops.frame import Loop, LoopRunner, Tick
from tidemill.control.metrics import Metrics
from tidemill.control.operations.backup_loop import BackupDuty
from tidemill.control.operations.housekeeping import ClockLoop, LostProcessLoop, PartitionDuty
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, ClockRules, Instant, Sample, first_state
from tidemill.core.events.log import LOG_START
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.core.ledger import AccountKind, Hold, LedgerAccount, Transfer
from tidemill.core.operations.switches import Switch
from tidemill.core.settings import Settings, build
from tidemill.store.address import DatabaseUrls
from tidemill.store.clock import DatabaseClock, monotonic_us, read_clock
from tidemill.store.database import Database, DatabaseLimits
from tidemill.store.events import events
from tidemill.store.ledger import books, ledger
from tidemill.store.ledger.poster import Poster
from tidemill.store.operations import switches
from tidemill.store.operations.processes import Process, register

QUICK = {
    "TIDEMILL_LOOPS_BACKOFF_FIRST_S": "10ms",
    "TIDEMILL_LOOPS_BACKOFF_MOST_S": "40ms",
    "TIDEMILL_LOOPS_LEASE_S": "1s",
}


def settings(home: Path, **environment: str) -> Settings:
    return build(toml={}, toml_name="", environment={**QUICK, **environment}, home=home).settings


@pytest.fixture
async def parts(database: Database, ids: Ids, tmp_path: Path) -> AsyncIterator[Parts]:
    made = await parts_of(database, ids, tmp_path)
    yield made
    await made.poster.close()


async def parts_of(database: Database, ids: Ids, home: Path) -> Parts:
    async with database.connection() as connection:
        now = await read_clock(connection)
    clock = HandClock(now)
    return Parts(
        settings=settings(home),
        process_id=ids.new(now),
        loop_database=database,
        clock=clock,
        ids=ids,
        metrics=Metrics("test"),
        poster=Poster(database, clock, ids),
        keyring=await keyring_of(database, ids, now),
    )


class Counting(Loop):
    """Counts its ticks, and fails as often as it is told."""

    name = "counting"
    obeys = Switch.PLACEMENT

    def __init__(self, parts: Parts, failures: int = 0) -> None:
        super().__init__(parts, every_s=0.01)
        self.ticks = 0
        self.failures = failures

    async def tick(self, now: Instant) -> Tick:
        self.ticks += 1
        if self.failures:
            self.failures -= 1
            raise DatabaseFault("The world is failing.")
        return Tick(seen=1, applied=1)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.fixture
async def run() -> AsyncIterator[Callable[[Loop], LoopRunner]]:
    started: list[tuple[LoopRunner, asyncio.Task[None]]] = []

    def start(loop: Loop) -> LoopRunner:
        runner = LoopRunner(loop, Random(1))
        started.append((runner, asyncio.create_task(runner.run())))
        return runner

    yield start
    for runner, _ in started:
        runner.stop()
    await asyncio.wait_for(asyncio.gather(*(task for _, task in started)), 5)


async def test_a_fault_ends_the_tick_and_never_the_loop(parts: Parts, run: Callable[[Loop], LoopRunner]) -> None:
    loop = Counting(parts, failures=4)
    runner = run(loop)
    await until(lambda: runner.failing)
    await until(lambda: loop.ticks > 6 and not runner.failing)
    text = parts.metrics.exposition().decode()
    assert 'tidemill_loop_tick_seconds_count{loop="counting",outcome="failed"} 4.0' in text


async def test_a_bug_is_not_swallowed(parts: Parts) -> None:
    class Broken(Counting):
        async def tick(self, now: Instant) -> Tick:
            raise AssertionError("a bug")

    with pytest.raises(AssertionError):
        await LoopRunner(Broken(parts), Random(1)).run()


async def throw(parts: Parts, switch: Switch, *, stop: bool) -> None:
    async with parts.loop_database.transaction() as transaction:
        await switches.set_switch(
            transaction, switch, stop=stop, reason="test", by="test", ids=parts.ids, now=parts.clock.now()
        )


@pytest.mark.parametrize("switch", [Switch.PLACEMENT, Switch.ALL])
async def test_a_stopped_switch_holds_the_loop_until_it_is_started(
    parts: Parts, run: Callable[[Loop], LoopRunner], switch: Switch
) -> None:
    loop = Counting(parts)
    run(loop)
    await until(lambda: loop.ticks > 2)
    await throw(parts, switch, stop=True)
    await asyncio.sleep(0.1)
    held_at = loop.ticks
    await asyncio.sleep(0.2)
    assert loop.ticks == held_at
    assert 'tidemill_loop_held{loop="counting"} 1.0' in parts.metrics.exposition().decode()
    await throw(parts, switch, stop=False)
    await until(lambda: loop.ticks > held_at + 2)


async def test_a_switch_of_another_part_does_not_hold_it(parts: Parts, run: Callable[[Loop], LoopRunner]) -> None:
    await throw(parts, Switch.PAYOUTS, stop=True)
    loop = Counting(parts)
    run(loop)
    await until(lambda: loop.ticks > 3)


async def test_a_loop_waits_while_the_clock_is_in_doubt(parts: Parts, run: Callable[[Loop], LoopRunner]) -> None:
    assert isinstance(parts.clock, HandClock)
    parts.clock.trusted = False
    loop = Counting(parts)
    run(loop)
    await asyncio.sleep(0.1)
    assert loop.ticks == 0
    parts.clock.trusted = True
    await until(lambda: loop.ticks > 0)


async def test_waking_a_loop_does_not_wait_for_its_period(parts: Parts, run: Callable[[Loop], LoopRunner]) -> None:
    loop = Counting(parts)
    loop.every_s = 3600
    runner = run(loop)
    await until(lambda: loop.ticks == 1)
    runner.wake()
    await until(lambda: loop.ticks == 2)


class Sweep(Duty):
    """A duty that remembers who did it when, and can take its time."""

    name = "sweep"
    retry_s = 5.0

    def __init__(self, parts: Parts, done: list[UUID], takes_s: float = 0.0, fails: bool = False) -> None:
        super().__init__(parts, period_s=3600)
        self.done = done
        self.takes_s = takes_s
        self.fails = fails

    async def perform(self, now: Instant) -> int:
        await asyncio.sleep(self.takes_s)
        if self.fails:
            raise DatabaseFault("The world is failing.")
        self.done.append(self.parts.process_id)
        return 1


async def test_of_many_processes_one_does_a_duty_each_period(parts: Parts, ids: Ids) -> None:
    assert isinstance(parts.clock, HandClock)
    done: list[UUID] = []
    crowd = [Sweep(replace(parts, process_id=ids.new(parts.clock.now())), done, takes_s=0.05) for _ in range(6)]
    for period in range(1, 4):
        await asyncio.gather(*(duty.tick(parts.clock.now()) for duty in crowd))
        assert len(done) == period
        parts.clock.at = Instant(parts.clock.at + 3600 * SECOND)


async def test_a_duty_that_takes_longer_than_its_lease_is_kept(parts: Parts) -> None:
    done: list[UUID] = []
    slow = asyncio.create_task(Sweep(parts, done, takes_s=1.5).tick(parts.clock.now()))
    await asyncio.sleep(1.2)
    assert isinstance(parts.clock, HandClock)
    parts.clock.at = Instant(parts.clock.at + SECOND * 13 // 10)
    other = replace(parts, process_id=parts.ids.new(parts.clock.now()))
    # The lease was extended from the clock of its holder, which stood still; so this one may take over, and does.
    assert (await Sweep(other, done).tick(parts.clock.now())).seen == 1
    with pytest.raises(DatabaseFault, match="lease"):
        await slow
    assert done == [other.process_id], "the one who lost its lease has stopped"


async def test_a_failed_duty_rests_and_is_then_tried_again_by_anybody(parts: Parts) -> None:
    assert isinstance(parts.clock, HandClock)
    done: list[UUID] = []
    with pytest.raises(DatabaseFault):
        await Sweep(parts, done, fails=True).tick(parts.clock.now())
    other = replace(parts, process_id=parts.ids.new(parts.clock.now()))
    assert (await Sweep(other, done).tick(parts.clock.now())).seen == 0
    assert (await Sweep(other, done).tick(Instant(parts.clock.at + 5 * SECOND))).seen == 1
    assert done == [other.process_id]


async def test_partitions_are_made_by_a_duty(parts: Parts) -> None:
    ahead = replace(parts, settings=settings(Path("/nowhere"), TIDEMILL_DATABASE_PARTITIONS_AHEAD_DAYS="400"))
    assert (await PartitionDuty(ahead).tick(parts.clock.now())).applied >= 9
    assert (await PartitionDuty(ahead).tick(Instant(parts.clock.now() + DAY))).applied <= 1


async def test_a_failed_backup_is_told_and_leaves_no_file(parts: Parts, urls: DatabaseUrls, tmp_path: Path) -> None:
    wrong = urls.owner.replace("tidemill_owner", "nobody_we_know")
    with pytest.raises(DatabaseFault, match="nobody_we_know"):
        await BackupDuty(parts, wrong, tmp_path).tick(parts.clock.now())
    async with parts.loop_database.connection() as connection:
        last = (await events.read(connection, LOG_START, 100))[-1]
    assert (last.kind, "nobody_we_know" in last.body["cause"]) == ("pool.backup_failed", True)
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file()] == []


async def test_only_silence_that_could_be_heard_counts_against_a_process(parts: Parts, ids: Ids) -> None:
    assert isinstance(parts.clock, HandClock)
    start = parts.clock.at
    await register(parts.loop_database, Process(ids.new(start), "host", 1, "1", "f", start, start), ids)
    listener = LostProcessLoop(parts)
    lost_after = int(parts.settings.loops.process_lost_s * SECOND)
    assert (await listener.tick(Instant(start + 10 * lost_after))).applied == 0, "we had been away ourselves"
    later = [Instant(start + 10 * lost_after + step * lost_after // 3) for step in range(1, 5)]
    assert sum([(await listener.tick(at)).applied for at in later]) == 1


async def test_a_jumping_database_clock_is_an_event_and_no_lease_is_judged_by_it(parts: Parts) -> None:
    shift_us = 0
    rules = ClockRules(step_us=SECOND // 2, settle_us=SECOND // 5, uncertainty_us=SECOND)
    async with parts.loop_database.connection() as connection:
        now = await read_clock(connection)
    meeting = Sample(now, monotonic_us(), monotonic_us())
    clock = DatabaseClock(first_state(meeting), rules, lambda: monotonic_us() + shift_us)
    loop = ClockLoop(parts, clock)
    await loop.tick(now)
    assert clock.trusted
    shift_us = -3600 * SECOND  # seen from here, the database has jumped an hour ahead
    before = clock.now()
    await loop.tick(now)
    assert not clock.trusted
    assert before <= clock.now() < before + 10 * SECOND, "the old time is carried on"
    await asyncio.sleep(0.25)
    await loop.tick(now)
    assert clock.trusted
    async with parts.loop_database.connection() as connection:
        alarms = [
            event.body for event in await events.read(connection, LOG_START, 100) if event.kind == "pool.clock_alarm"
        ]
    assert [alarm["observation"] for alarm in alarms] == ["stepped", "adopted"]
    assert abs(alarms[0]["difference_s"] - 3600) < 10


async def test_the_feed_serves_recent_events_from_memory_and_old_ones_from_the_log(parts: Parts) -> None:
    small = settings(Path("/nowhere"), TIDEMILL_EVENTS_KEEP_IN_MEMORY="10", TIDEMILL_EVENTS_BATCH_MAX="7")
    feed = EventFeed(replace(parts, settings=small), parts.loop_database)
    await feed.tick(parts.clock.now())
    arrival = feed.arrival
    for _ in range(15):
        await throw(parts, Switch.PAYOUTS, stop=True)
        await throw(parts, Switch.PAYOUTS, stop=False)
    while (await feed.tick(parts.clock.now())).more:
        pass
    assert arrival.is_set()
    async with parts.loop_database.connection() as connection:
        whole = list(await events.read(connection, LOG_START, 1000))
    for start in range(len(whole)):
        assert list(await feed.read(whole[start].cursor, 5)) == whole[start + 1 : start + 6]
    assert len(feed._recent) <= 20


async def test_a_batch_leased_by_many_loops_is_applied_once(urls: DatabaseUrls, parts: Parts) -> None:
    """The pattern of docs/how-to/add-a-loop.md: lease rows with a token, decide, apply only where the token matches."""
    owner = await Database.open(urls.owner, DatabaseLimits(connections=8, statement_s=30, lock_s=10), "test")
    async with owner.connection() as connection:
        await connection.execute(
            "CREATE TABLE chore (id int PRIMARY KEY, state text NOT NULL DEFAULT 'open', token uuid, "
            "leased_until timestamptz, applied int NOT NULL DEFAULT 0)"
        )
        await connection.execute("INSERT INTO chore (id) SELECT generate_series(1, 2000)")
    random, lost = Random(5), 0

    async def copy(number: int) -> None:
        nonlocal lost
        ids = Ids(secrets.randbits)
        idle = 0
        while idle < 5:
            now = Instant(parts.clock.now() + loop_time_us())
            token = ids.new(now)
            async with owner.connection() as connection:
                leased = await connection.fetch(LEASE, token, now + SECOND // 5, now)
            idle = idle + 1 if not leased else 0
            if random.random() < 0.1:
                lost += 1
                continue  # killed between lease and apply: the lease runs out and another copy takes it
            await asyncio.sleep(random.random() * 0.05 if random.random() < 0.9 else 0.3)
            async with owner.connection() as connection:
                await connection.execute(APPLY, token, [row["id"] for row in leased])
            if idle:
                await asyncio.sleep(0.06)

    started = asyncio.get_running_loop().time()

    def loop_time_us() -> int:
        return int((asyncio.get_running_loop().time() - started) * SECOND)

    await asyncio.gather(*(copy(number) for number in range(6)))
    async with owner.connection() as connection:
        counted = await connection.fetch("SELECT state, applied, count(*) FROM chore GROUP BY 1, 2")
    await owner.close()
    assert [tuple(row) for row in counted] == [("done", 1, 2000)]
    assert lost > 0


LEASE = """
UPDATE chore SET token = $1, leased_until = $2
WHERE id IN (
    SELECT id FROM chore WHERE state = 'open' AND (leased_until IS NULL OR leased_until <= $3)
    ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED
)
RETURNING id
"""
APPLY = "UPDATE chore SET state = 'done', applied = applied + 1 WHERE token = $1 AND id = ANY($2) AND state = 'open'"


async def test_expired_holds_are_given_back_once(parts: Parts, ids: Ids) -> None:
    assert isinstance(parts.clock, HandClock)
    now = parts.clock.at
    bank, customer = LedgerAccount(AccountKind.EXTERNAL, name="bank"), LedgerAccount(AccountKind.CUSTOMER, UUID(int=1))
    paid = Transfer(ids.new(now), bank.id, customer.id, 100, "credit", "deposit", "test")
    hold = Hold(ids.new(now), customer.id, 70, "credit", Instant(now + SECOND), "job")
    async with parts.loop_database.transaction() as transaction:
        await ledger.open_accounts(transaction, [bank, customer], now)
        await ledger.post(transaction, [paid, hold], ids, now)
    crowd = [HoldExpiryLoop(parts) for _ in range(4)]
    assert sum([(await loop.tick(now)).applied for loop in crowd]) == 0
    later = Instant(now + SECOND)
    ticks = await asyncio.gather(*(loop.tick(later) for loop in crowd))
    assert sum(tick.applied for tick in ticks) == 1
    async with parts.loop_database.connection() as connection:
        (balance,) = await books.balances(connection, ids=[customer.id])
    assert balance.available_uc == 100


async def test_accounts_without_a_floor_get_a_checkpoint_when_they_have_moved(parts: Parts, ids: Ids) -> None:
    assert isinstance(parts.clock, HandClock)
    later = parts.clock.at
    bank, commission = LedgerAccount(AccountKind.EXTERNAL, name="bank"), LedgerAccount(AccountKind.COMMISSION)
    async with parts.loop_database.transaction() as transaction:
        await ledger.open_accounts(transaction, [bank, commission, LedgerAccount(AccountKind.BURN)], later)
    await parts.poster.post([Transfer(ids.new(later), bank.id, commission.id, 5, "credit", "test", "test")])
    assert (await CheckpointDuty(parts).tick(later)).applied == 2
    assert (await CheckpointDuty(parts).tick(later)).applied == 0  # not due yet
    async with parts.loop_database.connection() as connection:
        (balance,) = await books.balances(connection, ids=[commission.id])
    assert balance.posted_uc == 5
