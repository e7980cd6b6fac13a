"""The pool of candidates: where each demand goes, what is then left, and why.

A pool is a cache. It is filled with candidates, told of changes, and may be dropped and refilled at any moment. The
quick path (`Ranking`) and the exact path (`Columns`) give the answer of the rule: 6 µs and 0.06 ms among 100,000 nodes,
for which the rule takes 160 ms. The caller brings time and chance.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from uuid import UUID

import numpy as np

from tidemill.core.clock import Instant
from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.placement.demand import Demand, RankingKey
from tidemill.core.placement.index.columns import Columns
from tidemill.core.placement.index.fits import FitIndex
from tidemill.core.placement.index.node import PoolNode
from tidemill.core.placement.index.ranking import UNSURE, Ranking
from tidemill.core.placement.policies import Floats, Policy, RankPolicy, Slots
from tidemill.core.placement.rule import (
    LOCALITY_MILLI,
    LOCALITY_WEIGHT,
    NEWCOMERS_SHARE,
    PlacementObjection,
    PolicyAssessment,
    Reservation,
    objections,
)

GONE = -1
"""The version of a node that has left the pool."""

_ROOM_TO_GROW = 64

EXCLUDED_MAX = 64
"""For how many sets of excluded nodes the slots are remembered."""

_NOWHERE: set[int] = set()

_new_tuple = tuple.__new__
"""Skips the keyword handling of a named tuple (1.01 ×)."""


class CandidatePool:
    """A `PlacementPool` by index."""

    def __init__(
        self, policies: Mapping[str, Policy], median_prices: MedianPrices, newcomers_share: float = NEWCOMERS_SHARE
    ) -> None:
        self._median_prices, self._newcomers_share = median_prices, newcomers_share
        self._rank_policies = {name: policy for name, policy in policies.items() if isinstance(policy, RankPolicy)}
        self._fit_policies = {name: policy for name, policy in policies.items() if not isinstance(policy, RankPolicy)}
        self._by_id: dict[UUID, PoolNode] = {}
        """Every node of the pool: what is free of it is right at any moment."""
        self._columns = Columns(_ROOM_TO_GROW, 8)
        """The same nodes by slot, behind by those in `_changed`."""
        self._vacant = list(range(_ROOM_TO_GROW - 1, -1, -1))
        """The slots without a node; the last is taken first."""
        self._version = 0
        """The number of the last change of any node."""
        self._home = object()
        """The token of this pool's nodes; a node that has left has none."""
        self._holders: dict[str, set[int]] = {}
        """By digest, the slots of nodes whose candidates list it."""
        self._noted_holders: dict[str, set[int]] = {}
        """By digest, the slots of nodes that hold it besides."""
        self._excluded: dict[frozenset[UUID], list[int]] = {}
        """The slots of sets of excluded nodes. Where thousands are too expensive, a fit policy takes 3.4 × without."""
        self._changed: list[PoolNode] = []
        """Nodes whose last change the columns do not have yet; each is listed once. Changing the columns with every
        placement would take 2.0 ×."""
        self._rankings: dict[RankingKey, Ranking] = {}
        """By policy and by what costs follow from; made when it is first asked for."""
        self._changes: list[Callable[[PoolNode], None]] = []
        """What every ranking does when a node has changed; 1.04 × if it is looked up each time."""
        self._fits: dict[str, FitIndex] = {}
        """By policy; made when the policy is first asked for."""

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, candidate: Candidate) -> None:
        before = self._by_id.get(candidate.node_id)
        if before is None and (not self._vacant or len(candidate.devices) > self._columns.width):
            self._grow(len(candidate.devices))
        if before is not None and len(candidate.devices) > self._columns.width:
            self.remove(candidate.node_id)
            return self.put(candidate)
        self._forget_cached(before)
        if before is not None:
            before.version, before.home = GONE, None
        node = PoolNode(self._vacant.pop() if before is None else before.slot, candidate, self._next())
        node.home = self._home
        self._by_id[node.node_id] = node
        if before is None:
            self._membership_changed()
        self._columns.put(node)
        for digest in candidate.cached:
            self._holders.setdefault(digest, set()).add(node.slot)
        for ranking in self._rankings.values():
            ranking.put(node)
        self._stale(node)
        return None

    def remove(self, node_id: UUID) -> None:
        node = self._by_id.pop(node_id, None)
        if node is None:
            return
        self._forget_cached(node)
        self._membership_changed()
        self._columns.drop(node.slot)
        node.version, node.home = GONE, None
        self._stale(node)
        self._vacant.append(node.slot)

    def note_cached(self, holders: Mapping[str, Iterable[UUID]]) -> None:
        self._noted_holders = {
            digest: {self._by_id[node_id].slot for node_id in node_ids if node_id in self._by_id}
            for digest, node_ids in holders.items()
        }

    def place(self, demand: Demand, now: Instant, draw: float = 1.0) -> Reservation[PoolNode] | None:
        if draw < self._newcomers_share and (choice := self._best(demand, now, newcomers=True)):
            return self._take(choice[0], demand, choice[1])
        ranking = self._rankings.get(demand.quick.ranking)
        if ranking is not None and not demand.inputs:  # the direct way, for most demands: see `Ranking.change`
            node = ranking.best(demand, now, False, ())
            if node is None:
                return None
            if node is not UNSURE:
                return self._take(node, demand)
        choice = self._best(demand, now, newcomers=False)
        return None if choice is None else self._take(choice[0], demand, choice[1])

    def place_exactly(self, demand: Demand, now: Instant) -> Reservation[PoolNode] | None:
        """Like `place` without newcomers, by comparing the demand with every node."""
        choice = self._exactly(demand, now, newcomers=False)
        return None if choice is None else self._take(choice[0], demand, choice[1])

    def release(self, placed: Reservation[PoolNode]) -> bool:
        _, devices, demand, node = placed
        if node.home is not self._home:  # it has left, or belongs to an earlier pool
            return False
        node.give_back(demand, devices)
        self._version = node.version = self._version + 1
        if not node.is_noted:
            self._stale(node)
        for change in self._changes:
            change(node)
        return True

    def against(self, demand: Demand, now: Instant) -> Iterator[tuple[UUID, tuple[PlacementObjection, ...]]]:
        for node in self._by_id.values():
            yield node.node_id, tuple(objections(node.left, demand, now))

    def ranked(self, demand: Demand, now: Instant, most: int) -> Iterator[UUID]:
        rest = demand
        for _ in range(most):
            choice = self._best(rest, now, newcomers=False)
            if choice is None:
                return
            node_id = choice[0].node_id
            yield node_id
            rest = replace(rest, excluded_nodes=rest.excluded_nodes | {node_id})

    def counts_costs(self, policy: str) -> bool:
        return policy in self._fit_policies

    def explain(self, demand: Demand, now: Instant, node_id: UUID) -> PolicyAssessment | None:
        node = self._by_id.get(node_id)
        if node is None:
            return None
        against = tuple(objections(node.left, demand, now))
        return PolicyAssessment(node_id, against, {} if against else self._terms(node, demand))

    def _best(self, demand: Demand, now: Instant, *, newcomers: bool) -> tuple[PoolNode, int] | None:
        ranking = self._rankings.get(demand.quick.ranking) or self._new_ranking(demand.quick.ranking)
        if ranking is not None:
            local = list(self._local(demand, LOCALITY_WEIGHT)) if demand.inputs else ()
            node = ranking.best(demand, now, newcomers, local)
            if node is None:
                return None
            if node is not UNSURE:
                return node, -1
        return self._exactly(demand, now, newcomers=newcomers)

    def _exactly(self, demand: Demand, now: Instant, *, newcomers: bool) -> tuple[PoolNode, int] | None:
        ranking = self._rankings.get(demand.quick.ranking) or self._new_ranking(demand.quick.ranking)
        self._flush()
        excluded = self._slots_of(demand.excluded_nodes)
        if ranking is not None:
            return self._highest(ranking, self._columns.suiting(demand, now, excluded, newcomers), demand)
        mask = self._columns.allowed(demand, now, excluded)
        if newcomers:
            mask &= self._columns.newcomer
        fit = self._fit(demand.policy).best(demand, mask, self._bonus(demand, LOCALITY_MILLI))
        return None if fit is None else (self._node(fit[0]), fit[1])

    def _highest(self, ranking: Ranking, slots: Slots, demand: Demand) -> tuple[PoolNode, int] | None:
        """The highest rank, and among equals the one that was changed longest ago."""
        if not len(slots):
            return None
        ranks = ranking.column[slots]
        for node, bonus in self._local(demand, LOCALITY_WEIGHT):
            ranks[slots == node.slot] = ranking.rank(node, bonus)
        slots = slots[ranks == ranks.max()]
        return self._node(int(slots[np.argmin(self._columns.version[slots])])), -1

    def _take(self, node: PoolNode, demand: Demand, device: int = -1) -> Reservation[PoolNode]:
        devices = node.take(demand, device)
        self._version = node.version = self._version + 1
        if not node.is_noted:
            self._stale(node)
        for change in self._changes:
            change(node)
        return _new_tuple(Reservation, (node.node_id, devices, demand, node))

    def _stale(self, node: PoolNode) -> None:
        if not node.is_noted:
            node.is_noted = True
            self._changed.append(node)

    def _flush(self) -> None:
        """Bring the columns up to date with the nodes."""
        if not self._changed:
            return
        for node in self._changed:
            node.is_noted = False
            if node.version != GONE:
                self._columns.change(node)
                for ranking in self._rankings.values():
                    ranking.column[node.slot] = ranking.rank(node)
        if self._fits:
            slots = np.array(sorted({node.slot for node in self._changed}), np.intp)
            for fits in self._fits.values():
                fits.change(slots)
        self._changed.clear()

    def _new_ranking(self, key: RankingKey) -> Ranking | None:
        """The ranking of a rank policy that is asked for the first time; None for a fit policy."""
        name, basis = key
        policy = self._rank_policies.get(name)
        if policy is None:
            return None
        ranking = self._rankings[key] = Ranking(policy, self._columns.nodes, self._median_prices.by(basis))
        self._changes.append(ranking.change)
        return ranking

    def _fit(self, name: str) -> FitIndex:
        """The costs under a fit policy. The columns must be up to date."""
        if name not in self._fits:
            self._fits[name] = FitIndex(self._fit_policies[name], self._columns)
        return self._fits[name]

    def _terms(self, node: PoolNode, demand: Demand) -> dict[str, float]:
        policy = self._rank_policies.get(demand.policy)
        if policy is None:
            self._flush()
            return self._fit(demand.policy).terms(demand, node.slot) | self._locality(node, demand, -LOCALITY_MILLI)
        prices = self._median_prices.by(demand.price_basis)
        terms = {**policy.terms(node.candidate, prices), "load": -policy.load_weight * node.load}
        return terms | self._locality(node, demand, LOCALITY_WEIGHT)

    def _locality(self, node: PoolNode, demand: Demand, weight: float) -> dict[str, float]:
        bonus = next((bonus for holder, bonus in self._local(demand, weight) if holder is node), None)
        return {} if bonus is None else {"locality": bonus}

    def _local(self, demand: Demand, weight: float) -> Iterator[tuple[PoolNode, float]]:
        """The nodes that hold some of a demand's inputs, and their bonus: by the share of the bytes."""
        total = max(1, demand.input_bytes)
        held_bytes: Counter[int] = Counter()
        for digest, size_bytes in demand.inputs:
            for slot in self._holders.get(digest, _NOWHERE) | self._noted_holders.get(digest, _NOWHERE):
                held_bytes[slot] += size_bytes
        for slot, size_bytes in held_bytes.items():
            yield self._node(slot), weight * (size_bytes / total)

    def _bonus(self, demand: Demand, weight: float) -> Floats | None:
        if not demand.inputs:
            return None
        bonus = np.zeros(self._columns.capacity)
        for node, worth in self._local(demand, weight):
            bonus[node.slot] = worth
        return bonus

    def _slots_of(self, node_ids: frozenset[UUID]) -> list[int]:
        """The slots of excluded nodes, remembered because many demands exclude the same nodes."""
        slots = self._excluded.get(node_ids)
        if slots is None:
            slots = [self._by_id[node_id].slot for node_id in node_ids if node_id in self._by_id]
            if len(self._excluded) >= EXCLUDED_MAX:
                self._excluded.clear()
            self._excluded[node_ids] = slots
        return slots

    def _membership_changed(self) -> None:
        """Remembered slots may belong to other nodes now."""
        self._excluded.clear()
        self._noted_holders.clear()

    def _node(self, slot: int) -> PoolNode:
        node = self._columns.nodes[slot]
        assert node is not None
        return node

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _forget_cached(self, node: PoolNode | None) -> None:
        if node is None:
            return
        for digest in node.candidate.cached:
            self._holders[digest].discard(node.slot)
            if not self._holders[digest]:
                del self._holders[digest]

    def _grow(self, width: int) -> None:
        """Double the slots; drop what was computed for fewer."""
        grown = Columns(2 * self._columns.capacity, max(width, self._columns.width))
        self._vacant.extend(range(grown.capacity - 1, self._columns.capacity - 1, -1))
        for node in self._by_id.values():
            node.is_noted = False
            grown.put(node)
        self._columns = grown
        self._rankings.clear()
        self._changes.clear()
        self._fits.clear()
        self._changed.clear()
