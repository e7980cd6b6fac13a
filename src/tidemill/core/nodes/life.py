"""The life of a node: registered → active → inactive → deregistered, and its conditions.

A node is active while its challenge is passed and its stake is enough. Deregistration is final: the identity becomes
worthless, and a machine that comes back is a new node. Conditions may combine; the strictest decides on work.
"""

from collections.abc import Mapping
from enum import StrEnum

from tidemill.core.refusals import Refusal


class NodeLife(StrEnum):
    REGISTERED = "registered"
    ACTIVE = "active"
    INACTIVE = "inactive"
    DEREGISTERED = "deregistered"


class LifeChange(StrEnum):
    """What happens to a node in its life."""

    PROVED = "proved"  # the challenge is passed and the stake is enough
    LAPSED = "lapsed"  # one of both no longer holds
    REMOVED = "removed"  # by its owner or an operator


class LifeRefusal(Refusal):
    NODE_REMOVED = "This node was removed from the pool: join the machine again with a new token."
    NODE_ALREADY_SO = "The node is in that state already; nothing was changed."
    NODE_NOT_PROVED = "This node has not been active yet, so it cannot lapse: let it pass its challenge first."


LIVES: Mapping[tuple[NodeLife, LifeChange], NodeLife | LifeRefusal] = {
    (NodeLife.REGISTERED, LifeChange.PROVED): NodeLife.ACTIVE,
    (NodeLife.REGISTERED, LifeChange.LAPSED): LifeRefusal.NODE_NOT_PROVED,
    (NodeLife.REGISTERED, LifeChange.REMOVED): NodeLife.DEREGISTERED,
    (NodeLife.ACTIVE, LifeChange.PROVED): LifeRefusal.NODE_ALREADY_SO,
    (NodeLife.ACTIVE, LifeChange.LAPSED): NodeLife.INACTIVE,
    (NodeLife.ACTIVE, LifeChange.REMOVED): NodeLife.DEREGISTERED,
    (NodeLife.INACTIVE, LifeChange.PROVED): NodeLife.ACTIVE,
    (NodeLife.INACTIVE, LifeChange.LAPSED): LifeRefusal.NODE_ALREADY_SO,
    (NodeLife.INACTIVE, LifeChange.REMOVED): NodeLife.DEREGISTERED,
    (NodeLife.DEREGISTERED, LifeChange.PROVED): LifeRefusal.NODE_REMOVED,
    (NodeLife.DEREGISTERED, LifeChange.LAPSED): LifeRefusal.NODE_REMOVED,
    (NodeLife.DEREGISTERED, LifeChange.REMOVED): LifeRefusal.NODE_REMOVED,
}


class Condition(StrEnum):
    """The condition of a node, besides its life. It is either online or offline."""

    ONLINE = "online"
    OFFLINE = "offline"
    DRAINING = "draining"
    PAUSED = "paused"
    DEGRADED = "degraded"
    SUSPENDED = "suspended"


def after(life: NodeLife, change: LifeChange) -> NodeLife | LifeRefusal:
    """The life of a node after a change."""
    return LIVES[life, change]
