"""A hostile task does not want to end, or its agent ends without a word."""

import asyncio
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import PYTHON, Cell, groups, opened_cell, processes, shown
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
from tidemill.agent.sandboxes.interface import SandboxFault
from tidemill.core.jobs.sandboxes import Ability, RunEnding

pytestmark = pytest.mark.needs("bubblewrap", "python3")

STAY = """
import os, signal, time
for one in range(1, 32):
    if one not in (signal.SIGKILL, signal.SIGSTOP): signal.signal(one, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: break
        os._exit(0)
print("here", flush=True)
while True: time.sleep(1)
"""
"""It ignores every signal, forks twice, and leaves its session."""


async def test_nothing_stays_after_the_deadline(cell: Cell) -> None:
    began = time.monotonic()
    ran = await cell.run(cell.order(PYTHON, "-c", STAY, seconds=0.5))
    assert ran.outcome.ending is RunEnding.DEADLINE
    assert ran.outcome.signal == signal.SIGKILL
    assert time.monotonic() - began < 6


async def test_a_task_that_listens_may_end_in_order_at_its_deadline(cell: Cell) -> None:
    program = "import signal, sys, time\nsignal.signal(15, lambda *_: (print('bye'), sys.exit(0)))\ntime.sleep(20)"
    ran = await cell.run(cell.order(PYTHON, "-c", program, seconds=0.5))
    assert (ran.outcome.ending, ran.outcome.exit_code, ran.out) == (RunEnding.DEADLINE, 0, "bye\n")


async def test_what_runs_on_behind_an_ended_program_ends_with_it(cell: Cell) -> None:
    ran = await cell.run(cell.order("/bin/sh", "-c", "setsid sleep 30 & exit 7"))
    assert (ran.outcome.ending, ran.outcome.exit_code) == (RunEnding.DONE, 7)


async def test_a_caller_that_is_cancelled_leaves_nothing(cell: Cell) -> None:
    running = asyncio.create_task(cell.run(cell.order(PYTHON, "-c", STAY)))
    await asyncio.sleep(0.4)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await cell.sandbox.settled()
    assert cell.left_behind() == []


@pytest.mark.parametrize("after_s", [0.0, 0.002, 0.005, 0.01, 0.02])
async def test_a_run_cancelled_while_it_starts_leaves_nothing(cell: Cell, after_s: float) -> None:
    running = asyncio.create_task(cell.run(cell.order("/usr/bin/sleep", "20")))
    await asyncio.sleep(after_s)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await cell.sandbox.settled()
    assert cell.left_behind() == []


async def test_a_command_that_is_not_there_is_the_tasks_own_fault(cell: Cell) -> None:
    ran = await cell.run(cell.order("/no/such/program"))
    assert ran.outcome.ending is RunEnding.NOT_STARTED
    assert "No such file" in ran.errors


async def test_an_input_that_is_not_there_is_said(cell: Cell, place: Path) -> None:
    ran = await cell.run(cell.order("/usr/bin/true", inputs=(shown(place / "nowhere", "/input"),)))
    assert ran.outcome.ending is RunEnding.NOT_STARTED
    assert "nowhere" in ran.errors


@pytest.mark.needs("root")
def test_an_agent_without_rights_runs_tasks_too_and_says_what_it_cannot_enforce(place: Path) -> None:
    """Started as nobody, in a place of nobody's."""
    runs = place / "runs"
    runs.mkdir()
    os.chown(runs, 65534, 65534)
    agent = os.fork()
    if agent == 0:
        os._exit(_as_nobody(runs))
    assert os.waitstatus_to_exitcode(os.waitpid(agent, 0)[1]) == 0
    assert sorted(os.listdir(runs)) == [".stage", "lock"]


def _as_nobody(runs: Path) -> int:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    sys.executable = PYTHON  # an agent's own Python is one that it can reach
    return asyncio.run(_bomb(runs))


async def _bomb(runs: Path) -> int:
    """Nothing when tasks run, processes are counted, and memory is either limited or said not to be."""
    cell = Cell(await open_bubblewrap(runs), runs, "nobody")
    able = cell.sandbox.enforced.abilities
    program = "import time\ncount = 0\ntry:\n    while count < 50:\n        if os.fork() == 0: time.sleep(9)\n"
    ran = await cell.python(program + "        count += 1\nexcept OSError: print(count)")
    hog = await cell.python("hog = [bytearray(b'x' * 2**20) for _ in range(300)]\nprint('ESCAPED')")
    held = hog.outcome.ending is RunEnding.MEMORY if Ability.MEMORY in able else "ESCAPED" in hog.out
    left = cell.left_behind()
    cell.sandbox.close()
    return 0 if ran.out == "15\n" and Ability.UNPRIVILEGED not in able and held and left == [] else 1


async def test_two_agents_do_not_share_a_place(cell: Cell) -> None:
    with pytest.raises(SandboxFault, match="Another agent"):
        await open_bubblewrap(cell.place)


AGENT = """
import asyncio, sys
from pathlib import Path
from tests.worlds.sandboxes.sandbox_cell import Cell, PYTHON
from tests.agent.sandboxes.test_endings import STAY
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
async def main():
    place = Path(sys.argv[1])
    cell = Cell(await open_bubblewrap(place), place, sys.argv[2])
    print("open", flush=True)
    while True:
        await asyncio.gather(cell.run(cell.order(PYTHON, "-c", STAY, seconds=3)), cell.run(cell.order("/usr/bin/true")))
asyncio.run(main())
"""


async def started_agent(runs: Path, token: str) -> asyncio.subprocess.Process:
    """An agent in a process of its own, about to run tasks."""
    words = (sys.executable, "-c", AGENT, str(runs), token)
    agent = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
    assert agent.stdout is not None
    assert await agent.stdout.readline() == b"open\n"
    return agent


async def kill_outright(agent: asyncio.subprocess.Process) -> None:
    agent.kill()
    await agent.wait()


@pytest.mark.parametrize("after_s", [0.0, 0.003, 0.007, 0.012, 0.02, 0.03, 0.5])
async def test_an_agent_killed_outright_leaves_nothing_once_the_next_has_started(place: Path, after_s: float) -> None:
    token = f"killed{int(after_s * 1000)}"
    agent = await started_agent(place / "runs", token)
    await asyncio.sleep(after_s)
    await kill_outright(agent)
    async with opened_cell(place) as cell:
        cell.token = token
        assert cell.left_behind() == []


async def test_the_kernel_ends_a_killed_agents_tasks_before_any_other_agent_starts(place: Path) -> None:
    agent = await started_agent(place / "runs", "orphan")
    while len(processes(place / "runs")) < 2:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    await kill_outright(agent)
    until = time.monotonic() + 5
    while processes(place / "runs") and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert processes(place / "runs") == []
    async with opened_cell(place):
        pass


@pytest.mark.parametrize("kills", [6, pytest.param(50, marks=pytest.mark.soak)])
async def test_agents_killed_at_random_moments_leave_nothing(place: Path, kills: int) -> None:
    """Each starts where the one before was killed; a failure tells its seed."""
    seed = random.SystemRandom().getrandbits(32)
    moments = random.Random(seed)
    for number in range(kills):
        agent = await started_agent(place / "runs", f"random{number}")
        await asyncio.sleep(moments.uniform(0, 0.15))
        await kill_outright(agent)
    async with opened_cell(place) as cell:
        assert cell.left_behind() == [], f"seed {seed}"


async def test_a_killed_agents_control_groups_go_even_if_its_place_is_gone(place: Path) -> None:
    agent = await started_agent(place / "runs", "placeless")
    await asyncio.sleep(0.3)
    assert groups(place / "runs")
    await kill_outright(agent)
    shutil.rmtree(place / "runs", ignore_errors=True)
    until = time.monotonic() + 10
    while groups(place / "runs") and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert groups(place / "runs") == []
