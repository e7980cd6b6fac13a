"""The numbers of the rules of trust that the simulator tries out and no running pool applies yet.

They are no settings: changing one would have no effect. Each becomes a setting together with the code that reads it.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class HoldingBack:
    """The share of each reward of a new owner that is held back."""

    held_back_ppm: int = 500_000


@dataclass(frozen=True)
class AuditRules:
    """How often work without a cheap proof is executed a second time.

    Always, until so many results in a row were right. A cheater must expect to lose `deterrence` times what cheating
    saves, if at least `collusion_floor` of auditors collude. A failure rate above `failure_alarm` multiplies the rate.
    `budget` is the share of the pool's work that audits may take; `canary_rate` is that of tasks with a known answer.
    An auditor has at least this reputation.
    """

    results_before_sampling: int = 10
    rate_floor: float = 0.02
    deterrence: float = 1.5
    collusion_floor: float = 0.2
    failure_alarm: float = 0.2
    failure_factor: float = 2.0
    budget: float = 0.1
    auditor_floor_points: int = 600
    canary_rate: float = 0.002


@dataclass(frozen=True)
class FindingsRules:
    """What follows from a confirmed wrong result.

    So many unsettled results of the owner are checked; so many more wrong ones make the finding severe, which takes a
    share of the stake. A share of that goes into the bonus fund. A share of each settled reward repays debts.
    """

    look_back_results: int = 40
    severe_wrong_results: int = 1
    severe_stake_ppm: int = 500_000
    to_fund_ppm: int = 500_000
    repaid_ppm: int = 500_000


@dataclass(frozen=True)
class ExposureRules:
    """The most unsettled rewards, as a multiple of what a severe finding would take."""

    limit_ppm: int = 1_000_000


@dataclass(frozen=True)
class DisputesRules:
    """Contesting a verdict: for how long, by how many jurors (an odd number), and the deposit by their cost."""

    window_s: float = 86_400.0
    jurors: int = 3
    deposit_ppm: int = 1_000_000
