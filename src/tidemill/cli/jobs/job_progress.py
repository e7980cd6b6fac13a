"""Watches a job to its end: what its programs print, what it waits for, and what came of it.

What programs print on their standard output goes to ours; everything else goes to stderr, so that a job can stand in a
pipe. Ctrl-C leaves the job running.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from tidemill.cli.client.http_calls import PoolRefused
from tidemill.cli.client.pool_caller import PoolCaller
from tidemill.cli.jobs.job_output import OutputFeed, OutputPrinter, output_feed
from tidemill.cli.jobs.job_view import progress_of, reasons_told
from tidemill.cli.jobs.job_watch import ROUTE
from tidemill.cli.terminal.output import CommandRefused, counted
from tidemill.core.ids import short_id
from tidemill.host.standard_error import say

POLL_S, SLOW_POLL_S = 1.0, 2.0
SLOW_AFTER_S = 10.0
SILENT_S = 5.0
"""After so long it is said what the job waits for."""

REST_S = 5.0
"""How long the rest of the output is waited for, once the job is over."""

_TOO_OFTEN = ("rate_limited", "account_rate_limited")
_ENDS = {
    "completed": "Done.",
    "failed": "It failed.",
    "cancelled": "It was called off.",
    "expired": "It was not done by its deadline.",
}
_FILES_MAX, _NODES_MAX = 10, 3


def wait_until_over(caller: PoolCaller, job: dict[str, Any], *, to_stderr: bool = False) -> dict[str, Any]:
    """The job once it is over. Its output is printed, and what it waits for is said when that takes long."""
    several = job["progress"]["tasks"] > 1
    printer = OutputPrinter(several=several, to_stderr=to_stderr)
    watch = _Watch(several=several)
    try:
        with output_feed(caller, f"{ROUTE}/{job['id']}/logs") as feed:
            while job["ended_at"] is None:
                _print_until(feed, printer, time.monotonic() + watch.pause_s)
                job = _look(caller, job)
                watch.tell(job)
            _print_until(feed, printer, time.monotonic() + REST_S)
    except KeyboardInterrupt:
        _leave(job)
    return job


def say_end(
    job: Mapping[str, Any],
    results: Sequence[Mapping[str, Any]],
    paid: Mapping[str, Decimal],
    files: Sequence[Path] | None,
) -> None:
    """Say what came of a job, what it cost, and where its result is. `files` are those that were fetched, if any."""
    reasons = Counter(result["reason"] for result in results if result["reason"])
    say(" ".join((_ENDS.get(job["state"], f"It is {job['state']}."), *reasons_told(reasons))))
    nodes = [f"{name} got {amount}" for name, amount in list(paid.items())[:_NODES_MAX]]
    more = [f"{counted(len(paid) - _NODES_MAX, 'more node')} got the rest"] if len(paid) > _NODES_MAX else []
    owners = f"; {', '.join([*nodes, *more])}" if nodes else ""
    why = " for the time that it took" if job["state"] == "failed" else ""
    is_charged = Decimal(job["spent"]) > 0
    say(f"It cost {job['spent']} {job['currency']}s{why}{owners}." if is_charged else "Nothing was charged.")
    _say_where(job, results, files)


def _say_where(job: Mapping[str, Any], results: Sequence[Mapping[str, Any]], files: Sequence[Path] | None) -> None:
    is_kept = any(result["artefact_id"] or result["inline"] for result in results)
    if not is_kept:
        if results:
            say("There is nothing to fetch: only results that passed are kept.")
    elif files is None:
        say(f"The result: `tidemill jobs result {short_id(job['id'])} --out FOLDER` fetches it.")
    elif not files:
        say("The result has no files: a program leaves them below out/.")
    else:
        for file in files[:_FILES_MAX]:
            say(f"{file}")
        if len(files) > _FILES_MAX:
            say(f"and {counted(len(files) - _FILES_MAX, 'more file')}.")


class _Watch:
    """Decides what to say of a job that goes on, and when to look again."""

    def __init__(self, *, several: bool) -> None:
        self._several = several
        self._begun = time.monotonic()
        self._progress = self._waits = ""

    @property
    def pause_s(self) -> float:
        return POLL_S if time.monotonic() - self._begun < SLOW_AFTER_S else SLOW_POLL_S

    def tell(self, job: Mapping[str, Any]) -> None:
        progress, waits = progress_of(job), job["waits_for"] or ""
        if self._several and progress != self._progress:
            say(f"{progress}.")
            self._progress = progress
        if time.monotonic() - self._begun >= SILENT_S and waits and waits != self._waits:
            say(waits)
            self._waits = waits


def _look(caller: PoolCaller, job: dict[str, Any]) -> dict[str, Any]:
    """The job as it is now. Who asks too often gets the last answer again, and asks later."""
    try:
        found: dict[str, Any] = caller.ask("GET", f"{ROUTE}/{job['id']}")
    except PoolRefused as refused:
        if refused.code not in _TOO_OFTEN:
            raise
        time.sleep(SLOW_POLL_S)
        return job
    return found


def _print_until(feed: OutputFeed, printer: OutputPrinter, at: float) -> None:
    """Print what comes, until there is no more or the time is up."""
    while not feed.is_over and (left_s := at - time.monotonic()) > 0:
        if piece := feed.next(left_s):
            printer.print(piece)


def _leave(job: Mapping[str, Any]) -> NoReturn:
    raise CommandRefused(
        f"The job goes on without you: `tidemill jobs show {short_id(job['id'])}` tells how far it is, and "
        f"`tidemill jobs cancel {short_id(job['id'])}` calls it off."
    )
