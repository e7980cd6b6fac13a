"""How often an owner's work without a cheap proof is executed a second time.

Always, until enough audited results in a row were right. Then at the largest of three rates: one over that number; a
floor; and the rate at which a cheater must expect to lose 1.5 times what cheating saves, at the assumed collusion of
auditors. The rate depends on the amount at risk and on the record, never on the available money: when audits cost more
than their budget, newcomers wait, and no rate is lowered.
"""

import numpy as np
from numpy.typing import NDArray

from tidemill.core.trust.rules import AuditRules

Amounts = NDArray[np.int64]
Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


def assumed_collusion(largest_owner_share: float, rules: AuditRules) -> float:
    """The share of auditors assumed to side with the owner they check."""
    assert 0 <= largest_owner_share <= 1, "a share is between none and all"
    return min(max(rules.collusion_floor, largest_owner_share), 0.99)


def audit_rates(
    right_in_a_row: Counts,
    failure_shares: Shares,
    rewards_uc: Amounts,
    at_risk_uc: Amounts,
    collusion: float,
    rules: AuditRules,
) -> Shares:
    """The rates of many attempts: one element an attempt, with what its owner has to lose at that moment."""
    candidates = _candidates(right_in_a_row, rewards_uc, at_risk_uc, collusion, rules)
    rates = np.maximum.reduce(candidates)
    rates = np.where(failure_shares > rules.failure_alarm, rates * rules.failure_factor, rates)
    always: Shares = np.where(right_in_a_row < rules.results_before_sampling, 1.0, np.minimum(1.0, rates))
    return always


def _candidates(
    right_in_a_row: Counts, rewards_uc: Amounts, at_risk_uc: Amounts, collusion: float, rules: AuditRules
) -> tuple[Shares, Shares, Shares]:
    record = 1.0 / np.maximum(right_in_a_row, 1)
    floor = np.full(record.shape, rules.rate_floor)
    # We assume that cheating saves the entire reward: nobody measures what a cheater's hardware does meanwhile.
    lost = (1.0 - collusion) * np.maximum(rewards_uc + at_risk_uc, 1)
    return record, floor, rules.deterrence * rewards_uc / lost
