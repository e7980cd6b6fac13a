"""The common case, quickly: nodes wait in lanes, the best in front, and a demand looks at the front of a few.

A node's rank is its score in the policy's steps: smaller differences make equals, and equals take turns: the one
changed longest ago comes first. There is a lane for each model and each demanded number of whole devices; a node stands
in every lane that it has enough free devices for, in the bucket of its rank. The first node is checked with `suits`, so
the answer is that of the exact path. After too many that do not suit, the exact path decides.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import MedianPrices
from tidemill.core.placement.demand import WHOLE_MILLI, Demand, LaneKey
from tidemill.core.placement.index.lanes import WIDE, DeviceModelLanes, Lane, LaneBucket, LaneMembership, LaneRoom
from tidemill.core.placement.index.node import PoolNode, suits, suits_besides
from tidemill.core.placement.policies import RankPolicy
from tidemill.core.placement.rule import SCORE_HIGH, SCORE_LOW

STEPS_MAX = 16_000
"""So that every rank fits into the columns."""

SKIPPED_MAX = 64
"""How many nodes that do not suit are skipped before the exact path decides (1.9 × if it were 1)."""

FRONTS_MAX = 10_000
"""How many combinations of models and numbers are remembered with their lanes."""

MODELS_MAX = 256
"""A demand that allows more models than this is compared with all nodes at once."""

_SLACK = 1024
_NOBODY: tuple[PoolNode | None, int] = (None, -1)

Nodes = Sequence[PoolNode | None]
Fronts = dict[LaneKey, list[Lane]]
Local = Sequence[tuple[PoolNode, float]]
Needed = tuple[bool, int, int]
"""Whether it is kept for newcomers; and the processor and memory that it needs."""


class RankingDoubt(Enum):
    """The front of the lanes holds too many nodes that do not suit, or there are too many lanes."""

    UNSURE = "unsure"


UNSURE: Final = RankingDoubt.UNSURE


class Ranking:
    """The ranks of all nodes under one policy. `nodes` is the pool's own list."""

    def __init__(self, policy: RankPolicy, nodes: Nodes, median_prices: MedianPrices) -> None:
        self._policy, self._median_prices = policy, median_prices
        self._nodes = nodes
        """The pool's own list, by slot."""
        self._weight, self._steps = policy.load_weight, policy.steps
        assert 0 < self._steps <= STEPS_MAX
        self._rank_max = int((SCORE_HIGH - SCORE_LOW) * self._steps)
        """The highest rank; the lowest is 0."""
        self._bases = [0.0] * len(nodes)
        """By slot, the score of a node with nothing to do."""
        self._initial_ranks = [0] * len(nodes)
        """The rank of each node without tenants, which most nodes in the lanes have (1.08 ×)."""
        self._numbers = list(range(self._rank_max + 1))
        """So that equal ranks are one object: a hundred thousand would not stay in the cache (1.06 ×)."""
        self.column: NDArray[np.int16] = np.zeros(len(nodes), np.int16)
        """By slot, the rank for the exact path; the pool keeps it up as it does the columns."""
        self._models: dict[str, DeviceModelLanes] = {}
        """The lanes of each model; of nodes that mix models or have no device, under the empty name."""
        nowhere = LaneMembership()
        self._standing: list[LaneMembership] = [nowhere] * len(nodes)
        """The lanes of the node in each slot."""
        self._sweep_after = _SLACK
        """Above this version, so many entries were made that stale ones are dropped."""
        self._fronts: Fronts = {}
        """The lanes in which a demand looks, by the models and the number of devices that it demands."""
        self._newcomers_fronts: Fronts = {}
        """The same for demands that are kept for newcomers."""
        self._narrow: dict[LaneKey, dict[Needed, list[Lane]]] = {}
        """For demands that found too many nodes in front without enough processor or memory."""
        for node in filter(None, nodes):
            self.put(node)
            self.column[node.slot] = self.rank(node)

    def rank(self, node: PoolNode, bonus: float = 0.0) -> int:
        """The rank for a score; `bonus` is for holding a demand's inputs."""
        return self._rank(node, node.load, bonus)

    def _rank(self, node: PoolNode, load: float, bonus: float = 0.0) -> int:
        rank = int((self._bases[node.slot] - self._weight * load + bonus - SCORE_LOW) * self._steps + 0.5)
        return 0 if rank < 0 else self._rank_max if rank > self._rank_max else rank

    def put(self, node: PoolNode) -> None:
        """Add a node, or update its facts."""
        self._bases[node.slot] = sum(self._policy.terms(node.candidate, self._median_prices).values())
        self._initial_ranks[node.slot] = self._numbers[self._rank(node, node.came_load)]
        lanes = self._models.get(node.device_model)
        if lanes is None:
            lanes = self._models[node.device_model] = DeviceModelLanes()
            for fronts in (self._fronts, self._newcomers_fronts, self._narrow):
                fronts.clear()
        standing = lanes.newcomer if node.newcomer else lanes.everybody
        standing.reach(len(node.free))
        self._standing[node.slot] = standing
        self.change(node)

    def change(self, node: PoolNode) -> None:
        """What is free of a node has changed, and its version with it: it enters its lanes anew, behind its equals."""
        standing = self._standing[node.slot]
        lanes = standing.wide[node.whole]
        if standing.narrow:
            lanes = lanes + [lane for lane in standing.narrow if lane.is_for(node)]
        if lanes:
            rank = self._rank(node, node.load) if node.tenants else self._initial_ranks[node.slot]
            version = node.version
            entry = (node, version)
            for lane in lanes:
                bucket = lane.buckets.get(rank)
                if bucket:  # what `enter` does; calling it always, and no direct way in `place`, would take 1.06 ×
                    bucket.append(entry)
                else:
                    lane.enter(entry, rank)
            if version > self._sweep_after:
                self._sweep(version)

    def _sweep(self, version: int) -> None:
        """Drop stale entries, after twice as many changes as there were entries in lanes."""
        lanes = [lane for model_lanes in self._models.values() for lane in model_lanes.newcomer]
        self._sweep_after = version + _SLACK + 2 * sum(lane.sweep() for lane in lanes)

    def best(self, demand: Demand, now: Instant, newcomers: bool, local: Local) -> PoolNode | RankingDoubt | None:
        """The node that gets the demand. `local` are nodes with their bonus for holding its inputs."""
        quick = demand.quick
        fronts = (self._newcomers_fronts if newcomers else self._fronts).get(quick.lanes)
        if self._narrow and (narrow := self._narrow.get(quick.lanes)):
            fronts = narrow.get((newcomers, demand.cpu_milli, demand.memory_mib), fronts)
        if fronts is None and (fronts := self._lanes_for(demand, newcomers)) is None:
            return UNSURE
        patience, is_usual = SKIPPED_MAX, quick.is_usual
        best, best_rank = _of_local(self.rank, demand, now, local, newcomers=newcomers) if local else _NOBODY
        for lane in fronts:
            ranks = lane.ranks
            while ranks:
                rank = ranks.bit_length() - 1
                if rank < best_rank:
                    break
                bucket = lane.buckets[rank]
                while bucket:
                    node, version = bucket[0]
                    if node.version == version:
                        break
                    bucket.popleft()
                else:
                    ranks ^= (bit := 1 << rank)
                    lane.ranks ^= bit
                    continue
                if best is not None and rank == best_rank and version > best.version:
                    break
                if suits_besides(node, quick) if is_usual and node.is_usual else suits(node, demand, now):
                    best, best_rank = node, rank
                    break
                behind, patience = _behind(bucket, demand, now, best if rank == best_rank else None, patience)
                if patience < 0:
                    is_narrower = self._narrowed(demand, newcomers, bucket)
                    return self.best(demand, now, newcomers, local) if is_narrower else UNSURE
                if behind is not None:
                    best, best_rank = behind, rank
                    break
                ranks ^= 1 << rank
        return best

    def _lanes_for(self, demand: Demand, newcomers: bool) -> list[Lane] | None:
        """The lanes that may hold a node for this demand; None if there are too many, or none."""
        names = self._names(demand)
        if len(names) > MODELS_MAX or demand.milli < WHOLE_MILLI:
            return None
        fronts = self._newcomers_fronts if newcomers else self._fronts
        if len(fronts) >= FRONTS_MAX:
            fronts.clear()
        fronts[demand.quick.lanes] = [self._lane(name, demand.devices, WIDE, newcomers=newcomers) for name in names]
        return fronts[demand.quick.lanes]

    def _narrowed(self, demand: Demand, newcomers: bool, bucket: LaneBucket) -> bool:
        """Where most nodes in front lack processor or memory, such demands look from now on only at nodes that have it.
        False if they do already, or if the cause is another."""
        if not _lack_room(bucket, demand):
            return False
        if len(self._narrow) >= FRONTS_MAX:
            self._narrow.clear()
        narrow = self._narrow.setdefault(demand.quick.lanes, {})
        needed = (newcomers, demand.cpu_milli, demand.memory_mib)
        if needed in narrow:
            return False
        if len(narrow) >= FRONTS_MAX:
            narrow.clear()
        room = needed[1:]
        narrow[needed] = [self._lane(name, demand.devices, room, newcomers=newcomers) for name in self._names(demand)]
        return True

    def _names(self, demand: Demand) -> list[str]:
        """The models whose lanes count. Nodes that mix models stand in the lanes of the empty name."""
        models, _ = demand.quick.lanes
        return [name for name in (*models, "") if name in self._models] if models else list(self._models)

    def _lane(self, model: str, devices: int, room: LaneRoom, *, newcomers: bool) -> Lane:
        """The existing lane, or a new one. With too many narrow lanes, another that holds all suitable nodes."""
        lanes = self._models[model]
        lane = lanes.lane(devices, room, newcomers=newcomers)
        if lane is None and room != WIDE and not lanes.has_place:
            lane = lanes.wider(devices, room, newcomers=newcomers)
        return lane or self._open(model, Lane(devices, room), newcomers=newcomers)

    def _open(self, model: str, lane: Lane, *, newcomers: bool) -> Lane:
        able = [
            candidate
            for candidate in self._nodes
            if candidate and candidate.device_model == model and lane.is_for(candidate)
        ]
        for node in sorted(able, key=lambda candidate: candidate.version):
            if node.newcomer or not newcomers:
                lane.enter((node, node.version), self.rank(node))
        self._models[model].add(lane, newcomers=newcomers)
        return lane


def _lack_room(bucket: LaneBucket, demand: Demand) -> bool:
    """Whether most nodes in front have too little processor or memory, rather than another fault."""
    front = [node for node, version in islice(bucket, SKIPPED_MAX) if node.version == version]
    lacking = [node.cpu_milli < demand.cpu_milli or node.memory_mib < demand.memory_mib for node in front]
    return 2 * sum(lacking) > len(lacking)


def _behind(
    bucket: LaneBucket, demand: Demand, now: Instant, best: PoolNode | None, patience: int
) -> tuple[PoolNode | None, int]:
    """The first node that suits behind the front of a bucket, if it comes before the best so far; and what is left of
    the patience with those that do not."""
    for node, version in islice(bucket, 1, None):
        patience -= 1
        if patience < 0 or (best is not None and version > best.version):
            break
        if node.version == version and suits(node, demand, now):
            return node, patience
    return None, patience


def _of_local(
    rank_of: Callable[[PoolNode, float], int],
    demand: Demand,
    now: Instant,
    local: Local,
    *,
    newcomers: bool,
) -> tuple[PoolNode | None, int]:
    """The best of the nodes that hold inputs, and its rank."""
    best, best_rank = None, -1
    for node, bonus in local:
        if (node.newcomer or not newcomers) and suits(node, demand, now):
            rank = rank_of(node, bonus)
            if best is None or (rank, -node.version) > (best_rank, -best.version):
                best, best_rank = node, rank
    return best, best_rank
