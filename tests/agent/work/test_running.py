"""An agent at work: real offers on a real link, real programs in real sandboxes, and what the pool learns of them."""

import json
from uuid import UUID

import pytest

from tests.worlds.agents.agent_machine import OwnersMachine, left_in, until
from tests.worlds.agents.attempt_tasks import (
    CUSTOMER_KEY,
    POOL_KEY,
    accepted,
    attempt_id,
    declined,
    files_of,
    has_receipt,
    lines,
    offer,
    progress,
    receipt_of,
    receipts,
)
from tests.worlds.agents.pool_end import PoolEnd
from tests.worlds.sandboxes.sandbox_cell import processes
from tidemill.agent.home.home import Home
from tidemill.agent.work.attempt_directories import AttemptDirectories
from tidemill.core.clock import Instant
from tidemill.core.jobs.receipts import AttemptOutcome, Receipt
from tidemill.core.jobs.results import public_key
from tidemill.core.jobs.sandboxes import Ability
from tidemill.wire.messages import Assignment, Cancel, ReceiptsMessage

pytestmark = pytest.mark.needs("bubblewrap")

READERS = (public_key(POOL_KEY), public_key(CUSTOMER_KEY))


@pytest.fixture
async def running(pool: PoolEnd, machine: OwnersMachine) -> OwnersMachine:
    await machine.start("run")
    await until(lambda: bool(pool.node.facts("sandbox")), "it says what it can do")
    return machine


def left_behind(machine: OwnersMachine) -> list[str]:
    """Processes of tasks, and what lies of attempts. What waits for a next run is no task's."""
    runs = Home(machine.home).runs
    return [
        *(f"process {pid}" for pid in processes(runs)),
        *left_in(runs),
        *(entry.name for entry in (machine.home / "attempts").iterdir()),
    ]


async def test_a_script_is_run_and_its_result_delivered(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order([offer(1)])
    await until(lambda: has_receipt(pool, 1), "its receipt arrives")
    receipt = receipt_of(pool, 1)
    assert receipt.outcome is AttemptOutcome.DONE, receipt.reason
    assert files_of(receipt) == {"hello.txt": b"hello"}
    assert receipt.numeric_class.startswith("device; ")
    assert receipt.started_at <= receipt.finished_at
    assert accepted(pool, 1) == 1
    await until(lambda: not left_behind(running), "nothing is left")


async def test_a_result_opens_for_the_pool_and_the_customer_and_nobody_else(
    pool: PoolEnd, running: OwnersMachine
) -> None:
    pool.order([offer(1, seal_to=READERS)])
    await until(lambda: has_receipt(pool, 1), "its receipt arrives")
    receipt = receipt_of(pool, 1)
    assert b"hello" not in receipt.inline
    assert files_of(receipt, POOL_KEY) == files_of(receipt, CUSTOMER_KEY) == {"hello.txt": b"hello"}
    with pytest.raises(ValueError, match="not enough values"):
        files_of(receipt, b"x" * 32)


async def test_a_task_that_fails_says_how(pool: PoolEnd, running: OwnersMachine) -> None:
    programs = [
        "raise SystemExit('I give up.')",
        "import os; os.kill(os.getpid(), 9)",
        "import time; time.sleep(60)",
        "open('out', 'w') if not __import__('shutil').rmtree('out') else 0",
        "open('out/' + 'x' * 120, 'w')",
    ]
    pool.order([offer(n, one, deadline_s=3 if "sleep" in one else 60) for n, one in enumerate(programs)])
    await until(lambda: all(has_receipt(pool, n) for n in range(len(programs))), "all receipts arrive")
    found = [receipt_of(pool, n) for n in range(len(programs))]
    assert all(one.outcome is AttemptOutcome.FAILED and not one.inline for one in found)
    assert [one.exit_code for one in found[:2]] == [1, 137]
    assert "Its last words: 'I give up.'." in found[0].reason
    assert "deadline" in found[2].reason
    assert "directory" in found[3].reason
    assert "name" in found[4].reason
    await until(lambda: not left_behind(running), "nothing is left")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"task": b"{}"}, "must be there"),
        ({"task": b"\xff" * 100}, "JSON"),
        ({"deadline_ms": 0}, "deadline"),
        ({"task_id": bytes(16)}, "which task"),
    ],
)
async def test_what_cannot_be_met_is_declined_with_a_sentence(
    pool: PoolEnd, running: OwnersMachine, changed: dict[str, object], words: str
) -> None:
    plain = offer(1)
    fields = {name: getattr(plain, name) for name in plain.__struct_fields__}
    pool.order([Assignment(**{**fields, **changed})])
    await until(lambda: bool(declined(pool, 1)), "it is declined")
    assert words in declined(pool, 1)[0]


async def test_what_the_machine_or_its_sandbox_has_not_is_declined(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order(
        [
            offer(1, devices=1),
            offer(2, demands=frozenset({Ability.DISK_QUOTA})),
            offer(3, seal_to=(bytes(32),)),
            offer(4, kind="unheard-of"),
        ]
    )
    await until(lambda: all(declined(pool, number) for number in (1, 2, 3, 4)), "all are declined")
    assert "working devices" in declined(pool, 1)[0]
    assert "quota" in declined(pool, 2)[0]
    assert "everybody" in declined(pool, 3)[0]
    assert "kind" in declined(pool, 4)[0]


async def test_progress_and_printed_lines_are_told_while_it_runs(pool: PoolEnd, running: OwnersMachine) -> None:
    program = (
        "import sys, time\n"
        "for step in range(1, 5):\n"
        "    print('step', step, flush=True)\n"
        "    print(f'tidemill-progress {step * 200000}', file=sys.stderr, flush=True)\n"
        "    time.sleep(0.7)\n"
        "print('tidemill-progress 1', file=sys.stderr)\n"
        "for line in range(5000): print('x' * 20, line)\n"
    )
    pool.order([offer(1, program)])
    await until(lambda: bool(progress(pool, 1)) and "step 1" in lines(pool, 1).values(), "it is told while it runs")
    assert not has_receipt(pool, 1)
    await until(lambda: has_receipt(pool, 1), "its receipt arrives")
    told = progress(pool, 1)
    assert told == sorted(set(told))
    assert 1 <= len(told) <= 6
    printed = lines(pool, 1)
    assert len(printed) < 1_000
    assert any("left out" in line for line in printed.values())
    assert "x" * 20 + " 4999" in printed.values()


async def test_an_attempt_is_cancelled_wherever_it_is(pool: PoolEnd, running: OwnersMachine) -> None:
    forever = "import time; time.sleep(3600)"
    pool.order([offer(1, forever), offer(2, forever)])
    await until(lambda: running.shown()["work"]["running"] == 2, "both run")
    pool.order([Cancel(attempt_id(1), 1, "Never mind."), Cancel(attempt_id(2), 1, "Never mind.")])
    pool.order([offer(3, forever), Cancel(attempt_id(3), 1, "Never mind.")])
    await until(lambda: not left_behind(running), "nothing is left")
    await until(lambda: running.shown()["work"]["running"] == 0, "nothing runs")
    assert not receipts(pool.node), "what was called off needs no receipt"
    assert not any(declined(pool, number) for number in (1, 2, 3))


async def test_the_owner_sees_what_runs_and_what_could(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order([offer(1, "import time; time.sleep(3600)")])
    await until(lambda: running.shown()["work"]["running"] == 1, "it runs")
    done = await running.do("status")
    assert "runs" in done.out
    assert "script" in done.out
    facts = json.loads(pool.node.facts("sandbox")[-1])
    assert {"script", "matmul"} <= set(facts["kinds"])
    assert "NO_NETWORK" in facts["abilities"]
    doctor = await running.do("doctor")
    assert "script" in doctor.out


async def test_pausing_stops_what_runs_and_gives_it_back(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order([offer(1, "import time; time.sleep(3600)")])
    await until(lambda: running.shown()["work"]["running"] == 1, "it runs")
    await running.do("pause")
    await until(lambda: bool(declined(pool, 1)), "it is given back")
    assert "paused" in declined(pool, 1)[0]
    await until(lambda: not left_behind(running), "nothing is left")
    assert not receipts(pool.node)


async def test_draining_finishes_what_runs(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order([offer(1, "import time; time.sleep(2); " + "open('out/x', 'w').write('done')")])
    await until(lambda: running.shown()["work"]["running"] == 1, "it runs")
    await running.do("drain")
    await until(lambda: has_receipt(pool, 1), "it is finished")
    assert receipt_of(pool, 1).outcome is AttemptOutcome.DONE
    pool.order([offer(2)])
    await until(lambda: bool(declined(pool, 2)), "no more is taken")


async def test_an_attempt_under_a_newer_lease_takes_the_older_ones_place(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order([offer(1, "import time; time.sleep(3600)", lease=1)])
    await until(lambda: running.shown()["work"]["running"] == 1, "it runs")
    pool.order([offer(1, lease=2)])
    await until(lambda: has_receipt(pool, 1), "its receipt arrives")
    assert receipt_of(pool, 1).lease == 2
    await until(lambda: not left_behind(running), "nothing is left")


async def test_many_small_tasks_share_signatures(pool: PoolEnd, running: OwnersMachine) -> None:
    pool.order([offer(number) for number in range(40)])
    await until(lambda: len(receipts(pool.node)) == 40, "all receipts arrive", 60)
    assert all(one.outcome is AttemptOutcome.DONE for one in receipts(pool.node))
    batches = [one for one in pool.node.reports if isinstance(one, ReceiptsMessage)]
    assert len(batches) < 40


async def test_what_an_earlier_run_finished_is_handed_over_and_not_done_again_when_it_is_offered(
    pool: PoolEnd, machine: OwnersMachine
) -> None:
    """The run before was killed between the last two steps: the receipt lies with its attempt, and nowhere else."""
    asked = offer(1)
    finished = Receipt(
        task_id=UUID(bytes=asked.task_id),
        attempt_id=UUID(bytes=asked.attempt_id),
        node_id=pool.node.node_id,
        lease=1,
        result_sha256=b"",
        artefact=None,
        inline=b"",
        envelopes=(),
        started_at=Instant(1),
        finished_at=Instant(2),
        device_ms=1,
        numeric_class="device",
        proof=b"",
        outcome=AttemptOutcome.FAILED,
        exit_code=1,
        reason="It failed.",
    )
    AttemptDirectories(machine.home / "attempts").take(asked, Instant(2**50)).keep(finished)
    await machine.start("run")
    await until(lambda: has_receipt(pool, 1), "its receipt arrives")
    pool.order([asked, offer(2)])
    await until(lambda: has_receipt(pool, 2), "what comes after it is done")
    assert receipts(pool.node)[0] == finished
    assert len(receipts(pool.node)) == 2
    assert accepted(pool, 1) == 0


@pytest.mark.parametrize("killed", [False, True])
async def test_work_is_finished_while_the_pool_is_away_and_not_done_again_when_it_asks(
    pool: PoolEnd, running: OwnersMachine, killed: bool
) -> None:
    asked = offer(1, "import os, time; time.sleep(1); open('out/x', 'wb').write(os.urandom(16))")
    pool.order([asked])
    await until(lambda: accepted(pool, 1) == 1, "it is accepted")
    await pool.go()
    await until(lambda: not left_behind(running), "it is finished")
    if killed:
        running.running[-1].kill()
        await running.running[-1].wait()
    pool.greeting += [asked, offer(2)]
    await pool.come()
    if killed:
        await running.start("run")
    await until(lambda: has_receipt(pool, 1) and has_receipt(pool, 2), "both receipts arrive")
    await until(lambda: not left_behind(running), "nothing of either is left")
    assert accepted(pool, 1) == 1
    assert len(receipts(pool.node)) == 2
