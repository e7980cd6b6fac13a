"""Why a node gets no work: a code for programs, a sentence for its owner, and what happens to begun work.

Reasons are ordered: the first is the one to fix first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tidemill.core.clock import Instant


class BegunWork(Enum):
    """What happens to work that a node has already begun."""

    FINISH = "finish"
    STOP = "stop"


class NoWorkCause(Enum):
    """Why there is no new work, in the order in which an owner should look at the causes."""

    REMOVED = "removed"
    PLACEMENT_STOPPED = "placement_stopped"
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


IN_HAND: Mapping[NoWorkCause, BegunWork] = {
    NoWorkCause.REMOVED: BegunWork.STOP,
    NoWorkCause.PLACEMENT_STOPPED: BegunWork.FINISH,
    NoWorkCause.SUSPENDED: BegunWork.STOP,
    NoWorkCause.OWNER_BLOCKED: BegunWork.FINISH,
    NoWorkCause.OFFLINE: BegunWork.FINISH,
    NoWorkCause.VERSION_NOT_ACCEPTED: BegunWork.FINISH,
    NoWorkCause.CHALLENGE_MISSING: BegunWork.FINISH,
    NoWorkCause.NOT_ACTIVE: BegunWork.FINISH,
    NoWorkCause.FAILING_DEVICE: BegunWork.STOP,
    NoWorkCause.TOO_HOT: BegunWork.STOP,
    NoWorkCause.TOO_MUCH_POWER: BegunWork.STOP,
    NoWorkCause.PAUSED: BegunWork.STOP,
    NoWorkCause.DRAINING: BegunWork.FINISH,
    NoWorkCause.OUTSIDE_WINDOW: BegunWork.FINISH,
    NoWorkCause.NOT_IDLE: BegunWork.STOP,
}
"""Work stops where continuing would harm the machine, its owner or a customer; otherwise it is finished first."""


@dataclass(frozen=True)
class NoWorkReason:
    """One reason. `device` is the only device it concerns; `until` says when it ends, where that is known."""

    why: NoWorkCause
    sentence: str
    device: str | None = None
    until: Instant | None = None

    @property
    def in_hand(self) -> BegunWork:
        return IN_HAND[self.why]
