"""What an owner has to lose, and how much work that may back.

A severe finding takes a share of the stake, everything held back, and the unsettled rewards. The first two remain
whatever the owner does next; so they bound the third: unsettled rewards never exceed them, and a burst of attempts
cannot be worth more than the deposit behind it. The share of the stake that no finding takes backs the debts; only
debts beyond it lower the bound, so that one charge never keeps an owner from working it off.
"""

import numpy as np
from numpy.typing import NDArray

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.trust.rules import ExposureRules, FindingsRules


def deposit_at_risk_uc(
    stake_uc: NDArray[np.int64], held_back_uc: NDArray[np.int64], findings: FindingsRules
) -> NDArray[np.int64]:
    """What a severe finding takes besides unsettled rewards. One element an owner."""
    return stake_uc * findings.severe_stake_ppm // ONE_PPM + held_back_uc


def exposure_limits_uc(
    stakes_uc: NDArray[np.int64],
    held_back_uc: NDArray[np.int64],
    owed_uc: NDArray[np.int64],
    exposure: ExposureRules,
    findings: FindingsRules,
) -> NDArray[np.int64]:
    """The most that may be unsettled at once, one element an owner."""
    deposits = deposit_at_risk_uc(stakes_uc, held_back_uc, findings)
    untouched = stakes_uc + held_back_uc - deposits
    limits: NDArray[np.int64] = deposits * exposure.limit_ppm // ONE_PPM - np.maximum(0, owed_uc - untouched)
    return np.maximum(0, limits)
