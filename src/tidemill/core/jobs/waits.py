"""What a job waits for, and what its attempts are doing, in sentences for its customer. Pure.

The first thing that has to happen is told first: a stopped pool before a node, and a node before a check.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tidemill.core.jobs.attempt import AttemptState

NOT_LOOKED_AT = "Nobody has looked for a node for it yet: that takes a second."
CHECKED = "The result is being checked."
RERUN = "A house node runs the task again to check the result."
WAITS_FOR_HOUSE = "The result waits for a house node that has room, which runs the task again to check it."
ASKED = "The node's times cannot be true, and no house node could run the task: an operator decides."

AUDITS: Mapping[str, str] = {"waits": WAITS_FOR_HOUSE, "runs": RERUN, "asked": ASKED}

_STATES: Mapping[str, str] = {
    AttemptState.OFFERED: "is offered it",
    AttemptState.ACCEPTED: "has accepted it",
    AttemptState.RUNNING: "is at work on it",
    AttemptState.SUBMITTED: "has delivered; the result is being checked",
    AttemptState.JUDGED: "is done with it",
    AttemptState.DECLINED: "declined it",
    AttemptState.LOST: "was lost",
    AttemptState.EXPIRED: "did not deliver in time",
    AttemptState.CANCELLED: "was told to stop",
}


class ChecksUnderWay(NamedTuple):
    """How many delivered results of a job wait for a verdict, and by what: an operator, or a house node that has its
    task, or that has still to be found."""

    delivered: int
    asked: int
    rerun: int
    wait_for_house: int


def no_house_sentence(wait_s: float) -> str:
    """What a result waits for where no house node could take it."""
    hours = f"{wait_s / 3600:,.0f} h" if wait_s >= 7_200 else f"{wait_s / 60:,.0f} min"
    return (
        "The result waits for a house node, which has to run the task again to check it, and none is online that can: "
        f"after {hours} without one the money goes back."
    )


def waits_for(
    *, waiting: int, stopped: str | None, searched: str | None, checks: ChecksUnderWay, no_house: str | None
) -> str | None:
    """What a job waits for; None if its tasks are at work, or over. `searched` says why no node was found yet."""
    if stopped is not None and (waiting or checks.wait_for_house):
        return stopped
    if waiting:
        return searched or NOT_LOOKED_AT
    if checks.wait_for_house:
        return no_house or WAITS_FOR_HOUSE
    if checks.asked:
        return ASKED
    if checks.rerun:
        return RERUN
    return CHECKED if checks.delivered else None


def attempt_words(state: str, verdict: str | None, audit: str | None) -> str:
    """What became of an attempt, as the rest of a sentence that begins with its node."""
    if audit is not None:
        return f"has delivered. {AUDITS[audit]}"
    ends = {"pass": "delivered a result that passed", "fail": "delivered a wrong result"}
    return ends.get(verdict or "") or _STATES.get(state, state)
