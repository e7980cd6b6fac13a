"""The common case, quickly: nodes wait in lanes, the best in front, and a request looks at the front of a few.

A node's rank is its score in the policy's steps: who differs by less is equal, and equals take turns, so that who was
changed longest ago comes first. There is a lane for each model and each number of whole devices that was asked for;
a node stands in every lane that it has enough free devices for, in the bucket of its rank. Whoever comes first is asked
whether it suits, so the answer is that of the exact path. After too many that do not suit, the exact path is asked.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Market
from tidemill.core.placement.node import PoolNode
from tidemill.core.placement.policies import RankPolicy
from tidemill.core.placement.request import WHOLE_MILLI, Request
from tidemill.core.placement.why_not import suits, suits_besides

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

Nodes = Sequence[PoolNode | None]
Entry = tuple[PoolNode, int]
Bucket = deque[Entry]


class Unsure(Enum):
    """The front of the lanes holds too many nodes that do not suit, or the lanes are too many."""

    UNSURE = "unsure"


UNSURE: Final = Unsure.UNSURE


class _Lane:
    """Nodes with their versions by rank, in the order of their last changes. Bit n of `ranks` is set when the bucket of
    rank n may hold somebody. An entry whose node has changed since is stale."""

    __slots__ = ("buckets", "devices", "ranks")

    def __init__(self, devices: int) -> None:
        self.devices, self.ranks = devices, 0
        self.buckets: dict[int, Bucket] = {}

    def enter(self, entry: Entry, rank: int) -> None:
        bucket = self.buckets.get(rank)
        if bucket:
            bucket.append(entry)
        else:
            self.open(bucket, entry, rank)

    def open(self, bucket: Bucket | None, entry: Entry, rank: int) -> None:
        """The first of its rank enters; the bucket is empty, or there was none yet."""
        if bucket is None:
            bucket = self.buckets[rank] = deque()
        bucket.append(entry)
        self.ranks |= 1 << rank

    def sweep(self) -> int:
        """Let go of what is stale. Answers how many are left."""
        self.ranks, fresh = 0, 0
        for rank, bucket in list(self.buckets.items()):
            left = deque(entry for entry in bucket if entry[0].version == entry[1])
            if left:
                self.buckets[rank] = left
                self.ranks |= 1 << rank
                fresh += len(left)
            else:
                del self.buckets[rank]
        return fresh


class _Lanes:
    """The lanes of one model, by how many devices: for everybody, and for requests that are kept for newcomers."""

    __slots__ = ("everybody", "newcomers", "of_newcomer")

    def __init__(self) -> None:
        self.everybody: list[_Lane] = []
        self.newcomers: list[_Lane] = []
        self.of_newcomer: list[_Lane] = []
        """All of them: a newcomer stands in both."""

    def lane(self, devices: int, *, newcomers: bool) -> _Lane | None:
        lanes = self.newcomers if newcomers else self.everybody
        return next((one for one in lanes if one.devices == devices), None)

    def add(self, lane: _Lane, *, newcomers: bool) -> None:
        (self.newcomers if newcomers else self.everybody).append(lane)
        self.of_newcomer.append(lane)
        for lanes in (self.newcomers, self.everybody, self.of_newcomer):
            lanes.sort(key=lambda one: one.devices)


class Ranking:
    """The ranks of all nodes under one policy. `nodes` is the pool's own list."""

    def __init__(self, policy: RankPolicy, nodes: Nodes, market: Market) -> None:
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
        self._models: dict[str, _Lanes] = {}
        self._lanes: list[list[_Lane]] = [[]] * len(nodes)
        """Those in which the node of each slot stands when it has enough devices, those with the fewest first."""
        self._patience = _SLACK
        """So many may still enter before what is stale is let go."""
        self._fronts: dict[tuple[frozenset[str], int], list[_Lane]] = {}
        self._newcomers_fronts: dict[tuple[frozenset[str], int], list[_Lane]] = {}
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
        lanes = self._models.get(node.model)
        if lanes is None:
            lanes = self._models[node.model] = _Lanes()
            self._fronts.clear()
            self._newcomers_fronts.clear()
        self._lanes[node.slot] = lanes.of_newcomer if node.newcomer else lanes.everybody
        self.change(node)

    def change(self, node: PoolNode) -> None:
        """What is free of a node has changed, and its version with it: it enters its lanes anew, behind its equals."""
        whole, rank = node.whole, -1
        for lane in self._lanes[node.slot]:
            if lane.devices > whole:
                break
            if rank < 0:
                rank = self.rank(node) if node.tenants else self._came[node.slot]
                entry = (node, node.version)
            bucket = lane.buckets.get(rank)
            if bucket:
                bucket.append(entry)
            else:
                lane.open(bucket, entry, rank)
        if rank >= 0:
            self._patience -= 1
            if not self._patience:
                self._sweep()

    def _sweep(self) -> None:
        """Let go of what is stale, when as many nodes have entered lanes as there were in them."""
        lanes = [lane for one in self._models.values() for lane in one.of_newcomer]
        self._patience = _SLACK + sum(lane.sweep() for lane in lanes)

    def best(
        self, request: Request, now: Instant, newcomers: bool, local: Sequence[tuple[PoolNode, float]]
    ) -> PoolNode | Unsure | None:
        """The node that gets the request. `local` are nodes with what holding its inputs is worth to each."""
        fronts = (self._newcomers_fronts if newcomers else self._fronts).get(request.lanes)
        fronts = fronts or self._lanes_for(request, newcomers)
        if fronts is None or request.milli < WHOLE_MILLI:
            return UNSURE
        best, best_rank, patience, is_usual = None, -1, SKIPPED_MAX, request.is_usual
        if local:
            best, best_rank = _of_local(self.rank, request, now, local, newcomers=newcomers)
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
                    lane.ranks ^= 1 << rank
                    ranks ^= 1 << rank
                    continue
                if rank == best_rank and best is not None and version > best.version:
                    break
                if suits_besides(node, request) if is_usual and node.is_usual else suits(node, request, now):
                    best, best_rank = node, rank
                    break
                other, patience = _behind(bucket, request, now, best if rank == best_rank else None, patience)
                if patience < 0:
                    return UNSURE
                if other is not None:
                    best, best_rank = other, rank
                    break
                ranks ^= 1 << rank
        return best

    def _lanes_for(self, request: Request, newcomers: bool) -> list[_Lane] | None:
        """The lanes in which a node for this request may stand; None when they are too many. Nodes that mix models
        stand in those of no model."""
        models, devices = request.lanes
        names = [name for name in (*models, "") if name in self._models] if models else list(self._models)
        if len(names) > MODELS_MAX:
            return None
        found = [
            self._models[name].lane(devices, newcomers=newcomers) or self._open(name, devices, newcomers=newcomers)
            for name in names
        ]
        fronts = self._newcomers_fronts if newcomers else self._fronts
        if len(fronts) >= FRONTS_MAX:
            fronts.clear()
        fronts[request.lanes] = found
        return found

    def _open(self, model: str, devices: int, *, newcomers: bool) -> _Lane:
        lane = _Lane(devices)
        able = [one for one in self._nodes if one and one.model == model and one.whole >= devices]
        for node in sorted(able, key=lambda one: one.version):
            if node.newcomer or not newcomers:
                lane.enter((node, node.version), self.rank(node))
        self._models[model].add(lane, newcomers=newcomers)
        return lane


def _behind(
    bucket: Bucket, request: Request, now: Instant, best: PoolNode | None, patience: int
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
    request: Request,
    now: Instant,
    local: Iterable[tuple[PoolNode, float]],
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
