"""The policy `value`, the default: the best node for the money.

Reputation, success, price and NVLink are each scaled to 0–1 and weighed by settings; a busy node and a slow link count
against it. A price is compared with the median of the same model, so that cheap models do not beat good prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.placement.candidate import NVLINK_MAX_PCT, Candidate, MedianPrices
from tidemill.core.settings.tree import Settings

LOAD_WEIGHT = 0.1
LINK_WEIGHT = 0.1


@dataclass(frozen=True)
class ValuePolicy:
    """The weights of the four terms that sum to 1, and where price ratios and latencies end."""

    reputation_weight: float = 0.4
    success_weight: float = 0.3
    price_weight: float = 0.2
    nvlink_weight: float = 0.1
    price_ratio_low: float = 0.5
    price_ratio_high: float = 2.0
    slow_ms: float = 10_000.0
    load_weight: float = LOAD_WEIGHT
    steps: int = 1000

    def terms(self, candidate: Candidate, median_prices: MedianPrices) -> Mapping[str, float]:
        low, high = self.price_ratio_low, self.price_ratio_high
        cheapness = (median_prices.median_over(candidate, low, high) - low) / (high - low)
        return {
            "reputation": self.reputation_weight * candidate.reputation / 1000,
            "success": self.success_weight * candidate.success,
            "price": self.price_weight * cheapness,
            "nvlink": self.nvlink_weight * candidate.nvlink_pct / NVLINK_MAX_PCT,
            "link": -LINK_WEIGHT * min(1.0, candidate.latency_ms / self.slow_ms),
        }


def from_settings(settings: Settings) -> ValuePolicy:
    weights = settings.value_policy
    return ValuePolicy(
        weights.reputation_weight,
        weights.success_weight,
        weights.price_weight,
        weights.nvlink_weight,
        weights.price_ratio_low,
        weights.price_ratio_high,
        settings.link.slow_s * 1000,
    )
