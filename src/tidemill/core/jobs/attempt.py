"""The life of an attempt: one try of a task on one node, held by a lease.

An attempt that has ended stays ended, with one exception: an attempt given up because its node fell silent or was
late may still deliver. Its task decides whether the result is still wanted.
"""

from collections.abc import Mapping
from enum import StrEnum


class AttemptState(StrEnum):
    OFFERED = "offered"
    ACCEPTED = "accepted"
    RUNNING = "running"
    SUBMITTED = "submitted"
    JUDGED = "judged"
    DECLINED = "declined"
    LOST = "lost"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Happening(StrEnum):
    """What happens to an attempt: reports of its node, events of the node, and our decisions."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    STARTED = "started"
    DELIVERED = "delivered"
    CRASHED = "crashed"  # the node says that the work failed
    NODE_LOST = "node_lost"
    TIME_UP = "time_up"
    CALLED_OFF = "called_off"
    PASSED = "passed"
    FAILED = "failed"  # another result is right
    UNSURE = "unsure"  # nobody can tell whether it is right
    UNRESOLVED = "unresolved"  # nobody has looked at it for too long
    FAULTED = "faulted"  # no node can do it: the task's own fault


S, H = AttemptState, Happening

_AT_WORK: Mapping[Happening, AttemptState] = {
    H.DECLINED: S.DECLINED,
    H.DELIVERED: S.SUBMITTED,
    H.CRASHED: S.JUDGED,
    H.FAULTED: S.JUDGED,
    H.NODE_LOST: S.LOST,
    H.TIME_UP: S.EXPIRED,
    H.CALLED_OFF: S.CANCELLED,
}

ATTEMPTS: Mapping[tuple[AttemptState, Happening], AttemptState] = {
    **{
        (state, happening): following
        for state in (S.OFFERED, S.ACCEPTED, S.RUNNING)
        for happening, following in _AT_WORK.items()
    },
    (S.OFFERED, H.ACCEPTED): S.ACCEPTED,
    (S.OFFERED, H.STARTED): S.RUNNING,
    (S.ACCEPTED, H.STARTED): S.RUNNING,
    (S.LOST, H.DELIVERED): S.SUBMITTED,
    (S.EXPIRED, H.DELIVERED): S.SUBMITTED,
    (S.SUBMITTED, H.PASSED): S.JUDGED,
    (S.SUBMITTED, H.FAILED): S.JUDGED,
    (S.SUBMITTED, H.UNSURE): S.JUDGED,
    (S.SUBMITTED, H.UNRESOLVED): S.JUDGED,
    (S.SUBMITTED, H.FAULTED): S.JUDGED,
}

AT_WORK = frozenset({S.OFFERED, S.ACCEPTED, S.RUNNING})
"""The node holds the lease, and resources of the node are reserved for it."""

OVER = frozenset({S.JUDGED, S.DECLINED, S.LOST, S.EXPIRED, S.CANCELLED})


def after(state: AttemptState, happening: Happening) -> AttemptState | None:
    """The state after a happening; None if nothing changes, because it comes twice, too early or too late."""
    return ATTEMPTS.get((state, happening))
