"""Duties, processes, switches and answers, with many at once."""

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from tidemill.core.clock import SECOND, Instant
from tidemill.core.events.log import LOG_START
from tidemill.core.ids import Ids
from tidemill.core.operations.switches import Switch, SwitchRefusal, SwitchState
from tidemill.core.refusals import Refusal
from tidemill.store.clock import read_clock
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.operations import duties, idempotent_answers, processes, switches
from tidemill.store.operations.idempotent_answers import AnswerRefusal, AnswerScope, HttpAnswer
from tidemill.store.operations.processes import Process

HOUR = 3600 * SECOND
SCOPE = AnswerScope("operator", "POST /x", "key-1", b"body")


@pytest.fixture
async def now(database: Database) -> Instant:
    async with database.connection() as connection:
        return await read_clock(connection)


async def take(database: Database, holder: UUID, now: Instant) -> duties.DutyLease | None:
    return await duties.take(database, "sweep", holder, every_us=HOUR, lease_us=30 * SECOND, now=now)


async def test_of_many_who_want_a_duty_one_gets_it(database: Database, ids: Ids, now: Instant) -> None:
    taken = await asyncio.gather(*(take(database, ids.new(now), now) for _ in range(20)))
    assert len([held for held in taken if held]) == 1


async def test_a_duty_is_due_again_a_period_after_it_was_done(database: Database, ids: Ids, now: Instant) -> None:
    me = ids.new(now)
    held = await take(database, me, now)
    assert held
    assert await duties.finish(database, held, done_at=now)
    assert await take(database, me, Instant(now + HOUR - 1)) is None
    assert await take(database, me, Instant(now + HOUR)) == duties.DutyLease("sweep", held.token + 1)


async def test_a_holder_who_slept_cannot_finish_or_extend(database: Database, ids: Ids, now: Instant) -> None:
    sleeper = await take(database, ids.new(now), now)
    assert sleeper
    later = Instant(now + 31 * SECOND)
    assert await take(database, ids.new(now), later)
    assert not await duties.extend(database, sleeper, lease_us=HOUR, now=later)
    assert not await duties.finish(database, sleeper, done_at=later)


async def test_an_extended_duty_stays_with_its_holder(database: Database, ids: Ids, now: Instant) -> None:
    held = await take(database, ids.new(now), now)
    assert held
    assert await duties.extend(database, held, lease_us=45 * SECOND, now=now)
    assert await take(database, ids.new(now), Instant(now + 31 * SECOND)) is None


async def test_what_a_clock_that_ran_ahead_left_behind_holds_nobody_back(
    database: Database, ids: Ids, now: Instant
) -> None:
    ahead = Instant(now + 365 * 24 * HOUR)
    held = await take(database, ids.new(now), ahead)
    assert held
    assert await take(database, ids.new(now), now), "its lease is from the future"
    taken = await take(database, ids.new(now), ahead)
    assert taken
    assert await duties.finish(database, taken, done_at=ahead)
    assert await take(database, ids.new(now), now), "it was done in the future"


async def kinds(database: Database) -> list[str]:
    async with database.connection() as connection:
        return [event.kind for event in await events.read(connection, LOG_START, 1000)]


async def test_a_silent_process_is_lost_once_however_many_look(database: Database, ids: Ids, now: Instant) -> None:
    process = Process(ids.new(now), "host", 1, "1.0", "fingerprint", now, now)
    await processes.register(database, process, ids)
    later = Instant(now + 60 * SECOND)
    lost = await asyncio.gather(*(processes.lose(database, later, 100, ids, later) for _ in range(10)))
    assert [process_id for batch in lost for process_id in batch] == [process.id]
    assert (await kinds(database)).count("process.lost") == 1
    await processes.seen(database, process.id, ids, later)
    await processes.seen(database, process.id, ids, later)
    assert (await kinds(database)).count("process.returned") == 1
    assert await processes.listed(database, None, 10) == [replace(process, seen_at=later)]


async def test_a_stopped_process_stays_stopped(database: Database, ids: Ids, now: Instant) -> None:
    process = Process(ids.new(now), "host", 1, "1.0", "fingerprint", now, now)
    await processes.register(database, process, ids)
    await processes.stop(database, process.id, ids, now)
    await processes.stop(database, process.id, ids, now)
    await processes.seen(database, process.id, ids, now)
    assert (await processes.listed(database, None, 10))[0].state == "stopped"
    assert (await kinds(database)).count("process.stopped") == 1


async def throw(database: Database, ids: Ids, now: Instant, *, stop: bool) -> SwitchState | Refusal:
    async with database.transaction() as transaction:
        return await switches.set_switch(
            transaction, Switch.PAYOUTS, stop=stop, reason="why", by="me", ids=ids, now=now
        )


async def test_a_switch_thrown_by_many_at_once_is_told_once(database: Database, ids: Ids, now: Instant) -> None:
    answers_given = await asyncio.gather(*(throw(database, ids, now, stop=True) for _ in range(8)))
    assert answers_given.count(SwitchRefusal.ALREADY_SO) == 7
    assert (await kinds(database)).count("pool.switch_thrown") == 1
    async with database.connection() as connection:
        states = await switches.states(connection)
    assert [switch for switch, state in states.items() if state.stopped] == [Switch.PAYOUTS]


async def test_a_switch_of_a_newer_program_is_ignored(database: Database, now: Instant) -> None:
    async with database.connection() as connection:
        await connection.execute("INSERT INTO switch VALUES ('unheard_of', true, 'because', 'somebody', $1)", now)
        states = await switches.states(connection)
    assert list(states) == list(Switch)
    assert not any(state.stopped for state in states.values())


async def answer(
    database: Database, scope: AnswerScope, now: Instant, effects: list[str]
) -> HttpAnswer | AnswerRefusal:
    async with database.transaction() as transaction:
        given = await idempotent_answers.take_scope(transaction, scope, now)
        if given is not None:
            return given
        await asyncio.sleep(0.05)
        effects.append(scope.key)
        await idempotent_answers.keep(transaction, scope, HttpAnswer(201, b"%d" % len(effects)))
        return HttpAnswer(201, b"%d" % len(effects))


async def test_the_same_request_at_the_same_time_has_one_effect(database: Database, now: Instant) -> None:
    effects: list[str] = []
    given = await asyncio.gather(*(answer(database, SCOPE, now, effects) for _ in range(6)))
    assert given == [HttpAnswer(201, b"1")] * 6
    assert effects == ["key-1"]


@pytest.mark.parametrize("other", [{"caller": "someone"}, {"route": "POST /y"}, {"key": "key-2"}])
async def test_a_key_is_scoped_to_caller_and_route(database: Database, now: Instant, other: dict[str, str]) -> None:
    effects: list[str] = []
    await answer(database, SCOPE, now, effects)
    await answer(database, replace(SCOPE, **other), now, effects)  # type: ignore[arg-type]
    assert len(effects) == 2


async def test_a_key_with_another_body_is_refused(database: Database, now: Instant) -> None:
    effects: list[str] = []
    await answer(database, SCOPE, now, effects)
    refused = await answer(database, replace(SCOPE, body_sha256=b"other"), now, effects)
    assert refused is AnswerRefusal.IDEMPOTENCY_KEY_REUSED
    assert len(effects) == 1


async def test_a_failed_effect_leaves_the_key_free(database: Database, now: Instant) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.transaction() as transaction:
            await idempotent_answers.take_scope(transaction, SCOPE, now)
            raise ZeroDivisionError
    effects: list[str] = []
    assert await answer(database, SCOPE, now, effects) == HttpAnswer(201, b"1")


async def test_old_answers_are_forgotten_in_batches(database: Database, now: Instant) -> None:
    for number in range(5):
        await answer(database, replace(SCOPE, key=f"key-{number}"), now, [])
    assert await idempotent_answers.forget(database, now, 100) == 0
    assert await idempotent_answers.forget(database, Instant(now + 1), 3) == 3
    assert await idempotent_answers.forget(database, Instant(now + 1), 3) == 2
