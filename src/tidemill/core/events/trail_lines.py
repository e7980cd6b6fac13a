"""Acts and tips as lines of text, for files that are checked without a database.

A line reads back to exactly the value it was made from, and no other line does: the verified value is the written one.
"""

import json
import re
from datetime import datetime
from uuid import UUID

from tidemill.core.clock import Instant, as_datetime, as_instant
from tidemill.core.events.log import Cursor
from tidemill.core.events.trail import Act, TrailTip

_HEAD = re.compile(r"(?P<number>[1-9][0-9]{0,18})[: ](?P<sha256>[0-9a-f]{64})(?: (?P<at>\S+))?", re.ASCII)


def line_of(act: Act) -> str:
    """One JSON object of nothing but visible ASCII, without the end of the line."""
    fields = {
        "number": act.number,
        "cursor": str(act.cursor),
        "at": _text(act.at),
        "event_id": str(act.event_id),
        "kind": act.kind,
        "subject": act.subject,
        "body": act.body,
        "previous": act.previous.hex(),
        "sha256": act.sha256.hex(),
    }
    return json.dumps(fields, separators=(",", ":")).replace("\x7f", "\\u007f")


def act_of(line: str) -> Act | None:
    """None for anything that `line_of` does not write."""
    try:
        act = _act(json.loads(line))
        return act if act is not None and line_of(act) == line else None
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def tip_line(tip: TrailTip) -> str:
    """Number, hash and time, as in the file of published tips."""
    assert tip.at is not None, "only a trail with acts in it has a tip to publish"
    return f"{tip.number} {tip.sha256.hex()} {_text(tip.at)}"


def tip_of(text: str) -> TrailTip | None:
    """A tip as `tip_line` or an operator (NUMBER:SHA256) writes it; None for any other text."""
    match = _HEAD.fullmatch(text.strip())
    if match is None:
        return None
    try:
        at = None if match["at"] is None else _instant(match["at"])
    except (ValueError, TypeError, OverflowError):
        return None
    return TrailTip(int(match["number"]), bytes.fromhex(match["sha256"]), at)


def _act(fields: dict[str, str]) -> Act | None:
    cursor = Cursor.parse(fields["cursor"])
    texts = all(isinstance(fields[name], str) for name in ("kind", "subject", "body"))
    if cursor is None or not texts:
        return None
    return Act(
        int(fields["number"]),
        *cursor,
        _instant(fields["at"]),
        UUID(fields["event_id"]),
        fields["kind"],
        fields["subject"],
        fields["body"],
        bytes.fromhex(fields["previous"]),
        bytes.fromhex(fields["sha256"]),
    )


def _text(at: Instant) -> str:
    return as_datetime(at).isoformat(timespec="microseconds")


def _instant(text: str) -> Instant:
    """Raises a TypeError for a time that does not say its zone."""
    return as_instant(datetime.fromisoformat(text))
