"""Where runs start from: seats and their launcher, which somebody may end at any time."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.worlds.sandboxes.sandbox_cell import LAUNCHER, PYTHON, Cell, groups, processes, shown
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
from tidemill.agent.sandboxes.exits import wait_status
from tidemill.agent.sandboxes.interface import SandboxFault
from tidemill.agent.work.workshop import choose, reasons
from tidemill.core.jobs.sandboxes import (
    Ability,
    Command,
    Image,
    RunEnding,
    RunLimits,
    RunOutcome,
    RunSpecification,
    SandboxRefusal,
)

pytestmark = pytest.mark.needs("bubblewrap", "python3")


def launchers(place: Path) -> list[int]:
    """The launcher and the seats that wait, the oldest first."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{name}/cmdline").read_bytes()
        except OSError:
            continue
        if LAUNCHER in words and os.fsencode(place) in words:
            found.append(int(name))
    return sorted(found)


def kernel_tells() -> bool:
    """Whether this kernel says how a process ended that is not our child."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    descriptor = os.pidfd_open(child)
    os.waitpid(child, 0)
    try:
        return wait_status(descriptor) == 0
    finally:
        os.close(descriptor)


async def test_a_launcher_that_somebody_ended_takes_its_runs_with_it_and_is_replaced(cell: Cell) -> None:
    running = asyncio.create_task(cell.run(cell.order("/usr/bin/sleep", "20")))
    while not processes(cell.place):
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    os.kill(launchers(cell.place)[0], signal.SIGKILL)
    assert (await running).outcome.ending is RunEnding.KILLED
    assert (await cell.run(cell.order("/usr/bin/true"))).outcome.succeeded


async def test_a_signal_that_means_the_agent_ends_neither_the_launcher_nor_its_runs(cell: Cell) -> None:
    """A terminal and a service send it to all processes; the launcher has to remove groups behind the agent."""
    await asyncio.sleep(0.3)
    first = launchers(cell.place)[0]
    running = asyncio.create_task(cell.run(cell.order("/usr/bin/sleep", "1")))
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        await asyncio.sleep(0.1)
        os.kill(first, number)
    assert (await running).outcome.succeeded
    assert launchers(cell.place)[0] == first


async def test_a_task_gets_the_signals_that_the_launcher_does_not_mind(cell: Cell) -> None:
    program = "import signal\nprint([s for s in signal.valid_signals() if signal.getsignal(s) is signal.SIG_IGN])"
    ran = await cell.run(cell.order(PYTHON, "-I", "-S", "-c", program))
    assert ran.out == f"{[signal.SIGPIPE, signal.SIGXFSZ]}\n", "those that Python itself ignores"


async def test_a_waiting_seat_that_somebody_ended_is_not_used(cell: Cell) -> None:
    await asyncio.sleep(0.3)
    for pid in launchers(cell.place)[1:]:
        os.kill(pid, signal.SIGKILL)
    await asyncio.sleep(0.1)
    for _ in range(4):
        assert (await cell.run(cell.order("/usr/bin/true"))).outcome.succeeded


async def test_a_run_that_somebody_ended_from_outside_says_so(cell: Cell) -> None:
    if not kernel_tells():
        pytest.skip("this kernel does not tell how a process of others ended")
    for which in (0, -1):
        running = asyncio.create_task(cell.run(cell.order("/usr/bin/sleep", "20")))
        while len(processes(cell.place)) < 2:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        while len(found := processes(cell.place)) > 2:  # the program itself looks like the sandbox until it begins
            await asyncio.sleep(0.02)
        os.kill(sorted(found)[which], signal.SIGKILL)
        assert (await running).outcome == RunOutcome(RunEnding.KILLED, signal=9)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("exit 137", RunOutcome(RunEnding.DONE, exit_code=137)),
        ("exit 192", RunOutcome(RunEnding.DONE, exit_code=192)),
        ("kill -9 $$", RunOutcome(RunEnding.DONE, signal=9)),
        ("sleep 9 & exit 143", RunOutcome(RunEnding.DONE, exit_code=143)),
    ],
)
async def test_a_chosen_number_is_not_taken_for_a_signal(cell: Cell, end: str, expected: RunOutcome) -> None:
    if not kernel_tells():
        pytest.skip("this kernel does not tell how a process of others ended")
    assert (await cell.run(cell.order("/bin/sh", "-c", f"sleep 1; {end}"))).outcome == expected


async def test_many_runs_at_once_each_have_their_own(cell: Cell) -> None:
    program = "import os\nopen('mine', 'x')\nprint(os.listdir('.'))"
    ran = await asyncio.gather(*(cell.run(cell.order(PYTHON, "-c", program)) for _ in range(12)))
    assert {one.out for one in ran} == {"['mine']\n"}


async def test_a_name_can_be_used_again_at_once_and_not_twice_at_the_same_time(cell: Cell) -> None:
    order = RunSpecification("again", Command(("/bin/sh", "-c", "touch here; sleep 0.1")), RunLimits(seconds=9))
    for _ in range(5):
        assert (await cell.run(order)).outcome.succeeded
    first = asyncio.create_task(cell.run(order))
    await asyncio.sleep(0)
    with pytest.raises(SandboxFault, match="already"):
        await cell.run(order)
    assert (await first).outcome.succeeded


async def test_a_run_without_end_of_its_words_is_started_whole(cell: Cell) -> None:
    """More words than a socket's message would carry."""
    ran = await cell.run(cell.order("/bin/sh", "-c", "echo $#", *(["x" * 1000] * 800), output_bytes=100))
    assert ran.out == "799\n", ran.errors


async def test_our_own_python_works_inside_wherever_it_is_installed(cell: Cell, place: Path) -> None:
    """Its installation may lie in a closed home directory; so may the inputs."""
    closed = place / "closed"
    closed.mkdir(mode=0o700)
    (closed / "program.py").write_text(
        "import os, numpy, tidemill.core.jobs.sandboxes\n"
        "print(int(numpy.ones((3, 3)).sum()), sorted(os.listdir('/')), os.path.exists('/root'))\n"
    )
    (closed / "program.py").chmod(0o644)
    python = python_runtime()
    inputs = (*python.mounts, shown(closed / "program.py", "/input/program.py"))
    more = {"OPENBLAS_NUM_THREADS": "1"}
    command = python.script("/input/program.py", more=more)
    ran = await cell.run(cell.order(*command.arguments, environment=command.environment, inputs=inputs))
    assert ran.out.startswith("9 ["), ran.errors
    assert ran.out.endswith("False\n")
    command = python.module("json.tool", "--help", more=more)
    ran = await cell.run(cell.order(*command.arguments, environment=command.environment, inputs=python.mounts))
    assert ran.outcome.succeeded


async def test_the_first_sandbox_that_holds_a_task_to_all_demands_is_chosen(cell: Cell) -> None:
    able = cell.sandbox.enforced.abilities
    assert choose([cell.sandbox], able, needs_image=False) is cell.sandbox
    assert choose([], frozenset(), needs_image=False) is SandboxRefusal.NO_SANDBOX
    assert choose([cell.sandbox], frozenset(), needs_image=True) is SandboxRefusal.NO_IMAGES
    more = able | {Ability.DISK_QUOTA}
    assert choose([cell.sandbox], more, needs_image=False) is SandboxRefusal.DEMANDS_UNMET
    assert len(reasons([cell.sandbox, cell.sandbox], more)) == 1


async def test_bubblewrap_says_that_it_runs_no_images(cell: Cell) -> None:
    order = RunSpecification("image", Command(("true",)), RunLimits(seconds=1), image=Image("busybox"))
    with pytest.raises(SandboxFault, match="engine"):
        await cell.run(order)


async def test_closing_ends_what_still_runs(place: Path) -> None:
    cell = Cell(await open_bubblewrap(place / "runs"), place / "runs", "closing")
    running = asyncio.create_task(cell.run(cell.order("/usr/bin/sleep", "20")))
    while len(processes(cell.place)) < 2:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.2)
    cell.sandbox.close()
    with pytest.raises(SandboxFault, match="closed"):
        await running
    assert (cell.left_behind(), groups(cell.place), launchers(cell.place)) == ([], [], [])
