"""How jobs, quotes and results are printed."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.terminal.output import counted, print_fields, print_line, print_table, print_text
from tidemill.core.ids import short_id
from tidemill.host.standard_error import say

_MONTH, _MINUTE = len("2026-"), len("2026-01-01 00:00")
_NAME_MAX = 16
"""So much of a job's name stands in a table on a terminal, so that the rest of its row has room."""

_REASONS_MAX = 5


def say_quote(job: dict[str, Any], *, explain: bool = False) -> None:
    """Say what a job will cost, in one line, and what to know before it is confirmed; or all of it, with reasons."""
    quote = job["quote"]
    say(f"{quote['summary'][:1].upper()}{quote['summary'][1:]}.")
    if explain:
        for line in quote["lines"]:
            say(f"  {line['what']:<13}{span(line)}  {line['why']}")
        for sentence in quote["reasoning"]:
            say(f"- {sentence}")
    for note in quote["notes"]:
        if not explain or note not in quote["reasoning"]:
            say(note)


def print_quote(quote: dict[str, Any], *, explain: bool) -> None:
    print_text(f"{quote['summary'][:1].upper()}{quote['summary'][1:]}.")
    for note in quote["notes"]:
        print_text(note)
    if not quote["can_confirm"]:
        print_text(quote["why_not"])
    if not explain:
        return
    print_line("")
    rows = [(line["what"], span(line), line["why"]) for line in quote["lines"]]
    print_table(("line", f"{quote['currency']}s", "why"), rows)
    print_line("")
    for sentence in quote["reasoning"]:
        print_text(f"- {sentence}")
    print_line(f"It is good until {moment(quote['expires_at'])} UTC.")


def print_job(job: dict[str, Any]) -> None:
    quote = job["quote"]
    fields = {
        "id": job["id"],
        "name": job["name"],
        "kind": job["kind"],
        "state": state_of(job),
        "priority": job["priority"],
        "seen by": job["seen_by"],
        "tasks": progress_of(job),
        "waits for": job["waits_for"] or "",
        "price": "" if quote is None else span(quote),
        "budget": job["max_budget"] or "none",
        "held": f"{job['held']} {job['currency']}s",
        "spent": f"{job['spent']} {job['currency']}s",
        "made (UTC)": moment(job["made_at"]),
        "confirmed (UTC)": moment(job["confirmed_at"]),
        "deadline (UTC)": moment(job["deadline_at"]),
        "ended (UTC)": moment(job["ended_at"]),
    }
    print_fields({name: value for name, value in fields.items() if value})


def say_why_over(job: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> None:
    """Say why a job was not completed, and where to read more."""
    reasons = Counter(result["reason"] for result in results if result["reason"])
    say(" ".join(reasons_told(reasons)))
    job_id = short_id(job["id"])
    say(
        f"`tidemill jobs logs {job_id}` shows what it printed, `tidemill jobs why {job_id}` where it ran, and "
        f"`tidemill jobs result {job_id}` what came of each task."
    )


def reasons_told(reasons: Counter[str]) -> list[str]:
    """The commonest reasons; counted, if there are several."""
    if len(reasons) == 1:
        return list(reasons)
    return [f"{counted(count, 'task')}: {reason}" for reason, count in reasons.most_common(_REASONS_MAX)]


def cancelled_words(job: Mapping[str, Any]) -> str:
    """What a job costs that was just called off, as far as is known."""
    job_id, spent = short_id(job["id"]), f"{job['spent']} {job['currency']}s"
    if job["ended_at"] is None:
        return (
            f"The job is called off. It has cost {spent} so far, and the time that its programs used will be charged: "
            f"`tidemill jobs show {job_id}` tells what it cost in the end."
        )
    cost = f"It cost {spent}, for the time that its programs used" if Decimal(job["spent"]) else "Nothing was charged"
    return f"The job is called off. {cost}: `tidemill jobs show {job_id}` shows it."


def print_jobs(jobs: Sequence[dict[str, Any]]) -> None:
    rows = [
        (
            short_id(job["id"]),
            _name(job["name"]),
            job["kind"],
            job["state"] if job["closing"] is None or job["ended_at"] else job["closing"].replace("_", " "),
            _tasks(job),
            job["spent"],
            moment(job["made_at"])[_MONTH:_MINUTE],
        )
        for job in jobs
    ]
    print_table(("job", "name", "kind", "state", "tasks", "spent", "made (UTC)"), rows)


def print_results(results: Sequence[dict[str, Any]], *, fetched_from: str | None) -> None:
    """Print what came of each task; and how to fetch what is kept of it, if it was not fetched."""
    rows = [
        (
            str(result["task"]),
            result["state"],
            result["verdict"] or "",
            "kept" if _is_kept(result) else "",
            result["reason"],
        )
        for result in results
    ]
    print_table(("task", "state", "verdict", "result", "reason"), rows)
    if fetched_from and any(_is_kept(result) for result in results):
        say(f"`tidemill jobs result {fetched_from} --out FOLDER` fetches what is kept.")


def state_of(job: Mapping[str, Any]) -> str:
    closing = job["closing"]
    return job["state"] if closing is None or job["ended_at"] else f"{job['state']}, {closing.replace('_', ' ')}"


def progress_of(job: Mapping[str, Any]) -> str:
    """How far a job is, in a few words."""
    progress = job["progress"]
    if not progress["tasks"]:
        return "" if job["quote"] is None else f"{job['quote']['tasks']} quoted"
    named = [(progress[name], name) for name in ("waiting", "placed", "failed", "cancelled") if progress[name]]
    rest = "".join(f", {count} {name}" for count, name in named)
    return f"{progress['completed']} of {progress['tasks']} done{rest}"


def span(priced: dict[str, Any]) -> str:
    """An amount, or a range of amounts."""
    return f"{priced['low']} to {priced['high']}" if priced["low"] != priced["high"] else str(priced["low"])


def _name(name: str) -> str:
    return f"{name[: _NAME_MAX - 1]}…" if len(name) > _NAME_MAX and sys.stdout.isatty() else name


def _tasks(job: dict[str, Any]) -> str:
    """How many tasks are done, of how many."""
    tasks = job["progress"]["tasks"] or (job["quote"] or {}).get("tasks", 1)
    return f"{job['progress']['completed']}/{tasks}"


def _is_kept(result: dict[str, Any]) -> bool:
    return bool(result["artefact_id"] or result["inline"])
