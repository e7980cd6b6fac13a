"""The scenario of a run: the pool's rules as they are set, what chance does to attempts, and for how long.

The chances are round figures of our own; every one of them can be set.
"""

from dataclasses import dataclass

from tidemill.core.clock import SECOND, Instant
from tidemill.core.jobs.task import RetryLimits
from tidemill.core.placement.supply import plan_of
from tidemill.core.settings import Settings
from tidemill.core.settlement.pay import RewardPlan

MONDAY = Instant(4 * 86_400 * SECOND)
"""Simulated time begins with a week, for owners who let their nodes work at certain hours."""


@dataclass(frozen=True)
class PoolRules:
    """The pool's settings about attempts."""

    patience: RetryLimits
    plan: RewardPlan
    deadline_factor: float
    offline_after_us: int

    @classmethod
    def of(cls, settings: Settings) -> "PoolRules":
        return cls(
            RetryLimits(failures_max=settings.jobs.attempts_max),
            plan_of(settings.money, settings.bonus_fund, settings.plans),
            settings.jobs.deadline_factor,
            int(settings.link.offline_after_s * SECOND),
        )


@dataclass(frozen=True)
class Chances:
    """How often something happens to an attempt; `broken` is the share of tasks that fail wherever they run."""

    declined: float = 0.02
    crashed: float = 0.005
    straggling: float = 0.02
    wrong: float = 0.001
    broken: float = 0.001
    pace_sigma: float = 0.2
    """How much attempts of one length differ on one device."""


@dataclass(frozen=True)
class PoolTimes:
    """The time that the pool itself takes, in microseconds."""

    assignment_us: int = SECOND
    """From an assignment to the node's answer and the start."""

    verdict_us: int = 2 * SECOND
    """From a result to its verdict."""

    round_us: int = SECOND // 5
    """Between two rounds of placing, when few wait."""

    round_per_task_us: int = 1_000
    """So much longer for each task that waits, as a round then takes longer."""

    round_max_us: int = 30 * SECOND
    again_us: int = 30 * SECOND
    """A node that declined a task, or was lost with it, is not assigned it again for so long."""


@dataclass(frozen=True)
class DayScenario:
    rules: PoolRules
    hours: float = 24.0
    seed: int = 1
    chances: Chances = Chances()
    times: PoolTimes = PoolTimes()
    begins: Instant = MONDAY
