"""Where cheating begins to pay: the stake as a multiple of a reward, against the audit rate.

For each pair the profit of answering one task without computing it, as a share of its reward, for a cheater who is
never found twice in a window, so that only the charge deters; with the entire reward saved and the assumed collusion of
auditors. A charge cannot take more than there is. Production's own rate for each stake is the line over the map.
"""

from dataclasses import dataclass

import numpy as np

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.trust.audits.rates import audit_rates
from tidemill.core.trust.charges import charges_uc
from tidemill.sim.economy.scenario import EconomyRules
from tidemill.sim.economy.strategies.interface import Floats

REWARD_UC = 1_000_000
STAKES = np.logspace(0, 3.5, 71)
RATES = np.logspace(-3, 0, 61)
LONG_RECORD = 10**6


@dataclass(frozen=True)
class CheatingProfits:
    """`profits` has a row a rate and a column a stake; `in_force` is the rate of the rules for each stake."""

    stakes: Floats
    rates: Floats
    profits: Floats
    in_force: Floats


def cheating_profits(rules: EconomyRules) -> CheatingProfits:
    collusion = rules.audit.collusion_floor
    at_risk = (STAKES * REWARD_UC * rules.findings.severe_stake_ppm / ONE_PPM).astype(np.int64)
    rewards = np.full(len(STAKES), REWARD_UC)
    rows = []
    for rate in RATES:
        charged = np.minimum(charges_uc(rewards, np.full(len(STAKES), rate), collusion, rules.audit), at_risk)
        rows.append(1.0 - rate * (1 - collusion) * (1.0 + charged / REWARD_UC))
    records, failures = np.full(len(STAKES), LONG_RECORD), np.zeros(len(STAKES))
    in_force = audit_rates(records, failures, rewards, at_risk, collusion, rules.audit)
    return CheatingProfits(STAKES, RATES, np.array(rows), in_force)
