"""Everything the pool knows of a node, put together to say why it gets no work.

The pool senses through a node's last beat and its open alerts, the node through its own readings. The node decides
whether its machine is idle, so here a machine counts as idle unless its last beat shows that it is in use.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes import versions
from tidemill.core.nodes.health.telemetry import Beat, busiest_pct, hottest_c, hungriest_w
from tidemill.core.nodes.life import Condition
from tidemill.core.nodes.no_work import FailingDevice, NodeSituation
from tidemill.core.nodes.node import KnownDevice, Node
from tidemill.core.nodes.rules.rule_book import rules_of
from tidemill.core.nodes.rules.rules import HeatLimits, MachineReading, NodeRules, Senses, sense


@dataclass(frozen=True)
class NodeCircumstances:
    """What is known of a node besides its own row: its last beat and when, open alerts, its challenge, its owner."""

    beat: Beat | None
    beat_at: Instant | None
    hot: bool
    challenge_passed: bool
    challenge_refused: str
    owner_blocked: bool


def situation_of(
    node: Node, devices: Sequence[KnownDevice], circumstances: NodeCircumstances, heat: HeatLimits, agent_oldest: str
) -> NodeSituation:
    """The situation that answers "why did it get no work?"."""
    rules = rules_of(node.book)
    failing = [
        FailingDevice(device.name or f"Device {device.index}", device.failing) for device in devices if device.failing
    ]
    return NodeSituation(
        life=node.life,
        conditions=_conditions(node, degraded=bool(failing)),
        challenge_passed=circumstances.challenge_passed,
        challenge_refused=circumstances.challenge_refused,
        version=versions.version_of(node.agent),
        version_accepted=versions.is_accepted(node.agent, agent_oldest),
        versions_accepted=f"{agent_oldest} and newer",
        devices=len(devices),
        failing=failing,
        rules=rules,
        utc_offset_s=node.utc_offset_s,
        senses=_senses(circumstances, rules, heat),
        suspended_reason=node.suspended_reason or "",
        owner_blocked=circumstances.owner_blocked,
        heard_at=node.heard_at,
    )


def _conditions(node: Node, *, degraded: bool) -> Collection[Condition]:
    return [*node.conditions, Condition.DEGRADED] if degraded else node.conditions


def _senses(circumstances: NodeCircumstances, rules: NodeRules, heat: HeatLimits) -> Senses | None:
    if circumstances.beat is None or circumstances.beat_at is None:
        return None
    at, beat = circumstances.beat_at, circumstances.beat
    reading = MachineReading(hottest_c(beat), hungriest_w(beat), busiest_pct(beat))
    idle_since = Instant(at - rules.only_when_idle.for_s * SECOND) if rules.only_when_idle else None
    before = Senses(reading, hot=circumstances.hot, hungry=False, idle_since=idle_since, seen_at=at)
    return sense(before, reading, rules, heat, at)
