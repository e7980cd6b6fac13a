"""The answer to "why did my node get no work?": every current reason, the one to fix first in front.

Without a reason that concerns the node as a whole, it is assigned work whenever some fits.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.life import Condition, LifeRefusal, NodeLife
from tidemill.core.nodes.no_work_reasons import NoWorkCause, NoWorkReason
from tidemill.core.nodes.rules.rules import HeatLimits, NodeRules, Senses, objections

_ORDER = {why: rank for rank, why in enumerate(NoWorkCause)}

_LIVES = {
    NodeLife.REGISTERED: "This node is registered and not active yet: it needs a passed challenge.",
    NodeLife.INACTIVE: "This node is inactive: it needs a passed challenge to be active again.",
}
_CHECKED_AGAIN = "Its hardware has to be challenged before it gets work; that happens by itself once it is online."
_OWNER_BLOCKED = "The account of its owner is blocked: what is begun is finished, and an operator has to be asked."
_PAUSED = "This node is paused: resume it when it may work again."
_PAUSING = {NoWorkCause.TOO_HOT, NoWorkCause.TOO_MUCH_POWER, NoWorkCause.PAUSED}
"""Each of them pauses a node, and says more than that it is paused."""

_DRAINING = "This node finishes what it has and takes no new work: resume it to change that."


@dataclass(frozen=True)
class FailingDevice:
    """A device whose driver gave up, and the driver's words."""

    name: str
    words: str


@dataclass(frozen=True)
class NodeSituation:
    """What is known of a node when somebody asks. `senses` are the last that arrived, if any."""

    life: NodeLife
    conditions: Collection[Condition]
    challenge_passed: bool
    version: str
    version_accepted: bool
    versions_accepted: str
    devices: int
    failing: Sequence[FailingDevice]
    rules: NodeRules
    utc_offset_s: int
    senses: Senses | None = None
    paused_reason: str = ""
    suspended_reason: str = ""
    challenge_refused: str = ""
    owner_blocked: bool = False
    heard_at: Instant | None = None
    placement_stopped: str = ""


def why_no_work(node: NodeSituation, pool: HeatLimits, now: Instant) -> list[NoWorkReason]:
    """Every reason, in the order of `NoWorkCause`. A removed node has only that one."""
    if node.life is NodeLife.DEREGISTERED:
        return [NoWorkReason(NoWorkCause.REMOVED, LifeRefusal.NODE_REMOVED.sentence)]
    by_rules = list(objections(node.rules, node.senses, pool, now, node.utc_offset_s))
    rule_causes = {reason.why for reason in by_rules}
    named_causes = rule_causes | ({NoWorkCause.PAUSED} if rule_causes & _PAUSING and not node.paused_reason else set())
    node_reasons = (reason for reason in _of_the_node(node, now) if reason.why not in named_causes)
    return sorted([*node_reasons, *by_rules], key=lambda reason: _ORDER[reason.why])


def _of_the_node(node: NodeSituation, now: Instant) -> Iterator[NoWorkReason]:
    if node.placement_stopped:
        yield NoWorkReason(NoWorkCause.PLACEMENT_STOPPED, node.placement_stopped)
    if Condition.SUSPENDED in node.conditions:
        yield _suspended(node.suspended_reason)
    if node.owner_blocked:
        yield NoWorkReason(NoWorkCause.OWNER_BLOCKED, _OWNER_BLOCKED)
    if Condition.OFFLINE in node.conditions:
        yield _offline(node.heard_at, now)
    if not node.version_accepted:
        yield _version(node)
    if not node.challenge_passed:
        yield NoWorkReason(NoWorkCause.CHALLENGE_MISSING, _unproved(node.challenge_refused))
    if node.life in _LIVES:
        yield NoWorkReason(NoWorkCause.NOT_ACTIVE, _LIVES[node.life])
    if Condition.PAUSED in node.conditions:
        yield NoWorkReason(
            NoWorkCause.PAUSED, f"This node is paused: {node.paused_reason}" if node.paused_reason else _PAUSED
        )
    if Condition.DRAINING in node.conditions:
        yield NoWorkReason(NoWorkCause.DRAINING, _DRAINING)
    yield from _failing(node)


def _unproved(refused: str) -> str:
    return f"Its hardware was challenged and did not show what it claims. {refused}" if refused else _CHECKED_AGAIN


def _suspended(reason: str) -> NoWorkReason:
    why = f": {reason}" if reason else ""
    return NoWorkReason(NoWorkCause.SUSPENDED, f"The pool has suspended this node{why}. Ask its operator.")


def _offline(heard_at: Instant | None, now: Instant) -> NoWorkReason:
    if heard_at is None:
        return NoWorkReason(
            NoWorkCause.OFFLINE, "Nothing was heard of this node yet: start `tidemill agent run` on it."
        )
    silent_s = max(0, now - heard_at) // SECOND
    return NoWorkReason(
        NoWorkCause.OFFLINE,
        f"Nothing was heard of this node for {_spoken(silent_s)}: run `tidemill agent doctor` on it.",
    )


def _version(node: NodeSituation) -> NoWorkReason:
    return NoWorkReason(
        NoWorkCause.VERSION_NOT_ACCEPTED,
        f"The agent is version {node.version}, and the pool accepts {node.versions_accepted}: install one of those.",
    )


def _failing(node: NodeSituation) -> Iterator[NoWorkReason]:
    """A failing device gets no work; the node gets none when no device is left."""
    for device in node.failing:
        yield NoWorkReason(
            NoWorkCause.FAILING_DEVICE, f"{device.name} is failing and gets no work: {device.words}", device=device.name
        )
    if node.devices <= len(node.failing):
        yield NoWorkReason(
            NoWorkCause.FAILING_DEVICE, "No device of this node is working: look at its driver and its hardware."
        )


def _spoken(seconds: int) -> str:
    for unit, length_s in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length_s:
            return f"{seconds // length_s} {unit}"
    return f"{seconds} seconds"
