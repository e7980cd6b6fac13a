"""What tasks cost at each node, and at which nodes a task would cost more than it may.

Whether a node is too expensive depends on its price and on its speed. It is estimated for all nodes at once; where the
estimate is too close to the limit, the node's exact terms decide, so that the answer is always theirs.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias
from uuid import UUID

import numpy as np

from tidemill.core.jobs.kinds.bounds import OPERATIONS_PER_CORE_S
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.placement.demand import Demand
from tidemill.core.placement.policies import Floats
from tidemill.core.placement.supply import PLAUSIBLE_MS, Seller
from tidemill.core.placement.task_demand import TaskDemand
from tidemill.core.settlement.pay import HOUR_MS, ONE_PPM, PayTerms, RewardPlan, cost_max_uc

REMEMBERED_MAX = 100_000
"""Terms of a node and a shape of task; then all are forgotten."""

TOO_DEAR_MAX = 4_000_000
"""How many nodes are remembered as too expensive for some shape of task, all shapes together."""

CostKey: TypeAlias = tuple[Needs, int]
"""What decides what a task costs at a node, and the most that it may cost."""

CLOSE_SHARE = 1e-9
"""An estimate is right within this share, besides what is rounded up."""

CLOSE_UC = 4

_NOBODY: frozenset[UUID] = frozenset()


def cost_key(task_demand: TaskDemand, limit_uc: int) -> CostKey:
    return task_demand.needs, limit_uc


class CostLimits:
    """Which nodes were found to be too expensive for which tasks. Everything is forgotten when a node has changed."""

    def __init__(self) -> None:
        self._too_dear: dict[CostKey, frozenset[UUID]] = {}
        """The nodes at which tasks of a key would cost more than they may; none before they were looked for."""
        self._narrowed: dict[tuple[Demand, CostKey], Demand] = {}
        """Demands of this batch without those nodes (4.4 × where two thirds of 10,000 nodes are too expensive)."""

    def begin(self) -> None:
        """A batch begins: the demands of the last one do not come again."""
        self._narrowed.clear()

    def forget(self) -> None:
        self._too_dear.clear()
        self._narrowed.clear()

    def too_dear(self, key: CostKey) -> frozenset[UUID]:
        return self._too_dear.get(key, _NOBODY)

    def note(self, key: CostKey, too_dear: frozenset[UUID], nodes: int) -> None:
        """These of so many nodes are too expensive."""
        if (len(self._too_dear) + 1) * max(1, nodes) > TOO_DEAR_MAX:
            self._too_dear.clear()
        self._too_dear[key] = too_dear

    def within(self, demand: Demand, key: CostKey) -> Demand:
        """The demand without the nodes that are known to be too expensive for it."""
        too_dear = self._too_dear.get(key)
        if not too_dear:
            return demand
        narrowed = self._narrowed.get((demand, key))
        if narrowed is None:
            narrowed = replace(demand, excluded_nodes=too_dear | demand.excluded_nodes)
            self._narrowed[demand, key] = narrowed
        return narrowed


class Prices:
    """The current prices of nodes; made anew when a node has changed."""

    def __init__(self, sellers: Iterable[Seller], plan: RewardPlan) -> None:
        self._plan = plan
        self._sellers = list(sellers)
        """Columns are indexed as this is."""
        self._hourly_uc = np.array([float(seller.candidate.price_uc) for seller in self._sellers])
        """What an hour of one device costs."""
        sizes = np.array([seller.size for seller in self._sellers], float).reshape(-1, 3)
        self._devices, self._cores, self._memory_mib = np.maximum(1.0, sizes.T)
        """How much each machine has. One without GPUs is one device."""
        self._references = np.array([seller.reference_ops_per_s for seller in self._sellers])
        """Operations a second by which work on a device is paid."""
        self._terms: dict[tuple[UUID, UUID], tuple[PayTerms, int]] = {}
        """By node and demand: the terms, and the most that the task costs (1.4 ×)."""

    def terms(self, seller: Seller, task_demand: TaskDemand) -> tuple[PayTerms, int]:
        """The terms of the task at a node, and the most that it costs there."""
        terms = self._terms.get((seller.node_id, task_demand.id))
        if terms is None:
            pay_terms = seller.terms(task_demand.needs)
            if len(self._terms) >= REMEMBERED_MAX:
                self._terms.clear()
            terms = pay_terms, cost_max_uc(self._plan, pay_terms)
            self._terms[seller.node_id, task_demand.id] = terms
        return terms

    def too_dear(self, task_demand: TaskDemand, limit_uc: int) -> frozenset[UUID]:
        """All nodes at which the task would cost more than this."""
        costs_uc = self._estimates(task_demand)
        sure = costs_uc * (1 - CLOSE_SHARE) > limit_uc
        rounded_uc = CLOSE_UC + 2 * task_demand.needs.seconds // 3_600  # a price of an hour was rounded up
        close = ~sure & (costs_uc * (1 + CLOSE_SHARE) + rounded_uc > limit_uc)
        dear = {self._sellers[index].node_id for index in np.flatnonzero(sure).tolist()}
        for index in np.flatnonzero(close).tolist():
            if self.terms(self._sellers[index], task_demand)[1] > limit_uc:
                dear.add(self._sellers[index].node_id)
        return frozenset(dear)

    def _estimates(self, task_demand: TaskDemand) -> Floats:
        needs = task_demand.needs
        if needs.seconds:
            times_ms: Floats = np.full(len(self._sellers), needs.seconds * 1000.0)
        elif needs.devices:
            times_ms = np.ceil(needs.operations / np.maximum(1.0, self._references * needs.devices) * 1000)
        else:
            cores_s = needs.operations / (OPERATIONS_PER_CORE_S * needs.cores)
            times_ms = np.full(len(self._sellers), np.ceil(cores_s * 1000))
        of_machine = np.maximum(needs.cores / self._cores, needs.memory_mib / self._memory_mib)
        shares = np.maximum(float(needs.devices), self._devices * np.minimum(1.0, of_machine))
        rewards: Floats = self._hourly_uc * shares * np.clip(times_ms, 1, PLAUSIBLE_MS) / HOUR_MS
        least_uc = np.where(self._hourly_uc > 0, self._plan.minimum_uc, 0)
        return np.maximum(rewards, least_uc) * (1 + self._plan.commission_ppm / ONE_PPM)
