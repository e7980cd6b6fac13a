"""The policy `fast`: a near, idle and able node, and a cheap one among those.

Latency, idleness, capability and cost are each scaled to 0–1 and weighed by settings, which sum to 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.settings.tree import Settings

HALF_LATENCY_MS = 50
"""A node at this latency gets half of the latency weight."""

RATIO_LOW, RATIO_HIGH = 0.5, 2.0
"""The median price over the node's price counts between these."""


@dataclass(frozen=True)
class FastPolicy:
    latency_weight: float = 0.4
    load_weight: float = 0.3
    capability_weight: float = 0.2
    cost_weight: float = 0.1
    steps: int = 1000

    def terms(self, candidate: Candidate, median_prices: MedianPrices) -> Mapping[str, float]:
        cheapness = (median_prices.median_over(candidate, RATIO_LOW, RATIO_HIGH) - RATIO_LOW) / (RATIO_HIGH - RATIO_LOW)
        return {
            "latency": self.latency_weight * HALF_LATENCY_MS / (HALF_LATENCY_MS + candidate.latency_ms),
            "idle": self.load_weight,
            "capability": self.capability_weight * candidate.capability,
            "cost": self.cost_weight * cheapness,
        }


def from_settings(settings: Settings) -> FastPolicy:
    weights = settings.fast_policy
    return FastPolicy(weights.latency_weight, weights.load_weight, weights.capability_weight, weights.cost_weight)
