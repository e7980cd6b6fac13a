"""Fit policies on a pool: what each shape of demand would cost on each node, kept while it is valid.

A placement changes one node, so for a shape seen before only the nodes changed since are weighed again; weighing all
would take 2.3 × for the openb lists. The choice is
the lowest cost, and among equals the lowest slot.
"""

from dataclasses import dataclass

import numpy as np

from tidemill.core.placement.demand import Demand, Shape
from tidemill.core.placement.index.columns import Columns, Mask
from tidemill.core.placement.policies import FitPolicy, Floats, Slots, total_costs

KEPT_MAX_BYTES = 256 * 1024 * 1024
"""For the costs of all shapes together."""


@dataclass
class _ShapeCosts:
    """What one shape costs in every slot."""

    tick: int
    """When they were right; slots changed since are weighed again."""
    terms: Floats
    """By slot and term; the first term of a slot without room is infinite."""
    devices: Slots
    """The device for a part of one, or -1 for the node to choose."""


class FitIndex:
    """One fit policy applied to one pool."""

    def __init__(self, policy: FitPolicy, columns: Columns) -> None:
        self._columns = columns
        """The pool's own."""
        self._fitting = policy.begin(columns)
        """What the policy remembers of this pool."""
        self._tick = 0
        """How often nodes have changed."""
        self._changed_at = np.zeros(columns.capacity, np.int64)
        """By slot, the tick of its last change."""
        self._costs: dict[Shape, _ShapeCosts] = {}
        """By shape, the one used longest ago first."""
        width = len(self._fitting.names)
        self._shapes_max = max(8, KEPT_MAX_BYTES // (columns.capacity * (width + 1) * 8))
        """How many shapes fit into the memory that is set aside."""
        self.change(np.flatnonzero(columns.alive))

    def change(self, slots: Slots) -> None:
        """These nodes have changed, come or gone."""
        self._tick += 1
        self._changed_at[slots] = self._tick
        self._fitting.refresh(slots)

    def best(self, demand: Demand, allowed: Mask | None, bonus: Floats | None) -> tuple[int, int] | None:
        """The slot with the lowest cost and the device there, or -1 for the node to choose.

        `allowed` says where it may go, if not everywhere; `bonus` is subtracted from the costs.
        """
        shape_costs = self._up_to_date(demand)
        costs = self._totals(shape_costs, bonus)
        if allowed is not None:
            costs = np.where(allowed, costs, np.inf)
        slot = int(np.argmin(costs))
        return (slot, int(shape_costs.devices[slot])) if costs[slot] < np.inf else None

    def terms(self, demand: Demand, slot: int) -> dict[str, float]:
        """What a node that has room would cost, by term."""
        row = self._up_to_date(demand).terms[slot] * self._fitting.prices()
        return dict(zip(self._fitting.names, map(float, row), strict=True))

    def _totals(self, shape_costs: _ShapeCosts, bonus: Floats | None) -> Floats:
        totals = total_costs(shape_costs.terms, self._fitting.prices())
        return totals - bonus if bonus is not None else totals

    def _up_to_date(self, demand: Demand) -> _ShapeCosts:
        shape_costs = self._costs.pop(demand.shape, None)
        if shape_costs is None:
            shape_costs = self._unknown()
            stale = np.flatnonzero(self._columns.alive)
        else:
            stale = np.flatnonzero(self._changed_at > shape_costs.tick)
        if self._fitting.lasting:
            self._keep(demand.shape, shape_costs)
        shape_costs.tick = self._tick
        if len(stale):
            self._weigh(shape_costs, demand, stale)
        return shape_costs

    def _weigh(self, shape_costs: _ShapeCosts, demand: Demand, slots: Slots) -> None:
        shape_costs.terms[slots] = 0.0
        shape_costs.terms[slots, 0] = np.inf
        roomy = slots[self._columns.room(demand, slots)]
        if len(roomy):
            shape_costs.terms[roomy], shape_costs.devices[roomy] = self._fitting.costs(demand, roomy)

    def _unknown(self) -> _ShapeCosts:
        terms = np.zeros((self._columns.capacity, len(self._fitting.names)))
        terms[:, 0] = np.inf
        return _ShapeCosts(0, terms, np.full(self._columns.capacity, -1, np.intp))

    def _keep(self, shape: Shape, shape_costs: _ShapeCosts) -> None:
        """The newest come last, so the first is the one to drop."""
        self._costs[shape] = shape_costs
        if len(self._costs) > self._shapes_max:
            del self._costs[next(iter(self._costs))]
