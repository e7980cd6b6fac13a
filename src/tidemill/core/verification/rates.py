"""How often an owner's work without a cheap proof is executed a second time.

Always, until enough audited results in a row were right. Then at the largest of three rates: one over that number; a
floor; and the rate at which a cheater must expect to lose 1.5 times what cheating saves, if as many auditors collude as
is assumed. The rate depends on what is at stake and on the record, never on what there is money for: when audits cost
more than their budget, newcomers wait, and no rate is lowered.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tidemill.core.settings.trust import AuditSettings

Amounts = NDArray[np.int64]
Counts = NDArray[np.int64]
Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """An owner's record as audits see it: right results in a row, and the share of recent attempts that failed."""

    right_in_a_row: int = 0
    failure_share: float = 0.0


@dataclass(frozen=True)
class AuditRate:
    """The rate of one attempt, and why it is that high."""

    rate: float
    because: str


def after_audit(standing: Standing, *, right: bool) -> Standing:
    """One more audited result. A wrong one and the owner starts anew."""
    return replace(standing, right_in_a_row=standing.right_in_a_row + 1 if right else 0)


def assumed_collusion(largest_owner_share: float, rules: AuditSettings) -> float:
    """The share of auditors that are taken to side with whoever they check."""
    assert 0 <= largest_owner_share <= 1, "a share is between none and all"
    return min(max(rules.collusion_floor, largest_owner_share), 0.99)


def audit_rates(
    right_in_a_row: Counts,
    failure_shares: Shares,
    rewards_uc: Amounts,
    at_risk_uc: Amounts,
    collusion: float,
    rules: AuditSettings,
) -> Shares:
    """The rates of many attempts: one element an attempt, with what its owner has to lose at that moment."""
    candidates = _candidates(right_in_a_row, rewards_uc, at_risk_uc, collusion, rules)
    rates = np.maximum.reduce(candidates)
    rates = np.where(failure_shares > rules.failure_alarm, rates * rules.failure_factor, rates)
    always: Shares = np.where(right_in_a_row < rules.results_before_sampling, 1.0, np.minimum(1.0, rates))
    return always


def audit_rate(
    standing: Standing, reward_uc: int, at_risk_uc: int, collusion: float, rules: AuditSettings
) -> AuditRate:
    """The rate of one attempt, with its reason. `at_risk_uc` is what a severe finding would take."""
    counts, rewards, risks = (np.array([value]) for value in (standing.right_in_a_row, reward_uc, at_risk_uc))
    failures = np.array([standing.failure_share])
    rate = float(audit_rates(counts, failures, rewards, risks, collusion, rules)[0])
    if standing.right_in_a_row < rules.results_before_sampling:
        return AuditRate(rate, _not_yet(standing, rules))
    parts = [float(part[0]) for part in _candidates(counts, rewards, risks, collusion, rules)]
    reasons = (
        f"{standing.right_in_a_row} audited results in a row were right, so one in as many is checked",
        "no rate is below the floor",
        "at this rate cheating costs more than it saves, for what the owner has to lose",
    )
    because = f"{rate:.2%}: {reasons[parts.index(max(parts))]}"
    if standing.failure_share > rules.failure_alarm:
        because += f"; times {rules.failure_factor:g}, since {standing.failure_share:.0%} of recent attempts failed"
    return AuditRate(rate, because + ".")


def _candidates(
    right_in_a_row: Counts, rewards_uc: Amounts, at_risk_uc: Amounts, collusion: float, rules: AuditSettings
) -> tuple[Shares, Shares, Shares]:
    record = 1.0 / np.maximum(right_in_a_row, 1)
    floor = np.full(record.shape, rules.rate_floor)
    # What cheating saves is taken to be the whole reward: nobody measures what a cheater's hardware does meanwhile.
    lost = (1.0 - collusion) * np.maximum(rewards_uc + at_risk_uc, 1)
    return record, floor, rules.deterrence * rewards_uc / lost


def _not_yet(standing: Standing, rules: AuditSettings) -> str:
    return (
        f"100%: every result is checked until {rules.results_before_sampling} in a row were right; "
        f"so far {standing.right_in_a_row} were."
    )
