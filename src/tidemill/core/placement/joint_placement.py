"""Many requests and many nodes at once: who goes where, so that all together are best off.

An auction: requests without a node bid for the one that is worth most to them beyond its price, by so much that the
second best would be as good; the highest bid gets the node and raises its price, and who had it bids again. A request
for which every node has become dearer than it is worth goes without. What is reached is within `step` times the number
of requests of the best there is.
"""

import numpy as np

from tidemill.core.placement.policies import Floats, Slots

STEP_SHARE = 0.005
"""The least raise of a bid, as a share of the largest value."""


def place_jointly(values: Floats, step: float | None = None) -> Slots:
    """For each row, the column it gets, or -1. A value is what a request is worth on a node, above 0 where it may go
    there and minus infinity where it must not. A column is given once."""
    requests, nodes = values.shape
    chosen, holders = np.full(requests, -1, np.intp), np.full(nodes, -1, np.intp)
    allowed = np.isfinite(values) & (values > 0)
    if not allowed.any():
        return chosen
    raise_by = step if step is not None else STEP_SHARE * float(values[allowed].max())
    prices = np.zeros(nodes)
    bidders = np.flatnonzero(allowed.any(1))
    while len(bidders):
        wanted, bids, worth = _bids(values[bidders], prices, raise_by)
        bidders, wanted, bids = bidders[worth], wanted[worth], bids[worth]
        order = np.argsort(bids, kind="stable")  # of several bids for a node, the highest is written last
        winners = np.full(nodes, -1, np.intp)
        winners[wanted[order]] = bidders[order]
        prices[wanted[order]] = bids[order]
        won = np.unique(wanted)
        outbid = holders[won]
        chosen[outbid[outbid >= 0]] = -1
        holders[won] = winners[won]
        chosen[winners[won]] = won
        bidders = np.concatenate((bidders[chosen[bidders] < 0], outbid[outbid >= 0]))
    return chosen


def _bids(values: Floats, prices: Floats, raise_by: float) -> tuple[Slots, Floats, Slots]:
    """The node each row wants, what it bids, and which rows still want any."""
    gains = values - prices
    rows = np.arange(len(values))
    wanted = np.argmax(gains, 1)
    best = gains[rows, wanted]
    gains[rows, wanted] = -np.inf
    second = np.maximum(gains.max(1), 0.0)  # to go without is worth nothing
    return wanted, prices[wanted] + best - second + raise_by, np.flatnonzero(best > 0)
