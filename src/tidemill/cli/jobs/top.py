"""`tidemill top`: the pool in the terminal, drawn anew every other second: nodes, prices, the queue, and jobs."""

import sys
import time
from contextlib import suppress
from typing import Annotated, Any

import typer

from tidemill.cli.client.pool_caller import PoolCaller, pool_caller
from tidemill.cli.jobs.job_view import print_jobs
from tidemill.cli.terminal.output import AsJson, counted, print_json, print_line, print_table, print_text

_CLEAR = "\x1b[H\x1b[2J"
_JOBS = 10


def top(
    every: Annotated[float, typer.Option(min=0.5, max=3600, help="Draw anew after so many seconds.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Draw once, and leave.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch the pool: what is for sale, what waits, what runs.

    It shows what your jobs do, too. Ctrl-C leaves.
    """
    caller = pool_caller()
    with suppress(KeyboardInterrupt):
        while True:
            state = _look(caller)
            if as_json:
                print_json(state)
            else:
                _draw(state, clear=not once and sys.stdout.isatty())
            if once:
                return
            time.sleep(every)


def _look(caller: PoolCaller) -> dict[str, Any]:
    views = {name: caller.ask("GET", f"/marketplace/{name}") for name in ("cluster/status", "pricing", "queue")}
    return {**views, "jobs": caller.listed("/marketplace/jobs", {}, _JOBS)}


def _draw(state: dict[str, Any], *, clear: bool) -> None:
    status, queue, pricing = state["cluster/status"], state["queue"], state["pricing"]
    if clear:
        sys.stdout.write(_CLEAR)
    waiting = ", ".join(f"{count} {priority}" for priority, count in queue["waiting"].items())
    print_text(
        f"{counted(status['nodes'], 'node')} of {counted(status['owners'], 'owner')} may get work, {status['busy']} of "
        f"them busy: {counted(status['devices'], 'GPU')}, {counted(status['cores'], 'core')}, "
        f"{status['memory_mib'] // 1024} GiB of memory."
    )
    if queue["stopped"]:
        print_text(queue["stopped"])
    print_line(f"Tasks that wait: {waiting}. Tasks that nodes have: {queue['placed']}.")
    if pricing["items"]:
        print_line("")
        rows = [
            (price["model"], str(price["nodes"]), price["low"], price["median"], price["high"])
            for price in pricing["items"]
        ]
        print_table(("device", "nodes", "lowest", "median", "highest"), rows)
    if state["jobs"]:
        print_line("")
        print_jobs(state["jobs"])
