"""How explanations are printed: in tables that fit a terminal, and sentences."""

from collections.abc import Iterator, Sequence
from typing import Any

from tidemill.cli.client.http_calls import moment
from tidemill.cli.terminal.output import print_line, print_table
from tidemill.host.standard_error import say

_NOTHING_YET = "Nothing of this job was placed, and nothing of it waits."
_NEVER = (
    "Nothing is kept of this node: of many decisions only some are, and it was in none of them lately. "
    "`tidemill nodes show` tells whether it may get work."
)


def print_why_job(found: dict[str, Any]) -> None:
    """What waits and why, then each attempt and why it went where it went."""
    for one in found["waiting"]:
        print_line(f"Task {one['task']} waits since {moment(one['since'])} UTC. {one['sentence']}")
    if found["sentence"] and not found["waiting"]:
        print_line(found["sentence"])
    if not found["items"] and not found["sentence"]:
        say(_NOTHING_YET)
    for one in found["items"]:
        print_line("")
        placed = f"Task {one['task']} went to {one['node_name']} at {moment(one['offered_at'])} UTC"
        print_line(f"{placed} and is {one['state']}. {one['sentence']}")
        if one["candidates"]:
            print_table(("node", "score", "why"), [_candidate(each) for each in one["candidates"]])


def print_considered(found: Sequence[dict[str, Any]]) -> None:
    if not found:
        say(_NEVER)
        return
    rows = [
        (
            moment(one["at"]),
            one["kind"],
            "chosen" if one["chosen"] else "lost",
            _number(one["score"]),
            _number(one["winner_score"]),
            one["winner"],
            one["sentence"],
        )
        for one in found
    ]
    print_table(("when (UTC)", "kind", "outcome", "score", "winner's", "winner", "why"), rows)


def _candidate(one: dict[str, Any]) -> tuple[str, str, str]:
    return one["name"], _number(one["score"]), " ".join(_reasons(one))


def _reasons(one: dict[str, Any]) -> Iterator[str]:
    if one["chosen"]:
        yield "Chosen."
    yield from (each["sentence"] for each in one["objections"])
    if one["terms"]:
        yield ", ".join(f"{name} {_number(value)}" for name, value in one["terms"].items())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
