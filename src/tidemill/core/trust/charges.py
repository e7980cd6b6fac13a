"""What a wrong result and a lost dispute cost.

A result audited at rate p stands for 1/p unaudited results. So a wrong one loses its reward and is charged so much more
that cheating must expect to lose 1.5 times its reward, however rare and cleverly spaced it is; the audit rate ensures
that a charge never exceeds what a severe finding takes. A charge is no punishment: hardware errs, and pays in
expectation a fraction of a percent of its rewards.
"""

import numpy as np

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.trust.audits.rates import Amounts, Shares
from tidemill.core.trust.rules import AuditRules, DisputesRules


def charges_uc(rewards_uc: Amounts, rates: Shares, collusion: float, rules: AuditRules) -> Amounts:
    """The charge for each wrong result besides its reward, one element a result."""
    stood_for = rules.deterrence * rewards_uc / ((1.0 - collusion) * rates)
    charged: Amounts = np.maximum(np.ceil(stood_for).astype(np.int64) - rewards_uc, 0)
    return charged


def dispute_deposit_uc(reward_uc: int, rules: DisputesRules) -> int:
    """What a dispute costs the loser: the jury's executions."""
    return -(-rules.jurors * reward_uc * rules.deposit_ppm // ONE_PPM)
