"""What an agent's spool says about itself: reports that it had to drop, and how the machine was while it was offline.

Each is a kind of facts. No number is left out: each dropped report is reported under its own number, with the range it
belongs to. So the count is exact, however reports are divided into frames and sent again.
"""

from typing import Literal

import msgspec
from msgspec import Struct

from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import UNREADABLE, BeatMessage, Count, Facts, LogLines, ProgressMessage, Report

DROPPED = "dropped"
PAST_BEAT = "past_beat"


class SpoolGap(Struct, frozen=True):
    """The reports from one number to another are gone, this one among them: there was no room, or the disk failed."""

    first: Count
    last: Count
    why: Literal["full", "damaged"]


class PastBeatReport(Struct, frozen=True):
    """The state of the machine at an instant when there was no link."""

    at: Count
    beat: BeatMessage


def as_facts(report: SpoolGap | PastBeatReport) -> Facts:
    """The facts that carry this to the pool."""
    return Facts(DROPPED if isinstance(report, SpoolGap) else PAST_BEAT, msgspec.json.encode(report))


def spool_report_in(facts: Facts) -> SpoolGap | PastBeatReport | None:
    """The inverse; None for facts about something else."""
    try:
        if facts.kind == DROPPED:
            return msgspec.json.decode(facts.body, type=SpoolGap)
        return msgspec.json.decode(facts.body, type=PastBeatReport) if facts.kind == PAST_BEAT else None
    except UNREADABLE as error:
        raise ProtocolError("malformed", f"Facts of the kind {facts.kind} could not be understood: {error}.") from None


def is_droppable(report: Report) -> bool:
    """Whether a full spool may drop it: no payment or promise depends on it."""
    return isinstance(report, LogLines | ProgressMessage) or (isinstance(report, Facts) and report.kind == PAST_BEAT)
