"""The rule of placement: which node a demand gets, and which of its devices. Pure, plain and slow.

1. Filter: a node to which there is no objection suits.
2. Newcomers: of some placements, drawn by the caller, only newcomers among the suitable nodes count, if there are any.
3. Score: the demand's policy says what speaks for each node, and a node that holds the demand's inputs gets a bonus.
4. Choose: the best node. Of equals, a rank policy takes the one changed longest ago, so that they take turns; a fit
   policy takes the one in the lowest place, so that it fills one before the next.

This is the specification. The index (`index/candidate_pool.py`) answers the same much faster, and is tested equal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, MedianPrices, choose_devices
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.index.columns import Columns
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.objections import objections
from tidemill.core.placement.policies import FitPolicy, FitScorer, Policy, RankPolicy

LOCALITY_WEIGHT = 0.1
"""The bonus for holding all inputs in a rank policy, whose scores are between 0 and 1."""

LOCALITY_MILLI = 20
"""The same bonus in a fit policy, in thousandths of a device."""

NEWCOMERS_SHARE = 0.05

SCORE_LOW, SCORE_HIGH = -0.5, 1.5
"""Scores beyond these count as these."""


@dataclass(frozen=True)
class SnapshotNode:
    """A node at one moment."""

    candidate: Candidate
    """The node as it came. The processor that it had free then is all of its processor."""

    left: Candidate
    """The same node with what is free of it now, and the inputs that it holds now."""

    place: int
    """Where it stands in the pool. No two nodes have the same place."""

    changed: int
    """Grows with every change of any node: a lower number means changed longer ago."""

    @property
    def load(self) -> float:
        """The busy share of its devices or of its processor, whichever is more."""
        full_milli, free_milli = 1000 * len(self.left.devices), sum(device.free_milli for device in self.left.devices)
        of_devices = (full_milli - free_milli) / max(1, full_milli)
        of_processor = 1.0 - self.left.cpu_milli / max(1, self.candidate.cpu_milli)
        return max(of_devices, of_processor)


class NodeChoice(NamedTuple):
    """The node that a demand gets, and which of its devices."""

    node: SnapshotNode
    devices: tuple[int, ...]


@dataclass(frozen=True)
class PlacementRule:
    """The rule with its parameters."""

    policies: Mapping[str, Policy]
    median_prices: MedianPrices
    newcomers_share: float = NEWCOMERS_SHARE

    def choose(
        self, snapshot: Sequence[SnapshotNode], demand: Demand, now: Instant, draw: float = 1.0
    ) -> NodeChoice | None:
        """The node for one demand; None if there is an objection to each. `draw` is between 0 and 1."""
        suitable = [node for node in snapshot if not any(objections(node.left, demand, now))]
        newcomers = [node for node in suitable if node.candidate.newcomer]
        if draw < self.newcomers_share and newcomers:
            suitable = newcomers
        if not suitable:
            return None
        policy = self.policies[demand.policy]
        if isinstance(policy, RankPolicy):
            return self._highest(policy, suitable, demand)
        return _cheapest(policy, snapshot, suitable, demand)

    def _highest(self, policy: RankPolicy, suitable: Sequence[SnapshotNode], demand: Demand) -> NodeChoice:
        best = min(
            suitable, key=lambda node: (-rank(policy, score(policy, node, demand, self.median_prices)), node.changed)
        )
        return NodeChoice(best, choose_devices(best.left.devices, demand))


def score(policy: RankPolicy, node: SnapshotNode, demand: Demand, median_prices: MedianPrices) -> float:
    """What speaks for a node under a rank policy."""
    lasting = sum(policy.terms(node.candidate, median_prices).values())
    return lasting - policy.load_weight * node.load + LOCALITY_WEIGHT * held_share(node, demand)


def rank(policy: RankPolicy, scored: float) -> int:
    """The score in the policy's steps: smaller differences make equals."""
    within = min(SCORE_HIGH, max(SCORE_LOW, scored))
    return int((within - SCORE_LOW) * policy.steps + 0.5)


def held_share(node: SnapshotNode, demand: Demand) -> float:
    """The share of the bytes of a demand's inputs that the node holds already."""
    held_bytes = sum(needed.size_bytes for needed in demand.inputs if needed.digest in node.left.cached)
    return held_bytes / max(1, demand.input_bytes)


def _cheapest(
    policy: FitPolicy, snapshot: Sequence[SnapshotNode], suitable: Sequence[SnapshotNode], demand: Demand
) -> NodeChoice:
    """The lowest cost. A fit policy may look at all nodes to tell the cost of one."""
    in_places = sorted(snapshot, key=lambda node: node.place)
    scorer = _scorer(policy, in_places)
    rows = [row for row, node in enumerate(in_places) if node in suitable]
    terms, devices = scorer.costs(demand, np.array(rows))
    costs = terms @ scorer.prices() - [LOCALITY_MILLI * held_share(in_places[row], demand) for row in rows]
    best = int(np.argmin(costs))  # the first of equals
    node, device = in_places[rows[best]], int(devices[best])
    return NodeChoice(node, (device,) if device >= 0 else choose_devices(node.left.devices, demand))


def _scorer(policy: FitPolicy, nodes: Sequence[SnapshotNode]) -> FitScorer:
    """The policy applied to these nodes, a column for each quantity."""
    columns = Columns(len(nodes), max(len(node.left.devices) for node in nodes))
    for row, node in enumerate(nodes):
        columns.put(PoolNode(row, node.left, node.changed))
    scorer = policy.begin(columns)
    scorer.refresh(np.arange(len(nodes)))
    return scorer


def take(node: SnapshotNode, demand: Demand, devices: Sequence[int], changed: int) -> SnapshotNode:
    """The node after a demand has taken these devices, and what else it needs."""
    return _shifted(node, demand, devices, -1, changed)


def give_back(node: SnapshotNode, demand: Demand, devices: Sequence[int], changed: int) -> SnapshotNode:
    """The node after a demand has given back what it took."""
    return _shifted(node, demand, devices, 1, changed)


def _shifted(node: SnapshotNode, demand: Demand, devices: Sequence[int], sign: int, changed: int) -> SnapshotNode:
    left = node.left
    shifted = replace(
        left,
        devices=tuple(
            replace(device, free_milli=device.free_milli + sign * demand.milli * (index in devices))
            for index, device in enumerate(left.devices)
        ),
        cpu_milli=left.cpu_milli + sign * demand.cpu_milli,
        memory_mib=left.memory_mib + sign * demand.memory_mib,
        disk_mib=left.disk_mib + sign * demand.disk_mib,
    )
    return replace(node, left=shifted, changed=changed)
