"""The common case, quickly: nodes wait in lanes, the best in front, and a request looks at the front of a few.

A node's rank is its score in the policy's steps: who differs by less is equal, and equals take turns, so that who was
changed longest ago comes first. There is a lane for each model and each number of whole devices that was asked for;
a node stands in every lane that it has enough free devices for, in the bucket of its rank. Whoever comes first is asked
whether it suits, so the answer is that of the exact path. After too many that do not suit, the exact path is asked.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Market
from tidemill.core.placement.node import PoolNode
from tidemill.core.placement.policies import RankPolicy
from tidemill.core.placement.request import WHOLE_MILLI, Request
from tidemill.core.placement.why_not import suits

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


class Unsure:
    """The front of the lanes holds too many nodes that do not suit."""


UNSURE = Unsure()


class _Lane:
    """Nodes with their versions by rank, in the order of their last changes. Bit n of `ranks` is set when the bucket of
    rank n may hold somebody. An entry whose node has changed since is stale."""

    __slots__ = ("buckets", "count", "count_max", "devices", "ranks")

    def __init__(self, devices: int) -> None:
        self.devices, self.ranks = devices, 0
        self.buckets: dict[int, Bucket] = {}
        self.count, self.count_max = 0, _SLACK

    def enter(self, entry: Entry, rank: int) -> None:
        bucket = self.buckets.get(rank)
        if bucket:
            bucket.append(entry)
        else:
            self.buckets[rank] = deque((entry,))
            self.ranks |= 1 << rank
        self.count += 1
        if self.count > self.count_max:
            self._sweep()

    def _sweep(self) -> None:
        """Let go of what is stale, when there is more of it than of anything else."""
        self.ranks, self.count = 0, 0
        for rank, bucket in list(self.buckets.items()):
            fresh = deque(entry for entry in bucket if entry[0].version == entry[1])
            if fresh:
                self.buckets[rank] = fresh
                self.ranks |= 1 << rank
                self.count += len(fresh)
            else:
                del self.buckets[rank]
        self.count_max = 2 * self.count + _SLACK


class Ranking:
    """The ranks of all nodes under one policy. `nodes` is the pool's own list."""

    def __init__(self, policy: RankPolicy, nodes: Nodes, market: Market) -> None:
        self._policy, self._nodes, self._market = policy, nodes, market
        self._weight, self._steps = policy.load_weight, policy.steps
        assert 0 < self._steps <= STEPS_MAX
        self._rank_max = int((SCORE_HIGH - SCORE_LOW) * self._steps)
        self._bases = [0.0] * len(nodes)
        self.column: NDArray[np.int16] = np.zeros(len(nodes), np.int16)
        self._lanes: dict[str, list[_Lane]] = {}
        self._newcomers: dict[str, list[_Lane]] = {}
        self._fronts: dict[tuple[frozenset[str], int, bool], list[_Lane]] = {}
        for node in filter(None, nodes):
            self.put(node)
            self.column[node.slot] = self.rank(node)

    def rank(self, node: PoolNode, bonus: float = 0.0) -> int:
        """What counts of a score; `bonus` is what holding a request's inputs is worth."""
        of_devices, of_processor = node.used_milli / node.total_milli, 1.0 - node.cpu_milli / node.cpu_total
        load = of_devices if of_devices > of_processor else of_processor
        rank = int((self._bases[node.slot] - self._weight * load + bonus - SCORE_LOW) * self._steps + 0.5)
        return 0 if rank < 0 else self._rank_max if rank > self._rank_max else rank

    def put(self, node: PoolNode) -> None:
        """A node has come, or its facts have changed."""
        self._bases[node.slot] = sum(self._policy.terms(node.candidate, self._market).values())
        if node.model not in self._lanes:
            self._lanes[node.model], self._newcomers[node.model] = [], []
            self._fronts.clear()
        self.change(node)

    def change(self, node: PoolNode) -> None:
        """What is free of a node has changed, and its version with it: it enters its lanes anew, behind its equals."""
        whole, rank = node.whole, -1
        lanes = self._lanes[node.model]
        for lane in lanes + self._newcomers[node.model] if node.newcomer else lanes:
            if lane.devices <= whole:
                if rank < 0:
                    rank, entry = self.rank(node), (node, node.version)
                lane.enter(entry, rank)

    def best(
        self, request: Request, now: Instant, *, newcomers: bool, local: Sequence[tuple[PoolNode, float]]
    ) -> PoolNode | Unsure | None:
        """The node that gets the request. `local` are nodes with what holding its inputs is worth to each."""
        if request.milli < WHOLE_MILLI or len(request.models or self._lanes) > MODELS_MAX:
            return UNSURE
        skipped = 0
        best, best_rank = _of_local(self.rank, request, now, local, newcomers=newcomers) if local else (None, -1)
        fronts = self._fronts.get((request.models, request.devices, newcomers))
        for lane in self._lanes_for(request, newcomers=newcomers) if fronts is None else fronts:
            ranks = lane.ranks
            while (rank := ranks.bit_length() - 1) >= best_rank and ranks:
                bucket = lane.buckets[rank]
                while bucket and bucket[0][0].version != bucket[0][1]:
                    bucket.popleft()
                    lane.count -= 1
                if not bucket:
                    lane.ranks ^= 1 << rank
                for node, version in bucket:
                    if rank == best_rank and best is not None and version > best.version:
                        break
                    if node.version == version and suits(node, request, now):
                        best, best_rank = node, rank
                        break
                    skipped += 1
                    if skipped > SKIPPED_MAX:
                        return UNSURE
                if rank == best_rank:
                    break
                ranks ^= 1 << rank
        return best

    def _lanes_for(self, request: Request, *, newcomers: bool) -> list[_Lane]:
        """The lanes in which a node for this request may stand. Nodes that mix models stand in those of no model."""
        lanes, devices = self._newcomers if newcomers else self._lanes, request.devices
        models = (*request.models, "") if request.models and devices else tuple(lanes)
        found = []
        for model in models:
            if model in lanes:
                lane = next((one for one in lanes[model] if one.devices == devices), None)
                found.append(lane or self._open(model, devices, newcomers=newcomers))
        if len(self._fronts) >= FRONTS_MAX:
            self._fronts.clear()
        self._fronts[request.models, devices, newcomers] = found
        return found

    def _open(self, model: str, devices: int, *, newcomers: bool) -> _Lane:
        lane = _Lane(devices)
        able = [one for one in self._nodes if one and one.model == model and one.whole >= devices]
        for node in sorted(able, key=lambda one: one.version):
            if node.newcomer or not newcomers:
                lane.enter((node, node.version), self.rank(node))
        (self._newcomers if newcomers else self._lanes)[model].append(lane)
        return lane


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
