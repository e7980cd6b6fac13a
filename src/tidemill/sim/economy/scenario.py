"""The world that the rules are tried in: how many nodes, for how long, what work costs, how often hardware errs."""

from dataclasses import dataclass, field

from tidemill.core.money import CREDIT_UC
from tidemill.core.settings.money import BonusFundSettings, MoneySettings, PlansSettings, StakeSettings
from tidemill.core.settings.trust import (
    AuditSettings,
    DisputesSettings,
    ExposureSettings,
    FindingsSettings,
    NewcomersSettings,
    ReputationSettings,
)
from tidemill.core.work.paying import MarketPlan

STEP_HOURS = 6
STEPS_A_DAY = 24 // STEP_HOURS
DAYS_A_MONTH = 30


@dataclass(frozen=True)
class Rules:
    """Production's settings, as they stand."""

    reputation: ReputationSettings = field(default_factory=ReputationSettings)
    newcomers: NewcomersSettings = field(default_factory=NewcomersSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    findings: FindingsSettings = field(default_factory=FindingsSettings)
    exposure: ExposureSettings = field(default_factory=ExposureSettings)
    disputes: DisputesSettings = field(default_factory=DisputesSettings)
    money: MoneySettings = field(default_factory=MoneySettings)
    fund: BonusFundSettings = field(default_factory=BonusFundSettings)
    plans: PlansSettings = field(default_factory=PlansSettings)
    stake: StakeSettings = field(default_factory=StakeSettings)

    @property
    def plan(self) -> MarketPlan:
        """The plan that attempts are paid by."""
        return MarketPlan(
            commission_ppm=self.money.commission_ppm,
            fund_ppm=self.fund.commission_ppm,
            burn_ppm=self.money.burn_ppm,
            bonus_ppm=self.plans.market_early_ppm,
            bonus_max_ppm=self.plans.market_early_most_ppm,
            self_trade_loss_ppm=self.money.self_trade_loss_ppm,
        )


@dataclass(frozen=True)
class Device:
    """A size of device: its memory, what an hour of it is sold for, and how common it is."""

    memory_mib: int
    price_uc: int
    share: float


DEVICES = (
    Device(12 * 1024, 9 * CREDIT_UC // 100, 0.45),
    Device(24 * 1024, 35 * CREDIT_UC // 100, 0.35),
    Device(48 * 1024, 60 * CREDIT_UC // 100, 0.12),
    Device(80 * 1024, 180 * CREDIT_UC // 100, 0.08),
)


@dataclass(frozen=True)
class Scenario:
    """`cost_share` is what honest work costs of its reward, and so what cheating can save; the more, the more tempting.

    `house_share` is what the operator's own machines can do of what all others can: they check before owners are
    asked to. `churn_a_month` is the share of honest owners that leave in a month; as many others come.
    """

    nodes: int = 20_000
    months: int = 6
    seed: int = 1
    cheaters: float = 0.4
    hardware_error: float = 1e-3
    cost_share: float = 0.7
    demand: float = 0.75
    task_hours: float = 0.5
    task_spread: float = 0.8
    churn_a_month: float = 0.05
    house_share: float = 0.04
    rules: Rules = field(default_factory=Rules)

    @property
    def steps(self) -> int:
        return self.months * DAYS_A_MONTH * STEPS_A_DAY

    @property
    def window_steps(self) -> int:
        """How many steps a reward stays locked: the dispute window, rounded up."""
        return max(1, -(-round(self.rules.disputes.window_s) // (STEP_HOURS * 3600)))

    @property
    def timelock_steps(self) -> int:
        return max(1, -(-round(self.rules.stake.timelock_s) // (STEP_HOURS * 3600)))
