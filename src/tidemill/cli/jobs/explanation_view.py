"""How explanations are printed: in tables that fit a terminal, and sentences."""

from collections.abc import Iterator, Sequence
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.terminal.output import print_line, print_table, print_text
from tidemill.host.standard_error import say

_NOTHING_YET = "Nothing of this job was placed, and nothing of it waits."
_NEVER = (
    "Nothing is kept of this node: of many decisions only some are, and it was in none of them lately. "
    "`tidemill nodes show` tells whether it may get work."
)


def print_why_job(explanation: dict[str, Any]) -> None:
    """Print which tasks wait and why, then why each attempt went to its node."""
    for task in explanation["waiting"]:
        print_text(f"Task {task['task']} waits since {moment(task['since'])} UTC. {task['sentence']}")
    if explanation["sentence"] and not explanation["waiting"]:
        print_text(explanation["sentence"])
    if not explanation["items"] and not explanation["sentence"]:
        say(_NOTHING_YET)
    for attempt in explanation["items"]:
        print_line("")
        placed = f"Task {attempt['task']} went to {attempt['node_name']} at {moment(attempt['offered_at'])} UTC"
        print_text(f"{placed}. The node {attempt['now'].rstrip('.')}. {attempt['sentence']}")
        if attempt["candidates"]:
            print_table(("node", "score", "why"), [_candidate(candidate) for candidate in attempt["candidates"]])


def print_considered(decisions: Sequence[dict[str, Any]]) -> None:
    if not decisions:
        say(_NEVER)
        return
    rows = [
        (
            moment(decision["at"]),
            decision["kind"],
            "chosen" if decision["chosen"] else "lost",
            _number(decision["score"]),
            _number(decision["winner_score"]),
            decision["winner"],
            decision["sentence"],
        )
        for decision in decisions
    ]
    print_table(("when (UTC)", "kind", "outcome", "score", "winner's", "winner", "why"), rows)


def _candidate(candidate: dict[str, Any]) -> tuple[str, str, str]:
    return candidate["name"], _number(candidate["score"]), " ".join(_reasons(candidate))


def _reasons(candidate: dict[str, Any]) -> Iterator[str]:
    if candidate["chosen"]:
        yield "Chosen."
    yield from (objection["sentence"] for objection in candidate["objections"])
    if candidate["terms"]:
        yield ", ".join(f"{name} {_number(value)}" for name, value in candidate["terms"].items())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
