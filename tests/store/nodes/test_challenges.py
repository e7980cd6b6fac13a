"""Challenges in the database: rounds, orders, answers, verdicts, with several processes and our own outages."""

import asyncio
import secrets
from dataclasses import replace
from random import Random
from threading import Event
from uuid import UUID

import asyncpg
import pytest

from tests.control.test_loops import parts_of
from tests.worlds.databases.node_rows import an_owner, nodes_of, remove, told
from tidemill.agent.machine.bench import Bench
from tidemill.control.nodes.challenge_loop import ChallengeLoop
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import Ids
from tidemill.core.nodes.challenge.figures import LATE_MAX, ChallengeRefusal, MachineFigures
from tidemill.core.nodes.challenge.messages import (
    AnswerStep,
    ChallengeAnswer,
    ChallengeInstruction,
    ChallengePart,
    answer_bytes,
    as_text,
    instruction_of,
)
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine, facts_of
from tidemill.core.settings.sections.challenge import ChallengeSettings
from tidemill.store.database import Database
from tidemill.store.nodes import challenge_verdicts, challenges, node_views

RULES = replace(ChallengeSettings(), machine_memory_share=0.00002, speed_s=0.001)
CPU = Device(0, DeviceKind.CPU, "A CPU", "cpu-0", 16_000, "none")
HERE = UUID(int=7)


class Pool:
    """A pool whose clock a test sets, with two processes that challenge."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.database = parts, parts.loop_database
        parts.settings = replace(parts.settings, challenge=RULES)
        self.loop = ChallengeLoop(parts, secrets.token_bytes, Random(1))
        self.other = ChallengeLoop(parts, secrets.token_bytes, Random(2))

    @property
    def now(self) -> Instant:
        return self.parts.clock.now()

    async def pass_time(self, by_s: float, *, listening: bool = True) -> None:
        self.parts.clock.at = Instant(self.now + int(by_s * SECOND))  # type: ignore[attr-defined]
        if listening:
            await self.run("UPDATE listening SET listened_us = listened_us + $1", int(by_s * SECOND))

    async def tick(self) -> None:
        await self.loop.tick(self.now)

    async def run(self, statement: str, *values: object) -> None:
        async with self.database.connection() as connection:
            await connection.execute(statement, *values)

    async def row(self, statement: str, *values: object) -> asyncpg.Record:
        async with self.database.connection() as connection:
            row = await connection.fetchrow(statement, *values)
        assert row
        return row

    async def node(self, owner_id: UUID, *devices: Device, life: str = "registered") -> "Node":
        (link,) = await nodes_of(self.database, owner_id, 1, HERE, self.now)
        machine = Machine("Linux", "6", "x86_64", "A CPU", 8, 64_000, 10**6, devices or (CPU,))
        facts = facts_of(machine).decode()
        await self.run("UPDATE node SET machine = $2::text::jsonb, life = $3 WHERE id = $1", link.node_id, facts, life)
        for device in machine.devices:
            await self.run(
                "INSERT INTO device (node_id, index, kind, name, uuid, memory_mib, driver) "
                "VALUES ($1, $2, $3, $4, $5, $6, '')",
                link.node_id, device.index, device.kind.value, device.name, device.uuid, device.memory_mib,
            )  # fmt: skip
        return Node(self, link.node_id)

    async def state(self, node: "Node") -> str:
        row = await self.row("SELECT state FROM challenge WHERE node_id = $1 ORDER BY id DESC LIMIT 1", node.id)
        state: str = row["state"]
        return state


class Node:
    """A node that does what it is told, and keeps what it would send."""

    def __init__(self, pool: Pool, node_id: UUID) -> None:
        self.pool, self.id = pool, node_id
        self.tasks: ChallengeInstruction | None = None
        self.benches: dict[int, Bench] = {}

    async def order(self) -> ChallengeInstruction | None:
        async with self.pool.database.connection() as connection:
            bodies = await challenges.instructions_for(connection, [self.id], RULES, self.pool.now)
        if self.id not in bodies:
            return None
        order = instruction_of(bodies[self.id])
        assert isinstance(order, ChallengeInstruction)
        return order

    def commitments(self, order: ChallengeInstruction) -> list[ChallengeAnswer]:
        self.tasks = order
        answers = []
        for task in order.tasks:
            bench = self.benches[task.index] = Bench(replace(CPU, index=task.index), 0, Event())
            roots = {ChallengePart.SPEED: bench.multiply(task.speed), ChallengePart.MEMORY: bench.fill(task.memory)}
            answers += [
                ChallengeAnswer(order.challenge, task.index, AnswerStep.COMMITMENT, part, shown=as_text(root))
                for part, root in roots.items()
            ]
        return answers

    def openings(self, order: ChallengeInstruction) -> list[ChallengeAnswer]:
        assert self.tasks
        answers = []
        for draw, task in zip(order.draws, self.tasks.tasks, strict=True):
            bench = self.benches[draw.index]
            shown = [(ChallengePart.SPEED, place, bench.shown_row(task.speed, place)) for place in draw.rows]
            shown += [(ChallengePart.MEMORY, place, bench.shown_page(task.memory, place)) for place in draw.pages]
            answers += [
                ChallengeAnswer(order.challenge, draw.index, AnswerStep.OPENING, part, place, as_text(content))
                for part, place, content in shown
            ]
        return answers

    async def say(self, *answers: ChallengeAnswer | bytes, by: "Node | None" = None) -> list[ChallengeRefusal | None]:
        said = [((by or self).id, one if isinstance(one, bytes) else answer_bytes(one)) for one in answers]
        async with self.pool.database.transaction() as transaction:
            return await challenges.apply_answers(transaction, said, self.pool.now)

    async def commit(self) -> None:
        order = await self.order()
        assert order
        await self.pool.pass_time(0.5)
        assert await self.say(*self.commitments(order)) == [None] * 2 * len(order.tasks)

    async def open(self) -> None:
        order = await self.order()
        assert order
        answers = self.openings(order)
        assert await self.say(*answers) == [None] * len(answers)


@pytest.fixture
async def pool(database: Database, ids: Ids, tmp_path: object) -> Pool:
    return Pool(await parts_of(database, ids, tmp_path))  # type: ignore[arg-type]


@pytest.fixture
async def owner_id(pool: Pool) -> UUID:
    return await an_owner(pool.database, pool.now)


async def test_an_honest_node_passes_becomes_active_and_is_measured(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    wishes = (await pool.row("SELECT wishes FROM node WHERE id = $1", node.id))["wishes"]
    await node.commit()
    await pool.tick()
    assert (await pool.row("SELECT wishes FROM node WHERE id = $1", node.id))["wishes"] == wishes + 1
    await node.open()
    await pool.tick()
    assert await pool.state(node) == "passed"
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "active"
    device = await pool.row("SELECT * FROM device WHERE node_id = $1", node.id)
    assert node.tasks
    assert device["measured_mib"] == 1
    assert device["measured_ops_per_s"] == node.tasks.tasks[0].speed.operations * 2  # it took half a second
    assert (device["nvlink_ppm"], device["measured_at"]) == (1_000_000, pool.now)
    machine = await pool.row("SELECT measured_cores, measured_mib FROM node WHERE id = $1", node.id)
    assert tuple(machine) == (1, 64_000), "so little work in half a second is that of one core at the most"
    (event,) = await told(pool.database, "node.challenge_passed")
    assert event.accounts == [owner_id]
    assert event.body["machine"]["claimed_cores"] == 8
    assert "claims 8 cores" in event.body["sentences"][0]
    assert event.body["devices"][0]["measured_mib"] == 1
    assert (await pool.row("SELECT count(*) AS n FROM challenge_answer"))["n"] == 0
    async with pool.database.connection() as connection:
        assert (await node_views.readings(connection, [node.id]))[node.id].challenge_passed


async def test_the_next_challenge_comes_by_chance_and_after_being_offline(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await passed(pool, node)
    await pool.pass_time(RULES.rest_s + 1)
    await pool.tick()
    assert await node.order() is None
    await pool.run("UPDATE presence SET back_online_at = $2 WHERE node_id = $1", node.id, pool.now)
    async with pool.database.connection() as connection:
        assert not (await node_views.readings(connection, [node.id]))[node.id].challenge_passed
    await passed(pool, node)
    await pool.pass_time(3 * DAY / SECOND + 1)
    await pool.tick()
    assert await node.order() is not None


async def passed(pool: Pool, *nodes: Node) -> None:
    await pool.tick()
    for node in nodes:
        await node.commit()
    await pool.tick()
    for node in nodes:
        await node.open()
    await pool.tick()
    assert [await pool.state(node) for node in nodes] == ["passed"] * len(nodes)


async def test_a_device_that_was_never_measured_brings_a_challenge(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await passed(pool, node)
    await pool.run("UPDATE device SET measured_at = NULL WHERE node_id = $1", node.id)
    await pool.pass_time(RULES.rest_s / 2)
    await pool.tick()
    assert await node.order() is None, "an owner's nodes are left alone for a while"
    await pool.pass_time(RULES.rest_s)
    await pool.tick()
    assert await node.order() is not None


async def test_places_are_drawn_when_all_nodes_of_the_owner_have_committed(pool: Pool, owner_id: UUID) -> None:
    """So memory that was shown once cannot be used to commit a second time."""
    one, two = await pool.node(owner_id), await pool.node(owner_id)
    stranger = await pool.node(await an_owner(pool.database, pool.now))
    await pool.tick()
    await one.commit()
    await stranger.commit()
    await pool.tick()
    order = await one.order()
    assert order is None
    assert await pool.state(one) == "committed"
    assert await pool.state(stranger) == "drawn"
    await two.commit()
    await pool.tick()
    assert [await pool.state(node) for node in (one, two)] == ["drawn"] * 2
    orders = [await node.order() for node in (one, two)]
    assert orders[0]
    assert orders[1]
    assert orders[0].draws != orders[1].draws


async def test_who_has_not_committed_in_time_does_not_hold_up_the_others(pool: Pool, owner_id: UUID) -> None:
    one, two = await pool.node(owner_id), await pool.node(owner_id)
    await pool.tick()
    await one.commit()
    slow = await two.order()
    assert slow
    await pool.pass_time(RULES.commit_s)
    await pool.tick()
    assert await pool.state(one) == "drawn"
    assert set(await two.say(*two.commitments(slow))) == {ChallengeRefusal.CHALLENGE_ANSWER_STRAY}
    await one.open()
    await pool.tick()
    assert (await pool.state(one), await pool.state(two)) == ("passed", "expired")
    assert (await pool.row("SELECT late FROM node_challenge WHERE node_id = $1", two.id))["late"] == 1


async def test_late_openings_are_not_kept(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    await node.commit()
    await pool.tick()
    order = await node.order()
    assert order
    await pool.pass_time(RULES.open_s + 0.001)
    assert set(await node.say(*node.openings(order))) == {ChallengeRefusal.CHALLENGE_ANSWER_STRAY}
    await pool.tick()
    assert await pool.state(node) == "expired"
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "registered"


async def test_a_node_that_is_late_again_and_again_has_failed(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id, life="active")
    for times in range(1, LATE_MAX + 1):
        await pool.tick()
        assert await node.order()
        await pool.pass_time(RULES.commit_s)
        await pool.tick()
        assert await pool.state(node) == ("failed" if times == LATE_MAX else "expired")
        await pool.pass_time(RULES.rest_s)
    (event,) = await told(pool.database, "node.challenge_failed")
    assert event.body["codes"] == ["challenge_late"]
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "inactive"


async def test_a_node_that_was_never_told_is_not_blamed(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    await pool.pass_time(RULES.commit_s)
    await pool.tick()
    assert await pool.state(node) == "expired"
    assert (await pool.row("SELECT late FROM node_challenge WHERE node_id = $1", node.id))["late"] == 0


async def test_two_nodes_that_take_turns_with_one_device_have_never_both_passed(pool: Pool, owner_id: UUID) -> None:
    """Each answers while the other is late; so at any time one of them at most has shown what it claims."""
    nodes = [await pool.node(owner_id), await pool.node(owner_id)]
    for turn in range(4):
        await pool.tick()
        assert await nodes[1 - turn % 2].order()
        await nodes[turn % 2].commit()
        await pool.pass_time(RULES.commit_s)
        await pool.tick()
        await nodes[turn % 2].open()
        await pool.tick()
        assert await standing(pool, *nodes) == [turn % 2 == 0, turn % 2 == 1]
        await pool.pass_time(RULES.rest_s)


async def standing(pool: Pool, *nodes: Node) -> list[bool]:
    async with pool.database.connection() as connection:
        found = await node_views.readings(connection, [node.id for node in nodes])
    return [found[node.id].challenge_passed for node in nodes]


async def test_a_node_that_is_away_while_its_sibling_is_challenged_has_nothing_to_show(
    pool: Pool, owner_id: UUID
) -> None:
    one, two = await pool.node(owner_id), await pool.node(owner_id)
    await passed(pool, one, two)
    assert await standing(pool, one, two) == [True, True]
    await pool.pass_time(RULES.rest_s)
    await pool.run("UPDATE node_challenge SET due_at = $2 WHERE node_id = $1", one.id, pool.now)
    await pool.run("UPDATE presence SET process_id = NULL, linked_at = NULL, heard_at = $2 WHERE node_id = $1",
                   two.id, pool.now)  # fmt: skip
    await pool.tick()
    assert await one.order() is None, "a node that has just lost its link is waited for"
    await pool.pass_time(61)
    await passed(pool, one)
    assert await standing(pool, one, two) == [True, False]


async def test_a_node_whose_order_never_left_has_nothing_to_show(pool: Pool, owner_id: UUID) -> None:
    one, two = await pool.node(owner_id), await pool.node(owner_id)
    await passed(pool, one, two)
    await pool.pass_time(3 * DAY / SECOND)
    await pool.tick()
    await one.commit()
    await pool.pass_time(RULES.commit_s)
    await pool.tick()
    await one.open()
    await pool.tick()
    assert await standing(pool, one, two) == [True, False]


@pytest.mark.parametrize("when", ["before committing", "before opening"])
async def test_our_own_outage_fails_nobody_and_they_are_asked_again(pool: Pool, owner_id: UUID, when: str) -> None:
    node = await pool.node(owner_id, life="active")
    await passed(pool, node)
    await pool.pass_time(3 * DAY / SECOND)
    await pool.tick()
    if when == "before opening":
        await node.commit()
        await pool.tick()
    assert await node.order()
    await pool.pass_time(RULES.commit_s + 600, listening=False)
    await pool.tick()
    assert await pool.state(node) == "expired"
    row = await pool.row("SELECT * FROM node_challenge WHERE node_id = $1", node.id)
    assert row["late"] == 0
    assert await standing(pool, node) == [True]
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "active"
    await pool.pass_time(RULES.rest_s)
    await passed(pool, node)


async def test_a_commitment_that_waited_out_our_outage_is_no_measure_of_speed(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    order = await node.order()
    assert order
    answers = node.commitments(order)
    await pool.pass_time(300, listening=False)
    assert await node.say(*answers) == [None, None]
    await pool.tick()
    await pool.tick()
    assert await pool.state(node) == "expired"
    await pool.pass_time(RULES.rest_s)
    await passed(pool, node)


async def test_answers_of_another_node_and_of_an_older_challenge_count_nothing(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    thief = await pool.node(await an_owner(pool.database, pool.now))
    await pool.tick()
    order, theirs = await node.order(), await thief.order()
    assert order
    assert theirs
    answers = node.commitments(order)
    stolen = [replace(answer, challenge=theirs.challenge) for answer in answers]
    assert set(await node.say(*answers, by=thief)) == {ChallengeRefusal.CHALLENGE_ANSWER_STRAY}
    assert await thief.say(*stolen) == [None, None]
    assert await node.say(*answers) == [None, None]
    await pool.tick()
    await node.open()
    draws = await thief.order()
    assert draws
    thief.tasks, thief.benches = theirs, node.benches
    assert set(await thief.say(*thief.openings(draws))) == {None}
    await pool.tick()
    assert (await pool.state(node), await pool.state(thief)) == ("passed", "failed")
    (event,) = await told(pool.database, "node.challenge_failed")
    assert event.body["codes"] == ["memory_not_shown", "product_wrong"]
    await pool.pass_time(RULES.rest_s)
    await pool.run("UPDATE node_challenge SET due_at = $1", pool.now)
    await pool.tick()
    assert set(await node.say(*answers)) == {ChallengeRefusal.CHALLENGE_ANSWER_STRAY}, "a replay"


async def test_a_commitment_cannot_be_changed(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id, CPU, replace(CPU, index=1, uuid="cpu-1"))
    await pool.tick()
    order = await node.order()
    assert order
    answers = node.commitments(order)
    lie = replace(answers[0], shown=as_text(bytes(32)))
    assert await node.say(lie) == [None]
    assert await node.say(*answers) == [None] * 4
    await pool.tick()
    assert await node.say(replace(answers[0], shown=as_text(bytes(32)))) == [ChallengeRefusal.CHALLENGE_ANSWER_STRAY]
    await node.open()
    await pool.tick()
    assert await pool.state(node) == "failed", "the first commitment counts, and it was a lie"


async def test_openings_before_the_draw_and_of_other_places_count_nothing(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    order = await node.order()
    assert order
    early = ChallengeAnswer(order.challenge, 0, AnswerStep.OPENING, ChallengePart.MEMORY, 5, as_text(bytes(100)))
    assert await node.say(early) == [ChallengeRefusal.CHALLENGE_ANSWER_STRAY]
    await node.commit()
    await pool.tick()
    draw = await node.order()
    assert draw
    opening = node.openings(draw)[-1]
    undrawn = next(place for place in range(512) if place not in draw.draws[0].pages)
    for wrong in (replace(opening, place=undrawn), replace(opening, shown=opening.shown[4:])):
        assert await node.say(wrong) == [ChallengeRefusal.CHALLENGE_ANSWER_MALFORMED]
    assert await node.say(replace(opening, device=1)) == [ChallengeRefusal.CHALLENGE_ANSWER_STRAY]


async def test_nonsense_is_refused_by_itself(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    order = await node.order()
    assert order
    answers = node.commitments(order)
    unknown = replace(answers[0], challenge=secrets.token_hex(16))
    outcomes = await node.say(
        b"", b"\xff" * 70_000, answers[0], unknown, replace(answers[1], challenge="x"), answers[1]
    )
    malformed, stray = ChallengeRefusal.CHALLENGE_ANSWER_MALFORMED, ChallengeRefusal.CHALLENGE_ANSWER_STRAY
    assert outcomes == [malformed, malformed, None, stray, malformed, None]
    assert await pool.state(node) == "committed"


async def test_a_node_that_cannot_is_refused_with_its_own_words(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id, life="active")
    await pool.tick()
    order = await node.order()
    assert order
    assert await node.say(
        ChallengeAnswer(order.challenge, 0, AnswerStep.CANNOT, words="It has no CuPy: install it.")
    ) == [None]
    await pool.tick()
    await pool.tick()
    assert await pool.state(node) == "cannot"
    (event,) = await told(pool.database, "node.challenge_failed")
    assert "It has no CuPy: install it." in event.body["sentences"][0]
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "inactive"
    async with pool.database.connection() as connection:
        refused = (await node_views.readings(connection, [node.id]))[node.id].challenge_refused
    assert refused == event.body["sentences"][0]
    await pool.pass_time(RULES.retry_s)
    await passed(pool, node)


async def test_a_slow_node_fails_with_its_figures(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await passed(pool, node)
    await pool.pass_time(3 * DAY / SECOND)
    await pool.tick()
    order = await node.order()
    assert order
    await pool.pass_time(60)
    await node.say(*node.commitments(order))
    await pool.tick()
    await node.open()
    await pool.tick()
    (event,) = await told(pool.database, "node.challenge_failed")
    assert event.body["codes"] == ["speed_below_earlier"]
    assert "25%" in event.body["sentences"][0]


async def test_two_processes_ask_draw_and_conclude_once(pool: Pool) -> None:
    nodes = []
    for _ in range(4):
        owner = await an_owner(pool.database, pool.now)
        nodes += [await pool.node(owner), await pool.node(owner)]

    async def both() -> None:
        for _ in range(3):
            await asyncio.gather(pool.loop.tick(pool.now), pool.other.tick(pool.now))

    await both()
    assert (await pool.row("SELECT count(*) AS n FROM challenge_round"))["n"] == 4
    assert (await pool.row("SELECT count(*) AS n FROM challenge"))["n"] == 8
    await asyncio.gather(*(node.commit() for node in nodes))
    await both()
    await asyncio.gather(*(node.open() for node in nodes))
    await both()
    assert len(await told(pool.database, "node.challenge_passed")) == 8
    assert (await pool.row("SELECT count(*) AS n FROM challenge_round WHERE closed_at IS NULL"))["n"] == 0


async def test_who_lost_the_lease_changes_nothing(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    await node.commit()
    await pool.tick()
    await node.open()
    ids, database = pool.parts.ids, pool.database
    leased = await challenge_verdicts.lease(database, ids, lease_us=SECOND, limit=4, now=pool.now)
    case = await challenge_verdicts.challenge_in_hand(database, leased.token, leased.ids[0], pool.now)
    assert case
    await pool.pass_time(2)
    await pool.tick()
    assert await pool.state(node) == "passed"
    stale = challenge_verdicts.Conclusion(challenge_verdicts.ChallengeState.FAILED, 0)
    async with database.transaction() as transaction:
        assert not await challenge_verdicts.apply(
            transaction, case, stale, enough_stake=True, due_at=pool.now, ids=ids, now=pool.now
        )
    assert await challenge_verdicts.challenge_in_hand(database, leased.token, leased.ids[0], pool.now) is None


async def test_without_enough_stake_a_pass_makes_no_node_active(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    await node.commit()
    await pool.tick()
    await node.open()
    ids, database = pool.parts.ids, pool.database
    leased = await challenge_verdicts.lease(database, ids, lease_us=SECOND, limit=4, now=pool.now)
    case = await challenge_verdicts.challenge_in_hand(database, leased.token, leased.ids[0], pool.now)
    assert case
    passed_anyway = challenge_verdicts.Conclusion(
        challenge_verdicts.ChallengeState.PASSED, 0, machine=MachineFigures(8, 8, 64_000, 64_000, 1)
    )
    async with database.transaction() as transaction:
        assert await challenge_verdicts.apply(
            transaction, case, passed_anyway, enough_stake=False, due_at=pool.now, ids=ids, now=pool.now
        )
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "registered"


async def test_nodes_that_are_away_removed_or_suspended_are_not_asked(pool: Pool, owner_id: UUID) -> None:
    away, gone, suspended = [await pool.node(owner_id) for _ in range(3)]
    await pool.run("UPDATE presence SET process_id = NULL, linked_at = NULL WHERE node_id = $1", away.id)
    await remove(pool.database, gone.id, pool.now)
    await pool.run("UPDATE node SET suspended_reason = 'test' WHERE id = $1", suspended.id)
    failing = await pool.node(owner_id)
    await pool.run("UPDATE device SET failing = 'lost' WHERE node_id = $1", failing.id)
    await pool.tick()
    assert (await pool.row("SELECT count(*) AS n FROM challenge"))["n"] == 0


async def test_a_node_removed_in_the_middle_stays_removed(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await pool.tick()
    await node.commit()
    await pool.tick()
    await node.open()
    await remove(pool.database, node.id, pool.now)
    await pool.tick()
    assert (await pool.row("SELECT life FROM node WHERE id = $1", node.id))["life"] == "deregistered"


async def test_closed_rounds_are_forgotten_after_a_month(pool: Pool, owner_id: UUID) -> None:
    node = await pool.node(owner_id)
    await passed(pool, node)
    await remove(pool.database, node.id, pool.now)
    await pool.pass_time(31 * DAY / SECOND)
    await pool.tick()
    assert (await pool.row("SELECT count(*) AS n FROM challenge_round"))["n"] == 0
    assert (await pool.row("SELECT count(*) AS n FROM challenge"))["n"] == 0
