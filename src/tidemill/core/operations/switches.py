"""The kill switch: an operator stops a part of the pool, with a reason, and starts it again.

A loop names the switch it obeys, and so does what takes orders. `all` stops everything that any switch stops: no money
is held and nothing begins. What runs is finished, checked and paid, since its owner has earned it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from tidemill.core.clock import Instant, as_datetime
from tidemill.core.reasons import ReasonRefusal, checked_reason
from tidemill.core.refusals import Refusal


class Switch(Enum):
    ORDERS = "orders"
    PLACEMENT = "placement"
    PAYOUTS = "payouts"
    ALL = "all"


STOPS: Mapping[Switch, str] = {
    Switch.ORDERS: "New jobs, quotes, confirmations and extensions are refused with your reason; no money is held.",
    Switch.PLACEMENT: "No task is given to a node; confirmed jobs wait, and their money stays held.",
    Switch.PAYOUTS: "This pool does not pay out yet, so nothing else changes; payouts will obey it when it does.",
}
"""What stands while a switch is stopped."""

GOES_ON = (
    "What goes on: tasks that nodes have are finished, checked and paid; machines join, stay linked and are "
    "challenged; files are kept and charged for; everything can be read, and jobs can be cancelled."
)
"""What no switch stops."""


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
    ORDERS_STOPPED = "The pool takes no orders at the moment, because an operator stopped them: try again later."


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


def effect(thrown: SwitchState, states: Iterable[SwitchState]) -> str:
    """What follows from throwing a switch, for whoever threw it. `states` are all switches as they stand now."""
    parts = [part for part in STOPS if thrown.switch in (part, Switch.ALL)]
    if thrown.stopped:
        return " ".join([*(STOPS[part] for part in parts), GOES_ON])
    still = [state for part in parts if (state := stopping_switch(part, states))]
    names = dict.fromkeys(f"`{state.switch.value}`" for state in still)
    return f"But {' and '.join(names)} stand{'' if len(names) > 1 else 's'} stopped." if names else ""


def refused_order(states: Iterable[SwitchState]) -> str | None:
    """Why no order is taken, quoted or confirmed now; None if orders are taken."""
    stopped = stopping_switch(Switch.ORDERS, states)
    if stopped is None:
        return None
    return (
        f'The pool takes no orders at the moment: an operator stopped them ("{stopped.reason}"). Nothing was held, and '
        "what runs goes on. Try again later."
    )


def stopped_sentence(state: SwitchState) -> str:
    """Since when a part of the pool is stopped, and why, for everybody whose work waits because of it."""
    what = "the whole pool" if state.switch is Switch.ALL else state.switch.value
    since = "" if state.changed_at is None else f" since {as_datetime(state.changed_at):%Y-%m-%d %H:%M} UTC"
    return f"An operator has stopped {what}{since}, and nothing is placed until it is started again: {state.reason}"
