"""Policies: which of the nodes that could take a task gets it.

A policy is one file and one entry point of the group `tidemill.placement_policies`: a function from the settings to the
policy. There are two kinds. A `RankPolicy` scores a node by itself, as a sum of named terms, higher first; the pool
keeps its scores up to date node by node. A `FitPolicy` weighs what a demand would leave behind, lower first; the pool
asks it again about nodes that have changed. Both see only nodes without an objection.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.placement.demand import Demand

if TYPE_CHECKING:
    from tidemill.core.placement.index.columns import Columns

Floats = NDArray[np.float64]
Slots = NDArray[np.intp]
Numbers = NDArray[Any]
"""Whole numbers of any width."""


@runtime_checkable
class RankPolicy(Protocol):
    """A node's score is the sum of its terms, less `load_weight` times the share of it that is busy.

    Scores lie between -0.5 and 1.5; those beyond count as the bound."""

    @property
    def load_weight(self) -> float: ...

    @property
    def steps(self) -> int:
        """How many steps a unit of score has. Smaller differences make equals, and equals take turns."""
        ...

    def terms(self, candidate: Candidate, median_prices: MedianPrices) -> Mapping[str, float]:
        """What speaks for a node, each term under its name. Must not depend on what is free of it."""
        ...


class FitScorer(Protocol):
    """A fit policy applied to the columns of one pool."""

    @property
    def names(self) -> Sequence[str]:
        """The terms' names, in the order of the columns that `costs` returns."""
        ...

    @property
    def lasting(self) -> bool:
        """Whether the costs of a node that has not changed may be remembered."""
        ...

    def refresh(self, slots: Slots) -> None:
        """These nodes have changed, come or gone."""
        ...

    def costs(self, demand: Demand, slots: Slots) -> tuple[Floats, Slots]:
        """For each of these nodes, which all have room: its terms in a row, and the device for a part of one.

        The device is -1 where the node itself is to choose."""
        ...

    def prices(self) -> Floats:
        """The current weight of each term; a node's cost is the weighted sum of its terms."""
        ...


def total_costs(terms: Floats, prices: Floats) -> Floats:
    """The cost of each node: its terms, weighed. They are added column by column: a product of matrices may round a row
    in another way when other rows stand beside it, and then equal nodes would differ."""
    totals: Floats = terms[:, 0] * prices[0]
    for column, price in enumerate(prices[1:], start=1):
        totals += terms[:, column] * price
    return totals


@runtime_checkable
class FitPolicy(Protocol):
    """The cost of a placement depends on the demand and on everything that is left."""

    def begin(self, columns: "Columns") -> FitScorer: ...


Policy = RankPolicy | FitPolicy
