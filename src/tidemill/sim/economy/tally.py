"""What is counted during a run, and its result: profits against honest work, with their intervals."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tidemill.sim.economy.answers import RIGHT
from tidemill.sim.economy.checks import StepChecks
from tidemill.sim.economy.placement import StepWork
from tidemill.sim.economy.population import HONEST, Population
from tidemill.sim.economy.scenario import DAYS_A_MONTH, STEPS_A_DAY, EconomyScenario
from tidemill.sim.economy.strategies.interface import Floats, Integers

RESAMPLES = 2000
CHEATED_SHARE = 0.2
CHEATED_TASKS = 2000


@dataclass
class StrategyOutcome:
    """How the followers of one strategy fared, against honest owners with the same devices over the same time.

    Luck, of which everybody must expect none, is left out of profits; it only widens intervals. Whether somebody is
    ahead is a matter of money, luck included. `share_ahead` is among those who cheated on at least a fifth of at least
    2,000 tasks (`qualified`); or, where that is more, among those who cheated on as large a share and were stopped by a
    severe finding before they had so many (`stopped`).
    """

    people: int
    profit_vs_honest: float
    ci95: tuple[float, float]
    qualified: int
    qualified_ahead: int
    stopped: int
    stopped_ahead: int
    tasks: int
    cheated: int
    found_share: float
    detection_days: float | None

    @property
    def share_ahead(self) -> float:
        return larger_share_ahead([self])


@dataclass
class EconomyTally:
    """Sums over a run. Work and checks are in micro-credits of execution, by month."""

    scenario: EconomyScenario
    work_uc: list[int] = field(default_factory=list)
    checks_uc: list[int] = field(default_factory=list)
    delivered: int = 0
    delivered_wrong: int = 0
    delivered_cheated: int = 0
    daily: list[tuple[float, float]] = field(default_factory=list)
    outcomes: dict[str, StrategyOutcome] = field(default_factory=dict)
    honest_results: int = 0
    honest_stake_losses: int = 0
    honest_stake_lost_share: float = 0.0

    def add(
        self, population: Population, work: StepWork, checked: StepChecks, other_checks_uc: int, step: int
    ) -> tuple[int, int]:
        """Count one step. Returns the cost of checks and the value of work."""
        month = step // (DAYS_A_MONTH * STEPS_A_DAY)
        while len(self.work_uc) <= month:
            self.work_uc.append(0)
            self.checks_uc.append(0)
        canaries = int(work.rewards_uc[work.canary].sum())
        checks = (
            int(checked.auditor_rewards_uc.sum()) + int(checked.third_rewards_uc.sum()) + canaries + other_checks_uc
        )
        useful = int(work.rewards_uc.sum()) - canaries
        self.work_uc[month] += useful
        self.checks_uc[month] += checks
        delivered = ~work.canary & ~work.ours & ~checked.wrong
        wrong = delivered & (checked.first.answers != RIGHT)
        self.delivered += int(delivered.sum())
        self.delivered_wrong += int(wrong.sum())
        self.delivered_cheated += int((wrong & checked.first.cheated).sum())
        self.daily.append((checks / max(1, useful), float(wrong.sum()) / max(1, int(delivered.sum()))))
        return checks, useful

    def finish(self, population: Population) -> None:
        """Compare everybody with honest work."""
        honest = population.strategy[: population.many] == HONEST
        self.honest_results = int(population.tasks[: population.many][honest].sum())
        self.honest_stake_losses = int(population.stake_lost[: population.many][honest].sum())
        profit_uc = population.worth_uc()[: population.many][honest].sum()
        self.honest_stake_lost_share = float(
            population.stake_lost_uc[: population.many][honest].sum() / max(1, profit_uc)
        )
        draws = np.random.default_rng(self.scenario.seed)
        yardstick_errs = np.zeros(RESAMPLES)
        for code, strategy in enumerate(population.strategies):
            rows = np.flatnonzero(population.strategy[: population.many] == code)
            if len(rows):
                self.outcomes[strategy.name], means = _outcome(population, rows, yardstick_errs, draws)
                yardstick_errs = means if code == HONEST else yardstick_errs

    @property
    def overhead(self) -> float:
        """The share of checks in all work after the first month, or in all months if there is only one."""
        from_month = 1 if len(self.work_uc) > 1 else 0
        return sum(self.checks_uc[from_month:]) / max(1, sum(self.work_uc[from_month:]))

    def as_json(self) -> dict[str, Any]:
        """What the command prints for programs."""
        strategies = {
            name: {
                "profit_vs_honest": round(outcome.profit_vs_honest, 6),
                "ci95": [round(bound, 6) for bound in outcome.ci95],
                "share_ahead": round(outcome.share_ahead, 6),
                "qualified": outcome.qualified,
                "stopped": outcome.stopped,
                "people": outcome.people,
                "tasks": outcome.tasks,
                "cheated": outcome.cheated,
                "found_share": round(outcome.found_share, 4),
                "detection_days": outcome.detection_days,
            }
            for name, outcome in self.outcomes.items()
        }
        return {
            "strategies": strategies,
            "audit_overhead_pct": round(100 * self.overhead, 3),
            "honest_stake_losses_per_100k": round(1e5 * self.honest_stake_losses / max(1, self.honest_results), 4),
            "honest_stake_lost_pct_of_profit": round(100 * self.honest_stake_lost_share, 4),
            "wrong_results_delivered_ppm": round(1e6 * self.delivered_wrong / max(1, self.delivered), 1),
            "wrong_by_cheating_ppm": round(1e6 * self.delivered_cheated / max(1, self.delivered), 1),
            "overhead_by_month_pct": [
                round(100 * checks / max(1, work), 3) for checks, work in zip(self.checks_uc, self.work_uc, strict=True)
            ],
            "honest_results": self.honest_results,
            "delivered": self.delivered,
            "nodes": self.scenario.nodes,
            "months": self.scenario.months,
            "seed": self.scenario.seed,
        }


def larger_share_ahead(outcomes: Iterable[StrategyOutcome]) -> float:
    """The share that is ahead among all who qualified or among all who were stopped, whichever is larger."""
    all_outcomes = list(outcomes)
    qualified = sum(outcome.qualified_ahead for outcome in all_outcomes) / max(
        1, sum(outcome.qualified for outcome in all_outcomes)
    )
    stopped = sum(outcome.stopped_ahead for outcome in all_outcomes) / max(
        1, sum(outcome.stopped for outcome in all_outcomes)
    )
    return max(qualified, stopped)


def _outcome(
    population: Population, rows: Integers, yardstick_errs: Floats, draws: np.random.Generator
) -> tuple[StrategyOutcome, Floats]:
    """How the people of these accounts fared, and the means of resampling them.

    Honest owners are resampled, too: the interval is that of the difference.
    """
    people, person_index = np.unique(population.person[rows], return_inverse=True)

    def of_person(values: Integers | Floats) -> Floats:
        return np.bincount(person_index, values[rows].astype(np.float64), minlength=len(people)).astype(np.float64)

    ahead, yardstick = of_person(population.worth_uc()), of_person(population.baseline_uc)
    differences = ahead - of_person(population.luck_uc) - yardstick
    tasks, cheated = of_person(population.tasks), of_person(population.cheated)
    many = (cheated >= CHEATED_SHARE * tasks) & (cheated > 0)
    qualified = many & (tasks >= CHEATED_TASKS)
    stopped = many & ~qualified & (of_person(population.severe) > 0)
    caught = rows[(population.first_found[rows] >= 0) & (population.first_cheat[rows] >= 0)]
    waits = (population.first_found[caught] - population.first_cheat[caught]) / STEPS_A_DAY
    means = _resampled(differences, yardstick, draws)
    low, high = np.quantile(means - yardstick_errs, [0.025, 0.975])
    outcome = StrategyOutcome(
        people=len(people),
        profit_vs_honest=float(differences.sum() / max(1.0, yardstick.sum())),
        ci95=(float(low), float(high)),
        qualified=int(qualified.sum()),
        qualified_ahead=int((qualified & (ahead > yardstick)).sum()),
        stopped=int(stopped.sum()),
        stopped_ahead=int((stopped & (ahead > yardstick)).sum()),
        tasks=int(tasks.sum()),
        cheated=int(cheated.sum()),
        found_share=float((of_person(population.found) > 0).mean()),
        detection_days=round(float(np.median(waits)), 2) if len(waits) else None,
    )
    return outcome, means


def _resampled(differences: Floats, yardstick: Floats, draws: np.random.Generator) -> Floats:
    """The means when people are drawn anew, as many and with repetition, many times."""
    many = len(differences)
    means = np.empty(RESAMPLES)
    for turn in range(RESAMPLES):
        drawn = draws.integers(0, many, many)
        means[turn] = differences[drawn].sum() / max(1.0, yardstick[drawn].sum())
    return means
