"""The world in which the rules are tried: how many nodes, for how long, what work costs, how often hardware errs."""

from dataclasses import dataclass, field

from tidemill.core.money import CREDIT_UC
from tidemill.core.placement.supply import plan_of
from tidemill.core.settings.sections.money import BonusFundSettings, MoneySettings, PlansSettings
from tidemill.core.settings.sections.trust import NewcomersSettings
from tidemill.core.settlement.pay import RewardPlan
from tidemill.core.trust.reputation import ReputationRules
from tidemill.core.trust.rules import AuditRules, DisputesRules, ExposureRules, FindingsRules, HoldingBack
from tidemill.core.trust.stake import StakeRules

STEP_HOURS = 6
STEPS_A_DAY = 24 // STEP_HOURS
DAYS_A_MONTH = 30


@dataclass(frozen=True)
class EconomyRules:
    """The pool's settings where they exist, otherwise the rules' own numbers."""

    reputation: ReputationRules = field(default_factory=ReputationRules)
    newcomers: NewcomersSettings = field(default_factory=NewcomersSettings)
    holding_back: HoldingBack = field(default_factory=HoldingBack)
    audit: AuditRules = field(default_factory=AuditRules)
    findings: FindingsRules = field(default_factory=FindingsRules)
    exposure: ExposureRules = field(default_factory=ExposureRules)
    disputes: DisputesRules = field(default_factory=DisputesRules)
    money: MoneySettings = field(default_factory=MoneySettings)
    fund: BonusFundSettings = field(default_factory=BonusFundSettings)
    plans: PlansSettings = field(default_factory=PlansSettings)
    stake: StakeRules = field(default_factory=StakeRules)

    @property
    def plan(self) -> RewardPlan:
        """The plan that attempts are paid by."""
        return plan_of(self.money, self.fund, self.plans)


@dataclass(frozen=True)
class DeviceSize:
    """A size of device: its memory, its hourly price, and how common it is."""

    memory_mib: int
    price_uc: int
    share: float


DEVICES = (
    DeviceSize(12 * 1024, 9 * CREDIT_UC // 100, 0.45),
    DeviceSize(24 * 1024, 35 * CREDIT_UC // 100, 0.35),
    DeviceSize(48 * 1024, 60 * CREDIT_UC // 100, 0.12),
    DeviceSize(80 * 1024, 180 * CREDIT_UC // 100, 0.08),
)


@dataclass(frozen=True)
class EconomyScenario:
    """`cost_share` is the cost of honest work, as a share of its reward, and so what cheating can save.

    `house_share` is the capacity of the operator's own machines, as a share of all others: they check before owners do.
    `churn_a_month` is the share of honest owners that leave in a month; as many others come.
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
    rules: EconomyRules = field(default_factory=EconomyRules)

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
