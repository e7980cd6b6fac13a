"""The life of a challenge of one node, as a table. What is over stays over.

A node commits to what it computed, then places are drawn, then it opens them. Places are drawn for all nodes of an
owner in one moment, when each of them has committed or has run out of time.
"""

from collections.abc import Mapping
from enum import StrEnum


class State(StrEnum):
    ASKED = "asked"
    COMMITTED = "committed"
    DRAWN = "drawn"
    OPENED = "opened"
    PASSED = "passed"
    FAILED = "failed"
    EXPIRED = "expired"  # too late, or we were away; the node is asked again
    CANNOT = "cannot"  # the node said why it cannot be challenged


class Happening(StrEnum):
    COMMITTED_ALL = "committed_all"
    PLACES_DRAWN = "places_drawn"
    OPENED_ALL = "opened_all"
    PROVED = "proved"
    DISPROVED = "disproved"
    TIME_UP = "time_up"
    UNABLE = "unable"


STATES: Mapping[tuple[State, Happening], State] = {
    (State.ASKED, Happening.COMMITTED_ALL): State.COMMITTED,
    (State.ASKED, Happening.UNABLE): State.CANNOT,
    (State.ASKED, Happening.TIME_UP): State.EXPIRED,
    (State.ASKED, Happening.DISPROVED): State.FAILED,  # late once too often
    (State.COMMITTED, Happening.PLACES_DRAWN): State.DRAWN,
    (State.COMMITTED, Happening.TIME_UP): State.EXPIRED,  # only by our own outage
    (State.COMMITTED, Happening.UNABLE): State.CANNOT,
    (State.DRAWN, Happening.OPENED_ALL): State.OPENED,
    (State.DRAWN, Happening.UNABLE): State.CANNOT,
    (State.DRAWN, Happening.TIME_UP): State.EXPIRED,
    (State.DRAWN, Happening.DISPROVED): State.FAILED,
    (State.OPENED, Happening.PROVED): State.PASSED,
    (State.OPENED, Happening.DISPROVED): State.FAILED,
    (State.OPENED, Happening.TIME_UP): State.EXPIRED,  # by our own outage, or where the link was lost meanwhile
}


def after(state: State, happening: Happening) -> State | None:
    """The state after a happening; None if it changes nothing, because it comes too early or too late."""
    return STATES.get((state, happening))
