"""Many demands and many nodes at once: an assignment that is best for all of them together.

An auction: each demand without a node bids for the node that is worth most to it beyond its price, so high that the
second best would be as good. The highest bid gets the node and raises its price; the previous holder bids again. A
demand for which every node has become more expensive than it is worth goes without. The result is within `step` times
the number of demands of the optimum.
"""

import numpy as np

from tidemill.core.placement.policies import Floats, Slots

STEP_SHARE = 0.005
"""The least raise of a bid, as a share of the largest value."""


def place_jointly(values: Floats, step: float | None = None) -> Slots:
    """For each row, the column it gets, or -1. A value is what a demand is worth on a node: above 0 where it may go,
    and minus infinity where it must not. A column is given once."""
    demands, nodes = values.shape
    chosen, holders = np.full(demands, -1, np.intp), np.full(nodes, -1, np.intp)
    allowed = np.isfinite(values) & (values > 0)
    if not allowed.any():
        return chosen
    raise_by = step if step is not None else STEP_SHARE * float(values[allowed].max())
    prices = np.zeros(nodes)
    bidders = np.flatnonzero(allowed.any(1))
    while len(bidders):
        targets, bids, worth = _bids(values[bidders], prices, raise_by)
        bidders, targets, bids = bidders[worth], targets[worth], bids[worth]
        by_bid = np.argsort(bids, kind="stable")  # of several bids for a node, the highest is written last
        winners = np.full(nodes, -1, np.intp)
        winners[targets[by_bid]] = bidders[by_bid]
        prices[targets[by_bid]] = bids[by_bid]
        won = np.unique(targets)
        outbid = holders[won]
        chosen[outbid[outbid >= 0]] = -1
        holders[won] = winners[won]
        chosen[winners[won]] = won
        bidders = np.concatenate((bidders[chosen[bidders] < 0], outbid[outbid >= 0]))
    return chosen


def _bids(values: Floats, prices: Floats, raise_by: float) -> tuple[Slots, Floats, Slots]:
    """The node each row bids for, its bid, and which rows still bid."""
    gains = values - prices
    rows = np.arange(len(values))
    targets = np.argmax(gains, 1)
    best = gains[rows, targets]
    gains[rows, targets] = -np.inf
    second = np.maximum(gains.max(1), 0.0)  # going without is worth nothing
    return targets, prices[targets] + best - second + raise_by, np.flatnonzero(best > 0)
