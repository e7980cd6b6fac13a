"""What running a task costs. Prints one line of JSON.

`overhead_ms_p50` is the median of a run that does nothing, from the order to the outcome, less `bare_ms_p50`, that of
bubblewrap started directly with the same flags by whoever runs this, measured in turns. It is what a task waits: a
seat is ready, and removing comes after. `overhead_busy_ms_p50` is the same without a pause for the next seat and until
everything is removed. `tasks_per_s_bubblewrap` counts runs with as many at once as there are processors, until
everything of them is removed. What uploads cost is told in `uploading.py`.

All of it runs in one processor group. A kernel that shares processors by session or group would otherwise give a run
more of a busy machine than bubblewrap alone gets, and the overhead comes out too small, even below zero.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from uploading import upload_figures

from tidemill.agent.sandboxes import cgroups
from tidemill.agent.sandboxes.bubblewrap.program import bubblewrap_program
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap, view
from tidemill.agent.sandboxes.bubblewrap.seccomp import call_filter, this_machine
from tidemill.agent.sandboxes.interface import RunListener, Sandbox
from tidemill.core.jobs.sandboxes import Command, RunLimits, RunSpecification

NOTHING = ("/usr/bin/true",)
SILENT = RunListener(lambda _, __: None)
LIMITS = RunLimits(seconds=20)
PAUSE_S = 0.05
"""For the seat of the next turn."""


async def measured(turns: int, runs: int) -> dict[str, float]:
    """The figures of the sandbox."""
    with tempfile.TemporaryDirectory(prefix="tm-") as name:
        os.chmod(name, 0o711)
        place = Path(name)
        sandbox = await open_bubblewrap(place / "runs")
        try:
            return {
                "tasks_per_s_bubblewrap": round(await _tasks_per_s(sandbox, runs), 1),
                **await _overhead_ms(sandbox, place, turns),
            }
        finally:
            sandbox.close()


@contextmanager
def _one_group() -> Iterator[None]:
    """This process, and so whatever it starts, in a processor group of its own, where groups can be nested."""
    parents = cgroups.usable_parents(f"bench-{os.getpid()}-trial")
    if "cpu" not in parents.paths or "cpu" in parents.unified:
        yield
        return
    before = parents.paths["cpu"]
    own = before / f"{cgroups.PREFIX}bench-{os.getpid()}"
    own.mkdir()
    (own / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))
        own.rmdir()


async def _overhead_ms(sandbox: Sandbox, place: Path, turns: int) -> dict[str, float]:
    ready, busy, bare = [], [], []
    work = place / "work"
    work.mkdir()
    for turn in range(turns):
        await asyncio.sleep(PAUSE_S)
        ready.append(await _run_ms(sandbox, f"ready-{turn}", settled=False))
        await sandbox.settled()
        bare.append(_bare_ms(work))
        await _run_ms(sandbox, f"before-{turn}", settled=True)
        busy.append(await _run_ms(sandbox, f"busy-{turn}", settled=True))
    alone = statistics.median(bare)
    return {
        "overhead_ms_p50": round(statistics.median(ready) - alone, 2),
        "overhead_busy_ms_p50": round(statistics.median(busy) - alone, 2),
        "bare_ms_p50": round(alone, 2),
    }


async def _run_ms(sandbox: Sandbox, name: str, settled: bool) -> float:
    began = time.perf_counter()
    ended = await sandbox.run(RunSpecification(name, Command(NOTHING), LIMITS), SILENT)
    if settled:
        await sandbox.settled()
    took_ms = 1000 * (time.perf_counter() - began)
    assert ended.succeeded, ended
    return took_ms


def _bare_ms(work: Path) -> float:
    """One run of bubblewrap alone."""
    options = view.options(RunSpecification("bare", Command(NOTHING), LIMITS), work, view.system_options(), None)
    calls = os.memfd_create("calls")
    os.write(calls, call_filter(this_machine()) or b"")
    os.lseek(calls, 0, os.SEEK_SET)
    program = bubblewrap_program()
    assert program, "a sandbox was opened with it"
    line = [str(program.path), *options, "--seccomp", str(calls), "--", *NOTHING]
    began = time.perf_counter()
    subprocess.run(line, env={}, stdout=subprocess.DEVNULL, check=True, pass_fds=(calls,))
    took_ms = 1000 * (time.perf_counter() - began)
    os.close(calls)
    return took_ms


async def _tasks_per_s(sandbox: Sandbox, runs: int) -> float:
    waiting = iter(range(runs))

    async def one_after_another() -> None:
        for number in waiting:
            await sandbox.run(RunSpecification(f"run-{number}", Command(NOTHING), LIMITS), SILENT)

    began = time.perf_counter()
    await asyncio.gather(*(one_after_another() for _ in range(os.cpu_count() or 1)))
    await sandbox.settled()
    return runs / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="the default, and the only way to answer")
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--upload-mib", type=int, default=1024)
    given = parser.parse_args()
    with _one_group():
        figures = asyncio.run(measured(given.turns, given.runs))
    print(json.dumps({**figures, **upload_figures(given.upload_mib)}))  # noqa: T201


if __name__ == "__main__":
    main()
