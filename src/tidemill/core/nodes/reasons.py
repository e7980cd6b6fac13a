"""Why a node gets no work: a code for programs, a sentence for its owner, and what becomes of the work in hand.

Reasons are ordered: the one that comes first is the one to see to first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tidemill.core.clock import Instant


class InHand(Enum):
    """What becomes of work that a node has already begun."""

    FINISH = "finish"
    STOP = "stop"


class Why(Enum):
    """Why there is no new work, in the order in which an owner should look at it."""

    REMOVED = "removed"
    SUSPENDED = "suspended"
    OWNER_BLOCKED = "owner_blocked"
    OFFLINE = "offline"
    VERSION_NOT_ACCEPTED = "version_not_accepted"
    CHALLENGE_MISSING = "challenge_missing"
    NOT_ACTIVE = "not_active"
    FAILING_DEVICE = "failing_device"
    TOO_HOT = "too_hot"
    TOO_MUCH_POWER = "too_much_power"
    PAUSED = "paused"
    DRAINING = "draining"
    OUTSIDE_WINDOW = "outside_window"
    NOT_IDLE = "not_idle"


IN_HAND: Mapping[Why, InHand] = {
    Why.REMOVED: InHand.STOP,
    Why.SUSPENDED: InHand.STOP,
    Why.OWNER_BLOCKED: InHand.FINISH,
    Why.OFFLINE: InHand.FINISH,
    Why.VERSION_NOT_ACCEPTED: InHand.FINISH,
    Why.CHALLENGE_MISSING: InHand.FINISH,
    Why.NOT_ACTIVE: InHand.FINISH,
    Why.FAILING_DEVICE: InHand.STOP,
    Why.TOO_HOT: InHand.STOP,
    Why.TOO_MUCH_POWER: InHand.STOP,
    Why.PAUSED: InHand.STOP,
    Why.DRAINING: InHand.FINISH,
    Why.OUTSIDE_WINDOW: InHand.FINISH,
    Why.NOT_IDLE: InHand.STOP,
}
"""Work stops where going on would harm the machine, its owner or a customer; else it is finished first."""


@dataclass(frozen=True)
class Reason:
    """One reason. `device` names the only device it speaks of; `until` says when it ends, where that is known."""

    why: Why
    sentence: str
    device: str | None = None
    until: Instant | None = None

    @property
    def in_hand(self) -> InHand:
        return IN_HAND[self.why]
