"""The fit policies' side of a pool: what each shape of request would cost on each node, kept while it is true.

A placement changes one node, so for a shape that was asked for before only the nodes that have changed since are
weighed again. The choice is the lowest cost, and among equals the lowest slot.
"""

from dataclasses import dataclass

import numpy as np

from tidemill.core.placement.demand import Demand, Shape
from tidemill.core.placement.index.columns import Columns, Mask
from tidemill.core.placement.policies import FitPolicy, Floats, Slots

KEPT_MAX_BYTES = 256 * 1024 * 1024


@dataclass
class _Kept:
    """The terms of one shape for every slot, true at a tick; a slot without room costs infinitely much."""

    tick: int
    terms: Floats
    devices: Slots


class FitIndex:
    """One fit policy at work on one pool."""

    def __init__(self, policy: FitPolicy, columns: Columns) -> None:
        self._columns, self._fitting = columns, policy.begin(columns)
        self._tick = 0
        self._changed_at = np.zeros(columns.capacity, np.int64)
        self._kept: dict[Shape, _Kept] = {}
        width = len(self._fitting.names)
        self._kept_max = max(8, KEPT_MAX_BYTES // (columns.capacity * (width + 1) * 8))
        self.change(np.flatnonzero(columns.alive))

    def change(self, slots: Slots) -> None:
        """These nodes have changed, come or gone."""
        self._tick += 1
        self._changed_at[slots] = self._tick
        self._fitting.refresh(slots)

    def best(self, request: Demand, allowed: Mask | None, bonus: Floats | None) -> tuple[int, int] | None:
        """The slot with the lowest cost and the device there, or -1 for the node to choose.

        `allowed` says where it may go, if not everywhere; `bonus` is taken off the costs.
        """
        kept = self._up_to_date(request)
        costs = self._totals(kept, bonus)
        if allowed is not None:
            costs = np.where(allowed, costs, np.inf)
        slot = int(np.argmin(costs))
        return (slot, int(kept.devices[slot])) if costs[slot] < np.inf else None

    def terms(self, request: Demand, slot: int) -> dict[str, float]:
        """What a node that has room would cost, by term."""
        row = self._up_to_date(request).terms[slot] * self._fitting.prices()
        return dict(zip(self._fitting.names, map(float, row), strict=True))

    def _totals(self, kept: _Kept, bonus: Floats | None) -> Floats:
        totals: Floats = kept.terms @ self._fitting.prices() if kept.terms.shape[1] > 1 else kept.terms[:, 0]
        return totals - bonus if bonus is not None else totals

    def _up_to_date(self, request: Demand) -> _Kept:
        kept = self._kept.pop(request.shape, None)
        if kept is None:
            kept = self._unknown()
            stale = np.flatnonzero(self._columns.alive)
        else:
            stale = np.flatnonzero(self._changed_at > kept.tick)
        if self._fitting.lasting:
            self._keep(request.shape, kept)
        kept.tick = self._tick
        if len(stale):
            self._weigh(kept, request, stale)
        return kept

    def _weigh(self, kept: _Kept, request: Demand, slots: Slots) -> None:
        kept.terms[slots] = 0.0
        kept.terms[slots, 0] = np.inf
        roomy = slots[self._columns.room(request, slots)]
        if len(roomy):
            kept.terms[roomy], kept.devices[roomy] = self._fitting.costs(request, roomy)

    def _unknown(self) -> _Kept:
        terms = np.zeros((self._columns.capacity, len(self._fitting.names)))
        terms[:, 0] = np.inf
        return _Kept(0, terms, np.full(self._columns.capacity, -1, np.intp))

    def _keep(self, shape: Shape, kept: _Kept) -> None:
        """The newest come last, so the first is the one to let go."""
        self._kept[shape] = kept
        if len(self._kept) > self._kept_max:
            del self._kept[next(iter(self._kept))]
