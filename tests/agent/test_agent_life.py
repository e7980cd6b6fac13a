"""An agent's life: links that break, pools that go away and refuse, orders twice, processes killed at any moment."""

import asyncio
import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.agents import busy_agent
from tests.worlds.agents.agent_machine import OwnersMachine, machine_in, until
from tests.worlds.agents.pool_end import PoolEnd
from tests.worlds.agents.spool_reports import number_in
from tests.worlds.forks import NOTHING, Forked, fork
from tidemill.core.clock import Instant
from tidemill.core.nodes.machine.hardware import Machine, machine_of
from tidemill.core.nodes.rules.rule_book import RuleBook, RuleOrigin, change, from_json, to_json
from tidemill.wire.messages import Assignment, Cancel, DeclinedMessage, ReceiptsMessage, RefusedMessage, Wish

NOW = Instant(1_800_000_000_000_000)
AT_ONCE_S = 15.0
"""Half of the time between two beats."""


async def linked(pool: PoolEnd, machine: OwnersMachine) -> Forked:
    before = pool.node.generation
    process = await machine.start("run")
    await until(lambda: pool.node.generation > before, "it is linked")
    return process


def wishes(**rules: object) -> bytes:
    book = change(RuleBook(), rules, by="ann@pool.example", place=RuleOrigin.POOL, now=NOW)
    assert isinstance(book, RuleBook)
    return to_json(book)


def rules_told(pool: PoolEnd) -> dict[str, Any]:
    """The rules that the agent told last, by name."""
    told = pool.node.facts("rules")
    return {name: rule["value"] for name, rule in json.loads(told[-1]).items()} if told else {}


async def test_an_agent_comes_back_after_a_cut_and_after_the_pool_was_away(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    process = await linked(pool, machine)
    pool.cut()
    await until(lambda: pool.node.generation == 3, "it comes back after a cut")
    await pool.go()
    await until(lambda: machine.shown()["link"]["state"] in {"waiting", "calling"}, "it says that the pool is away")
    assert process.returncode is None
    await pool.come()
    await until(lambda: pool.node.generation == 4, "it comes back when the pool does")
    assert len({hello.instance for hello in pool.hellos}) == 1, "one run of an agent is one instance"


async def test_a_beat_that_nobody_heard_is_told_later(pool: PoolEnd, machine: OwnersMachine) -> None:
    await linked(pool, machine)
    await until(lambda: bool(pool.node.beats), "it beats")
    await pool.go()
    await asyncio.sleep(1)
    await pool.come()
    await until(lambda: bool(pool.node.facts("past_beat")), "the beat arrives")


async def test_what_was_promised_arrives_once_and_in_order_however_often_the_agent_is_killed(
    pool: PoolEnd, machine: OwnersMachine, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    dice = random.Random(seed)
    promised: list[int] = []
    for life in range(8):
        pool.loses_acknowledgements = dice.random() < 0.3
        file = tmp_path / f"promises-{life}"
        with file.open("wb") as promises:
            streams = (NOTHING, promises.fileno(), NOTHING)
            process = fork(busy_agent.begin, machine.home, (life + 1) * 10**6, streams=streams)
        machine.running.append(process)
        await until(lambda file=file: b"\n" in file.read_bytes(), "it has promised something")
        await asyncio.sleep(dice.uniform(0, 0.6))
        if dice.random() < 0.5:
            pool.cut()
            await asyncio.sleep(dice.uniform(0, 0.3))
        process.kill()
        await process.wait()
        promised += [int(line) for line in file.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    pool.loses_acknowledgements = False
    await linked(pool, machine)
    await until(lambda: (marks(pool) or [0])[-1] >= promised[-1], f"everything arrives; seed {seed}")
    assert marks(pool) == sorted(set(marks(pool))), f"seed {seed}: not in order, or not once"
    assert set(promised) <= set(marks(pool)), f"seed {seed}: something is lost"


def marks(pool: PoolEnd) -> list[int]:
    return [number_in(report) for report in pool.node.reports if isinstance(report, ReceiptsMessage)]


async def test_a_spool_that_is_gone_begins_behind_what_the_pool_has(pool: PoolEnd, machine: OwnersMachine) -> None:
    received = pool.node.received = 7
    await linked(pool, machine)
    await until(lambda: pool.node.received > received, "what is new arrives")


async def test_an_older_copy_of_the_spool_does_not_stop_the_agent(pool: PoolEnd, machine: OwnersMachine) -> None:
    process = await linked(pool, machine)
    await until(lambda: pool.node.received > 0, "something was reported")
    process.kill()
    await process.wait()
    pool.node.received += 1_000
    generation = pool.node.generation
    await machine.start("run")
    await until(lambda: pool.node.generation > generation, "it is let in")


async def test_a_pool_that_was_restored_is_told_everything_again(pool: PoolEnd, machine: OwnersMachine) -> None:
    await linked(pool, machine)
    await until(lambda: bool(pool.node.facts("machine")), "it told what it is")
    pool.node.received = 0
    pool.node.reports.clear()
    pool.cut()
    await until(lambda: bool(pool.node.facts("machine")), "it tells it again")


async def test_a_removed_node_ends_its_agent_for_good(pool: PoolEnd, machine: OwnersMachine) -> None:
    process = await linked(pool, machine)
    pool.close("node_removed", "This node was removed from the pool.")
    assert await asyncio.wait_for(process.wait(), 10) == 6
    assert "This node was removed" in machine.said()
    status = await machine.status()
    assert status["link"]["state"] == "over"
    pool.refusal = RefusedMessage("node_removed", "This node was removed from the pool.")
    again = await machine.do("run")
    assert again.code == 6
    assert "This node was removed" in again.said


async def test_a_refusal_that_passes_is_waited_for_as_the_pool_asks(pool: PoolEnd, machine: OwnersMachine) -> None:
    pool.refusal = RefusedMessage("identity_in_use", "Another machine with this identity is connected.", 300)
    before = len(pool.hellos)
    process = await machine.start("run")
    await until(lambda: len(pool.hellos) >= before + 3, "it tries again soon")
    pool.refusal = None
    await until(lambda: pool.node.generation == 2, "it is let in")
    assert process.returncode is None


async def test_two_agents_do_not_run_in_one_home(pool: PoolEnd, machine: OwnersMachine) -> None:
    process = await linked(pool, machine)
    second = await machine.do("run")
    assert second.code == 5
    assert f"process {process.pid}" in second.said


async def test_an_offer_is_declined_once_however_often_it_is_made(pool: PoolEnd, machine: OwnersMachine) -> None:
    await linked(pool, machine)
    offer = Assignment(b"a" * 16, 1, 10_000, b"{}")
    pool.order([offer] * 100)
    pool.order(
        [Cancel(b"a" * 16, 1, "Never mind."), Wish("unheard_of", b"\xff"), Assignment(b"b" * 16, 1, 10_000, b"{}")]
    )
    await until(lambda: any(one.attempt_id == b"b" * 16 for one in declined(pool)), "both are answered")
    assert [one.attempt_id[:1] for one in declined(pool)] == [b"a", b"b"]
    assert "must be there" in declined(pool)[0].reason


def declined(pool: PoolEnd) -> list[DeclinedMessage]:
    return [report for report in pool.node.reports if isinstance(report, DeclinedMessage)]


async def test_rules_of_the_pool_are_kept_on_the_machine_and_obeyed(pool: PoolEnd, machine: OwnersMachine) -> None:
    pool.greeting = [Wish("rules", wishes(price="2.5", work="pause", region="north"))]
    await linked(pool, machine)
    await until((machine.home / "rules.json").exists, "they are kept")
    kept = json.loads((await machine.do("rules", "show", "--json")).out)
    assert kept["price"]["value"] == "2.5"
    assert kept["price"]["by"] == "ann@pool.example"
    pool.order([Assignment(b"a" * 16, 1, 10_000, b"{}")])
    await until(lambda: bool(declined(pool)), "it declines")
    assert "paused" in declined(pool)[0].reason
    assert not pool.node.facts("rules"), "the pool knows them already"
    await until(lambda: _region(pool) == "north", "the region is told with the machine")


def _region(pool: PoolEnd) -> str | None:
    facts = pool.node.facts("machine")
    if not facts:
        return None
    machine = machine_of(facts[-1])
    assert isinstance(machine, Machine)
    return machine.network.region


async def test_what_the_owner_sets_on_the_machine_reaches_the_pool_at_once_and_not_with_a_beat(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    await linked(pool, machine)
    assert (await machine.do("drain", "--wait")).code == 0
    assert any(one["code"] == "draining" for one in (await machine.status())["work"]["reasons"])
    await until(lambda: rules_told(pool).get("work") == "drain", "the pool is told", AT_ONCE_S)
    assert (await machine.do("resume")).code == 0
    await until(lambda: rules_told(pool).get("work") == "run", "the pool is told", AT_ONCE_S)


async def test_what_was_set_while_nothing_ran_reaches_the_pool_and_the_newest_counts(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    pool.greeting = [Wish("rules", wishes(price="1", work="run"))]
    set_here = await machine.do("rules", "set", "price=3", "windows=22:00-08:00,sat+sun/00:00-24:00", "labels=rack=7")
    assert set_here.code == 0, set_here.said
    assert (await machine.do("drain", "--wait")).code == 0
    await linked(pool, machine)
    await until(lambda: bool(rules_told(pool)), "the pool is told")
    told = rules_told(pool)
    book = from_json(pool.node.facts("rules")[-1])
    assert isinstance(book, RuleBook)
    assert (told["price"], told["labels"], len(told["windows"])) == ("1", ["rack=7"], 2), "the pool's price is newer"
    assert told["work"] == "run"


@pytest.mark.parametrize("rule", ["price=-1", "price", "colour=red", "windows=25:00-26:00", "labels=,", "work=run"])
async def test_a_rule_that_is_none_is_refused_and_changes_nothing(rule: str, tmp_path: Path) -> None:
    async with machine_in(tmp_path) as machine:
        done = await machine.do("rules", "set", "price=2", rule)
        assert done.code == 1
        assert json.loads((await machine.do("rules", "show", "--json")).out) == {}


async def test_rules_that_cannot_be_read_are_left_alone_and_complained_of(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    await linked(pool, machine)
    (machine.home / "rules.json").write_text("{")
    pool.order(
        [Wish("rules", wishes(price="9")), Wish("rules", b"[]"), Wish("rules", b"\xff"), Wish("versions", b"no")]
    )
    pool.order([Assignment(b"a" * 16, 1, 10_000, b"{}")])
    await until(lambda: bool(declined(pool)), "every order before the offer was looked at")
    await until(lambda: any("damaged" in one for one in machine.shown()["complaints"]), "it complains")
    assert any("damaged" in one for one in (await machine.status())["complaints"])
    assert (machine.home / "rules.json").read_text() == "{"


async def test_an_old_agent_is_told_so_and_takes_no_work(pool: PoolEnd, machine: OwnersMachine) -> None:
    pool.greeting = [Wish("versions", b'{"accepted":false,"oldest":"99.1"}')]
    await linked(pool, machine)
    pool.order([Assignment(b"a" * 16, 1, 10_000, b"{}")])
    await until(lambda: bool(declined(pool)), "it declines")
    assert "upgrade it to 99.1 or newer" in declined(pool)[0].reason
    told = {"accepted": False, "oldest": "99.1"}
    await until(lambda: machine.shown()["versions"] == told, "it says so here, too")
    assert (await machine.status())["versions"] == told
    assert (await machine.do("drain", "--wait")).code == 0


@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize("runs", [True, False])
async def test_a_machine_leaves_and_forgets(
    pool: PoolEnd, machine: OwnersMachine, *, removes: bool, runs: bool
) -> None:
    pool.removes_leavers = removes
    process = await linked(pool, machine) if runs else None
    done = await machine.do("leave", "--reason", "moving house")
    assert done.code == 0, done.said
    assert [json.loads(one)["reason"] for one in pool.node.facts("leave")] == ["moving house"]
    assert sorted(file.name for file in machine.home.iterdir()) == ["agent.lock"]
    if process:
        assert await process.wait() == 6, "a service must not be started again"
    else:
        assert (await machine.do("join", pool.url, "--once", stdin=pool.token)).code == 0


async def test_leaving_without_the_pool_needs_force(pool: PoolEnd, machine: OwnersMachine) -> None:
    pool.refusal = RefusedMessage("busy", "Come back later.", 3_600_000)
    machine.settings["TIDEMILL_LOG_LEVEL"] = "error"
    process = await machine.start("run")
    await until(lambda: bool(pool.hellos), "it was refused")
    done = await machine.do("leave", "--force")
    assert done.code == 0, done.said
    assert not (machine.home / "membership.json").exists()
    assert await process.wait() == 6


async def test_a_leave_that_could_not_be_told_is_told_when_the_agent_runs(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    pool.removes_leavers = True
    await pool.go()
    leaving = await machine.start("leave", "--reason", "sold")
    await until((machine.home / "leave.json").exists, "the wish is there")
    await until(lambda: machine.shown().get("reports_waiting", 0) > 0, "it is kept for the pool")
    leaving.kill()
    await leaving.wait()
    await pool.come()
    process = await machine.start("run")
    assert await asyncio.wait_for(process.wait(), 30) == 6
    assert {json.loads(one)["reason"] for one in pool.node.facts("leave")} == {"sold"}
    pool.refusal = RefusedMessage("node_removed", "This node was removed from the pool.")
    assert (await machine.do("leave")).code == 0
    assert not (machine.home / "membership.json").exists()


async def test_the_line_is_measured_after_joining(pool: PoolEnd, machine: OwnersMachine) -> None:
    await linked(pool, machine)
    await until((machine.home / "speed.json").exists, "it was measured")
    await until(lambda: _down_bps(pool) > 1_000_000, "the pool is told")


def _down_bps(pool: PoolEnd) -> int:
    facts = pool.node.facts("machine")
    if not facts:
        return None
    machine = machine_of(facts[-1])
    assert isinstance(machine, Machine)
    return machine.network.down_bps or 0


async def test_a_second_signal_ends_an_agent_at_once(pool: PoolEnd, machine: OwnersMachine) -> None:
    process = await linked(pool, machine)
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGCONT)
    assert await asyncio.wait_for(process.wait(), 5) in {0, 130}
