"""How jobs, quotes and results are printed."""

from collections.abc import Sequence
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.terminal.output import print_fields, print_line, print_table
from tidemill.host.standard_error import say


def say_plan(job: dict[str, Any]) -> None:
    """Say what a job will cost and why, before the question."""
    quote = job["quote"]
    say(f"{quote['kind']}: {counted(quote['tasks'], 'task')}, a {quote['size']} job, {_hours(quote)} of work.")
    for line in quote["lines"]:
        say(f"  {line['what']:<13}{_span(line)}  {line['why']}")
    say(f"  {'total':<13}{_span(quote)}  The upper end is held, and what is not used goes back.")
    for sentence in quote["reasoning"]:
        say(f"- {sentence}")


def print_quote(quote: dict[str, Any]) -> None:
    print_fields(
        {
            "kind": f"{quote['kind']} ({quote['size']})",
            "tasks": str(quote["tasks"]),
            "devices": str(quote["devices"]) if quote["devices"] else "none, processors will do",
            "memory": f"{quote['memory_mib'] or quote['gpu_memory_mib']} MiB",
            "hours": _hours(quote),
            "price": _span(quote),
            "good until (UTC)": moment(quote["expires_at"]),
            "can be confirmed": "yes" if quote["can_confirm"] else f"no: {quote['why_not']}",
        }
    )
    print_line("")
    rows = [(line["what"], line["low"], line["high"], line["why"]) for line in quote["lines"]]
    print_table(("line", "from", "to", "why"), rows)
    print_line("")
    for sentence in quote["reasoning"]:
        print_line(f"- {sentence}")


def print_job(job: dict[str, Any], waits_for: str | None = None) -> None:
    quote = job["quote"]
    fields = {
        "id": job["id"],
        "name": job["name"],
        "kind": job["kind"],
        "state": state_of(job),
        "priority": job["priority"],
        "seen by": job["seen_by"],
        "tasks": progress_of(job),
        "waits for": waits_for or "",
        "price": "" if quote is None else _span(quote),
        "budget": job["max_budget"] or "none",
        "held": f"{job['held']} {job['currency']}s",
        "spent": f"{job['spent']} {job['currency']}s",
        "made (UTC)": moment(job["made_at"]),
        "confirmed (UTC)": moment(job["confirmed_at"]),
        "deadline (UTC)": moment(job["deadline_at"]),
        "ended (UTC)": moment(job["ended_at"]),
    }
    print_fields({name: value for name, value in fields.items() if value})


def print_jobs(jobs: Sequence[dict[str, Any]]) -> None:
    rows = [
        (job["id"], job["name"], job["kind"], state_of(job), progress_of(job), job["spent"], moment(job["made_at"]))
        for job in jobs
    ]
    print_table(("id", "name", "kind", "state", "tasks", "spent", "made (UTC)"), rows)


def print_results(results: Sequence[dict[str, Any]]) -> None:
    rows = [
        (
            str(result["task"]),
            result["state"],
            result["verdict"] or "",
            _where(result),
            result["sha256"] or "",
            result["reason"],
        )
        for result in results
    ]
    print_table(("task", "state", "verdict", "result", "sha256", "reason"), rows)


def state_of(job: dict[str, Any]) -> str:
    closing = job["closing"]
    return job["state"] if closing is None or job["ended_at"] else f"{job['state']}, {closing.replace('_', ' ')}"


def progress_of(job: dict[str, Any]) -> str:
    """How far a job is, in a few words."""
    progress = job["progress"]
    if not progress["tasks"]:
        return "" if job["quote"] is None else f"{job['quote']['tasks']} quoted"
    named = [(progress[name], name) for name in ("waiting", "placed", "failed", "cancelled") if progress[name]]
    rest = "".join(f", {count} {name}" for count, name in named)
    return f"{progress['completed']} of {progress['tasks']} done{rest}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _where(result: dict[str, Any]) -> str:
    if result["artefact_id"]:
        return str(result["artefact_id"])
    return "inline" if result["inline"] else ""


def _span(priced: dict[str, Any]) -> str:
    return f"{priced['low']} to {priced['high']}" if priced["low"] != priced["high"] else str(priced["low"])


def _hours(quote: dict[str, Any]) -> str:
    return f"{_duration(quote['hours_low'])} to {_duration(quote['hours_high'])}"


def _duration(hours: float) -> str:
    for unit, length_h in (("days", 24.0), ("hours", 1.0), ("minutes", 1 / 60)):
        if hours >= 2 * length_h:
            return f"{hours / length_h:,.0f} {unit}"
    return f"{hours * 3600:.3g} seconds"
