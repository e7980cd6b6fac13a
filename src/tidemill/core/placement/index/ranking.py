"""The common case, quickly: nodes wait in lanes, the best in front, and a request looks at the front of a few.

A node's rank is its score in the policy's steps: who differs by less is equal, and equals take turns, so that who was
changed longest ago comes first. There is a lane for each model and each number of whole devices that was asked for;
a node stands in every lane that it has enough free devices for, in the bucket of its rank. Whoever comes first is asked
whether it suits, so the answer is that of the exact path. After too many that do not suit, the exact path is asked.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import MedianPrices
from tidemill.core.placement.demand import WHOLE_MILLI, Demand
from tidemill.core.placement.index.lanes import WIDE, DeviceModelLanes, Lane, LaneBucket, LaneMembership, LaneRoom
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.objections import suits, suits_besides
from tidemill.core.placement.policies import RankPolicy

SCORE_LOW, SCORE_HIGH = -0.5, 1.5
"""Scores beyond these count as these."""

STEPS_MAX = 16_000
"""So that every rank fits into the columns."""

SKIPPED_MAX = 64
FRONTS_MAX = 10_000
"""So many combinations of models and numbers are remembered with their lanes."""

MODELS_MAX = 256
"""A request that may go to more models than this is held against all nodes at once."""

_SLACK = 1024
_NOBODY: tuple[PoolNode | None, int] = (None, -1)

Nodes = Sequence[PoolNode | None]
Fronts = dict[tuple[frozenset[str], int], list[Lane]]
Local = Sequence[tuple[PoolNode, float]]
Needed = tuple[bool, int, int]
"""Whether it is kept for newcomers; and of the processor and of memory so much."""


class RankingDoubt(Enum):
    """The front of the lanes holds too many nodes that do not suit, or the lanes are too many."""

    UNSURE = "unsure"


UNSURE: Final = RankingDoubt.UNSURE


class Ranking:
    """The ranks of all nodes under one policy. `nodes` is the pool's own list."""

    def __init__(self, policy: RankPolicy, nodes: Nodes, market: MedianPrices) -> None:
        self._policy, self._nodes, self._market = policy, nodes, market
        self._weight, self._steps = policy.load_weight, policy.steps
        assert 0 < self._steps <= STEPS_MAX
        self._rank_max = int((SCORE_HIGH - SCORE_LOW) * self._steps)
        self._bases = [0.0] * len(nodes)
        self._came = [0] * len(nodes)
        """The rank of each node as it came, which most nodes in the lanes have: those without a tenant."""
        self._numbers = list(range(self._rank_max + 1))
        """So that equal ranks are one object: a hundred thousand would not stay in the cache."""
        self.column: NDArray[np.int16] = np.zeros(len(nodes), np.int16)
        self._models: dict[str, DeviceModelLanes] = {}
        nowhere = LaneMembership()
        self._standing: list[LaneMembership] = [nowhere] * len(nodes)
        """Where the node of each slot stands."""
        self._sweep_after = _SLACK
        """When a version is above this, so much has been entered that what is stale is let go."""
        self._fronts: Fronts = {}
        self._newcomers_fronts: Fronts = {}
        self._narrow: dict[tuple[frozenset[str], int], dict[Needed, list[Lane]]] = {}
        """Of requests that found too many in front without processor or memory for them."""
        for node in filter(None, nodes):
            self.put(node)
            self.column[node.slot] = self.rank(node)

    def rank(self, node: PoolNode, bonus: float = 0.0) -> int:
        """What counts of a score; `bonus` is what holding a request's inputs is worth."""
        return self._rank(node, node.load, bonus)

    def _rank(self, node: PoolNode, load: float, bonus: float = 0.0) -> int:
        rank = int((self._bases[node.slot] - self._weight * load + bonus - SCORE_LOW) * self._steps + 0.5)
        return 0 if rank < 0 else self._rank_max if rank > self._rank_max else rank

    def put(self, node: PoolNode) -> None:
        """A node has come, or its facts have changed."""
        self._bases[node.slot] = sum(self._policy.terms(node.candidate, self._market).values())
        self._came[node.slot] = self._numbers[self._rank(node, node.came_load)]
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
            rank = self._rank(node, node.load) if node.tenants else self._came[node.slot]
            version = node.version
            entry = (node, version)
            for lane in lanes:
                bucket = lane.buckets.get(rank)
                if bucket:
                    bucket.append(entry)
                else:
                    lane.open(bucket, entry, rank)
            if version > self._sweep_after:
                self._sweep(version)

    def _sweep(self, version: int) -> None:
        """Let go of what is stale, when there were twice as many changes as there were entries in lanes."""
        lanes = [lane for one in self._models.values() for lane in one.newcomer]
        self._sweep_after = version + _SLACK + 2 * sum(lane.sweep() for lane in lanes)

    def best(self, request: Demand, now: Instant, newcomers: bool, local: Local) -> PoolNode | RankingDoubt | None:
        """The node that gets the request. `local` are nodes with what holding its inputs is worth to each."""
        fronts = (self._newcomers_fronts if newcomers else self._fronts).get(request.lanes)
        if self._narrow and (narrow := self._narrow.get(request.lanes)):
            fronts = narrow.get((newcomers, request.cpu_milli, request.memory_mib), fronts)
        if fronts is None and (fronts := self._lanes_for(request, newcomers)) is None:
            return UNSURE
        patience, is_usual = SKIPPED_MAX, request.is_usual
        best, best_rank = _of_local(self.rank, request, now, local, newcomers=newcomers) if local else _NOBODY
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
                if suits_besides(node, request) if is_usual and node.is_usual else suits(node, request, now):
                    best, best_rank = node, rank
                    break
                other, patience = _behind(bucket, request, now, best if rank == best_rank else None, patience)
                if patience < 0:
                    is_narrower = self._narrowed(request, newcomers, bucket)
                    return self.best(request, now, newcomers, local) if is_narrower else UNSURE
                if other is not None:
                    best, best_rank = other, rank
                    break
                ranks ^= 1 << rank
        return best

    def _lanes_for(self, request: Demand, newcomers: bool) -> list[Lane] | None:
        """The lanes in which a node for this request may stand; None when they are too many, or there are none."""
        names = self._names(request)
        if len(names) > MODELS_MAX or request.milli < WHOLE_MILLI:
            return None
        fronts = self._newcomers_fronts if newcomers else self._fronts
        if len(fronts) >= FRONTS_MAX:
            fronts.clear()
        fronts[request.lanes] = [self._lane(name, request.devices, WIDE, newcomers=newcomers) for name in names]
        return fronts[request.lanes]

    def _narrowed(self, request: Demand, newcomers: bool, bucket: LaneBucket) -> bool:
        """Where most in front lack processor or memory, such requests look from now on only at nodes that have it.
        False when they do already, or that is not what is wrong."""
        if not _lack_room(bucket, request):
            return False
        if len(self._narrow) >= FRONTS_MAX:
            self._narrow.clear()
        narrow = self._narrow.setdefault(request.lanes, {})
        needed = (newcomers, request.cpu_milli, request.memory_mib)
        if needed in narrow:
            return False
        if len(narrow) >= FRONTS_MAX:
            narrow.clear()
        room = needed[1:]
        narrow[needed] = [self._lane(name, request.devices, room, newcomers=newcomers) for name in self._names(request)]
        return True

    def _names(self, request: Demand) -> list[str]:
        """The models whose lanes count. Nodes that mix models stand in those of no model."""
        models, _ = request.lanes
        return [name for name in (*models, "") if name in self._models] if models else list(self._models)

    def _lane(self, model: str, devices: int, room: LaneRoom, *, newcomers: bool) -> Lane:
        """As it is known, or opened. When there are too many narrow ones, another that has all nodes for it."""
        lanes = self._models[model]
        known = lanes.lane(devices, room, newcomers=newcomers)
        if known is None and room != WIDE and not lanes.has_place:
            known = lanes.wider(devices, room, newcomers=newcomers)
        return known or self._open(model, Lane(devices, room), newcomers=newcomers)

    def _open(self, model: str, lane: Lane, *, newcomers: bool) -> Lane:
        able = [one for one in self._nodes if one and one.device_model == model and lane.is_for(one)]
        for node in sorted(able, key=lambda one: one.version):
            if node.newcomer or not newcomers:
                lane.enter((node, node.version), self.rank(node))
        self._models[model].add(lane, newcomers=newcomers)
        return lane


def _lack_room(bucket: LaneBucket, request: Demand) -> bool:
    """Whether most of those in front have too little of processor or memory, and not some other fault."""
    front = [node for node, version in islice(bucket, SKIPPED_MAX) if node.version == version]
    lacking = [node.cpu_milli < request.cpu_milli or node.memory_mib < request.memory_mib for node in front]
    return 2 * sum(lacking) > len(lacking)


def _behind(
    bucket: LaneBucket, request: Demand, now: Instant, best: PoolNode | None, patience: int
) -> tuple[PoolNode | None, int]:
    """The first that suits behind the front of a bucket, if it comes before the best so far, and what is left of the
    patience with those that do not."""
    for node, version in islice(bucket, 1, None):
        patience -= 1
        if patience < 0 or (best is not None and version > best.version):
            break
        if node.version == version and suits(node, request, now):
            return node, patience
    return None, patience


def _of_local(
    rank_of: Callable[[PoolNode, float], int],
    request: Demand,
    now: Instant,
    local: Local,
    *,
    newcomers: bool,
) -> tuple[PoolNode | None, int]:
    """The best of the nodes that hold inputs, and its rank."""
    best, best_rank = None, -1
    for node, bonus in local:
        if (node.newcomer or not newcomers) and suits(node, request, now):
            rank = rank_of(node, bonus)
            if best is None or (rank, -node.version) > (best_rank, -best.version):
                best, best_rank = node, rank
    return best, best_rank
