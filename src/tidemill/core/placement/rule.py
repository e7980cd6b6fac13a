"""The rule of placement: which node a demand gets, and which of its devices. Pure, plain and slow.

1. Filter: a node without an objection suits. An objection has a name and a sentence, for whoever asks.
2. Newcomers: of some placements, drawn by the caller, only newcomers among the suitable nodes count, if there are any.
3. Score: the demand's policy says what speaks for each node, and a node that holds the demand's inputs gets a bonus.
4. Choose: the best node. Of equals, a rank policy takes the one changed longest ago, so that they take turns; a fit
   policy takes the one in the lowest place, so that it fills one before the next.

This is the specification, and `PlacementPool` the interface through which tasks are placed by it. The index
(`index/candidate_pool.py`) answers the same much faster, and is tested equal.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

import numpy as np

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, MedianPrices, are_joined, choose_devices, fitting_devices
from tidemill.core.placement.demand import HOUSE, Demand
from tidemill.core.placement.index.columns import Columns
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.policies import FitPolicy, FitScorer, Policy, RankPolicy, total_costs

LOCALITY_WEIGHT = 0.1
"""The bonus for holding all inputs in a rank policy, whose scores are between 0 and 1."""

LOCALITY_MILLI = 20
"""The same bonus in a fit policy, in thousandths of a device."""

NEWCOMERS_SHARE = 0.05

SCORE_LOW, SCORE_HIGH = -0.5, 1.5
"""Scores beyond these count as these."""

T = TypeVar("T")


class PlacementObjection(Enum):
    """The value is the sentence; the name in lower case is the code that programs read."""

    KIND_NOT_OFFERED = "The node carries out no such tasks: what they need is not installed there, or not allowed."
    MODEL_DIFFERS = "None of its devices is of a model that the job asks for."
    DEVICE_MEMORY_TOO_SMALL = "Its devices have less memory than the job asks for."
    DEVICES_BUSY = "Too few of its devices are free."
    NVLINK_MISSING = "Too few of its free devices are joined by NVLink."
    PROCESSOR_BUSY = "Too little of its processor is free."
    MEMORY_BUSY = "Too little of its memory is free."
    DISK_FULL = "Too little of its disk is free."
    TOO_DEAR = "A device-hour costs more there than the order allows with `hourly`."
    ABOVE_QUOTE = "It would cost more than the upper end of the job's quote, which is all that is held for it."
    REPUTATION_TOO_LOW = "Its owner's reputation is below what the job asks for."
    NOT_ATTESTED = "The job asks for attested nodes, and this one is not."
    REGION_DIFFERS = "It is in a region that the job does not allow."
    DOMAIN_DIFFERS = "It is in a domain that the job does not allow."
    HOUSE_ONLY = "Only the pool's house nodes may have this attempt, and this is none."
    LABELS_MISSING = "It lacks a label that the job asks for."
    EXCLUDED = "It is excluded from this task: it failed it already, or an operator or the customer said so."
    OWNER_EXCLUDED = "Its owner is excluded from this task: another part of it, or what it checks, is theirs."
    OWN_NODE = "It belongs to the customer, who cannot be paid for their own work."
    WINDOW_TOO_SHORT = "Its owner's hours end before the task would."

    @property
    def code(self) -> str:
        return self.name.lower()

    @property
    def sentence(self) -> str:
        sentence: str = self.value
        return sentence


class Reservation(NamedTuple, Generic[T]):
    """A demand on its node. `node` is the pool's own object, which identifies the reservation on release."""

    node_id: UUID
    devices: tuple[int, ...]
    demand: Demand
    node: T


@dataclass(frozen=True)
class PolicyAssessment:
    """A policy's assessment of one node: the objections, or the terms of its score. For a fit policy they are costs."""

    node_id: UUID
    objections: tuple[PlacementObjection, ...]
    terms: Mapping[str, float]

    @property
    def score(self) -> float:
        return sum(self.terms.values())


class PlacementPool(Protocol):
    """Candidates, and what is free of them. Whatever happened before, a demand gets what the rule chooses."""

    def __len__(self) -> int: ...

    def put(self, candidate: Candidate) -> None:
        """Add or replace a node: the candidate says what is free of it, whatever was placed here before."""

    def remove(self, node_id: UUID) -> None:
        """Remove a node; a node that is not there is gone already."""

    def note_cached(self, holders: Mapping[str, Iterable[UUID]]) -> None:
        """These nodes hold these inputs, besides those that candidates list. Valid until the next call, or until a node
        comes or goes."""

    def place(self, demand: Demand, now: Instant, draw: float = 1.0) -> Reservation[Any] | None:
        """Take what one part of the demand needs, on the node that the rule chooses; None if it chooses none."""

    def release(self, placed: Reservation[Any]) -> bool:
        """Give back what a placement took. False if its node has left or was replaced: then its candidate counts."""

    def against(self, demand: Demand, now: Instant) -> Iterable[tuple[UUID, tuple[PlacementObjection, ...]]]:
        """Each node, and every objection to it."""

    def ranked(self, demand: Demand, now: Instant, most: int) -> Iterable[UUID]:
        """The nodes that could have a demand, in the order in which it would go to them. Takes nothing."""

    def counts_costs(self, policy: str) -> bool:
        """Whether the terms of a policy are costs, so that the lowest sum wins."""

    def explain(self, demand: Demand, now: Instant, node_id: UUID) -> PolicyAssessment | None:
        """The assessment of a node by the demand's policy; None if there is no such node."""


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


def objections(node: Candidate, demand: Demand, now: Instant) -> Iterator[PlacementObjection]:
    """Every objection that applies to a node of which so much is free."""
    if demand.kind not in node.kinds:
        yield PlacementObjection.KIND_NOT_OFFERED
    yield from _of_devices(node, demand)
    yield from _of_machine(node, demand)
    if demand.price_max_uc is not None and node.price_uc > demand.price_max_uc:
        yield PlacementObjection.TOO_DEAR
    if node.reputation < demand.reputation_floor:
        yield PlacementObjection.REPUTATION_TOO_LOW
    if demand.attested and not node.attested:
        yield PlacementObjection.NOT_ATTESTED
    yield from _of_places(node, demand)
    yield from _of_people(node, demand)
    if node.available_until is not None and node.available_until < now + demand.duration_us:
        yield PlacementObjection.WINDOW_TOO_SHORT


def _of_devices(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if not demand.devices:
        return
    right = [
        device for device in node.devices if not demand.device_models or device.device_model in demand.device_models
    ]
    if not right:
        yield PlacementObjection.MODEL_DIFFERS
        return
    if not any(device.memory_mib >= demand.gpu_memory_mib for device in right):
        yield PlacementObjection.DEVICE_MEMORY_TOO_SMALL
        return
    fitting = fitting_devices(node.devices, demand)
    if len(fitting) < demand.devices:
        yield PlacementObjection.DEVICES_BUSY
    elif not are_joined(node.devices, fitting, demand):
        yield PlacementObjection.NVLINK_MISSING


def _of_machine(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if node.cpu_milli < demand.cpu_milli:
        yield PlacementObjection.PROCESSOR_BUSY
    if node.memory_mib < demand.memory_mib:
        yield PlacementObjection.MEMORY_BUSY
    if node.disk_mib < demand.disk_mib:
        yield PlacementObjection.DISK_FULL


def _of_places(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if demand.regions and node.region not in demand.regions:
        yield PlacementObjection.REGION_DIFFERS
    if demand.domains and node.domain not in demand.domains:
        yield PlacementObjection.DOMAIN_DIFFERS
    missing = demand.labels - node.labels
    if HOUSE in missing:
        yield PlacementObjection.HOUSE_ONLY
    if missing - {HOUSE}:
        yield PlacementObjection.LABELS_MISSING


def _of_people(node: Candidate, demand: Demand) -> Iterator[PlacementObjection]:
    if node.node_id in demand.excluded_nodes:
        yield PlacementObjection.EXCLUDED
    if node.owner_id in demand.excluded_owners:
        yield PlacementObjection.OWNER_EXCLUDED
    if node.owner_id == demand.customer_id:
        yield PlacementObjection.OWN_NODE


def score(policy: RankPolicy, node: SnapshotNode, demand: Demand, median_prices: MedianPrices) -> float:
    """What speaks for a node under a rank policy."""
    lasting = sum(policy.terms(node.candidate, median_prices.by(demand.price_basis)).values())
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
    costs = total_costs(terms, scorer.prices()) - [LOCALITY_MILLI * held_share(in_places[row], demand) for row in rows]
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
