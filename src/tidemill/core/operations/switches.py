"""The kill switch: an operator stops a part of the pool, with a reason, and starts it again.

A loop names the switch it obeys. `all` stops everything that any switch stops; housekeeping obeys none.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from tidemill.core.clock import Instant
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.refusals import Refusal


class Switch(Enum):
    PLACEMENT = "placement"
    PAYOUTS = "payouts"
    ALL = "all"


@dataclass(frozen=True)
class SwitchState:
    """The state of a switch, who set it, and why. A switch nobody has touched has no instant."""

    switch: Switch
    stopped: bool
    reason: str
    changed_by: str
    changed_at: Instant | None


class SwitchRefusal(Refusal):
    ALREADY_SO = "The switch already stands that way; nothing was changed."


def throw(
    current: SwitchState, *, stop: bool, reason: str, by: str, now: Instant
) -> SwitchState | SwitchRefusal | ReasonRefusal:
    """The state after an operator threw the switch."""
    stored_reason = checked_reason(reason)
    if isinstance(stored_reason, ReasonRefusal):
        return stored_reason
    if current.stopped == stop:
        return SwitchRefusal.ALREADY_SO
    return SwitchState(current.switch, stop, stored_reason, by, now)


def stopping_switch(obeyed: Switch | None, states: Iterable[SwitchState]) -> SwitchState | None:
    """The stopped switch that keeps a loop from running, if there is one."""
    if obeyed is None:
        return None
    return next((state for state in states if state.stopped and state.switch in (obeyed, Switch.ALL)), None)
