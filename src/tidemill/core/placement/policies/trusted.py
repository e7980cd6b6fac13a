"""The policy `trusted`: the best reputation first, among equals the largest stake; busy nodes score lower."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.core.placement.candidate import Candidate, MedianPrices
from tidemill.core.settings.tree import Settings
from tidemill.core.trust.stake import StakeRules

STAKE_WEIGHT = 0.0009
"""Less than one point of reputation, so that stake decides between equals only."""

LOAD_WEIGHT = 0.1


@dataclass(frozen=True)
class TrustedPolicy:
    """`stake_scale_uc` is the stake that reaches half of its weight."""

    stake_scale_uc: float
    load_weight: float = LOAD_WEIGHT
    steps: int = 8000

    def terms(self, candidate: Candidate, median_prices: MedianPrices) -> Mapping[str, float]:
        stake = candidate.stake_uc / (candidate.stake_uc + self.stake_scale_uc)
        return {"reputation": candidate.reputation / 1000, "stake": STAKE_WEIGHT * stake}


def from_settings(_: Settings) -> TrustedPolicy:
    return TrustedPolicy(float(StakeRules().large_uc))
