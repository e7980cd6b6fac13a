"""The life of one node's challenge, as a table. A challenge that has ended stays ended.

A node commits to what it computed, then positions are drawn, then it opens them. They are drawn for all nodes of an
owner at the same moment, when each of them has committed or has run out of time.
"""

from collections.abc import Mapping
from enum import StrEnum


class ChallengeState(StrEnum):
    ASKED = "asked"
    COMMITTED = "committed"
    DRAWN = "drawn"
    OPENED = "opened"
    PASSED = "passed"
    FAILED = "failed"
    EXPIRED = "expired"  # too late, or we were away; the node is asked again
    CANNOT = "cannot"  # the node said why it cannot be challenged


class ChallengeHappening(StrEnum):
    COMMITTED_ALL = "committed_all"
    PLACES_DRAWN = "places_drawn"
    OPENED_ALL = "opened_all"
    PROVED = "proved"
    DISPROVED = "disproved"
    TIME_UP = "time_up"
    UNABLE = "unable"


STATES: Mapping[tuple[ChallengeState, ChallengeHappening], ChallengeState] = {
    (ChallengeState.ASKED, ChallengeHappening.COMMITTED_ALL): ChallengeState.COMMITTED,
    (ChallengeState.ASKED, ChallengeHappening.UNABLE): ChallengeState.CANNOT,
    (ChallengeState.ASKED, ChallengeHappening.TIME_UP): ChallengeState.EXPIRED,
    (ChallengeState.ASKED, ChallengeHappening.DISPROVED): ChallengeState.FAILED,  # late once too often
    (ChallengeState.COMMITTED, ChallengeHappening.PLACES_DRAWN): ChallengeState.DRAWN,
    (ChallengeState.COMMITTED, ChallengeHappening.TIME_UP): ChallengeState.EXPIRED,  # only by our own outage
    (ChallengeState.COMMITTED, ChallengeHappening.UNABLE): ChallengeState.CANNOT,
    (ChallengeState.DRAWN, ChallengeHappening.OPENED_ALL): ChallengeState.OPENED,
    (ChallengeState.DRAWN, ChallengeHappening.UNABLE): ChallengeState.CANNOT,
    (ChallengeState.DRAWN, ChallengeHappening.TIME_UP): ChallengeState.EXPIRED,
    (ChallengeState.DRAWN, ChallengeHappening.DISPROVED): ChallengeState.FAILED,
    (ChallengeState.OPENED, ChallengeHappening.PROVED): ChallengeState.PASSED,
    (ChallengeState.OPENED, ChallengeHappening.DISPROVED): ChallengeState.FAILED,
    (
        ChallengeState.OPENED,
        ChallengeHappening.TIME_UP,
    ): ChallengeState.EXPIRED,  # by our own outage, or where the link was lost meanwhile
}


def after(state: ChallengeState, happening: ChallengeHappening) -> ChallengeState | None:
    """The state after a happening; None if nothing changes, because it comes too early or too late."""
    return STATES.get((state, happening))
