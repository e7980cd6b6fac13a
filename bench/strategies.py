"""Looks for strategies that would pay, by drawing many at random from everything the interface allows.

Prints one line of JSON. Each round is a pool in which some drawn strategies share the owners that do not work honestly.
Those whose interval reaches zero are tried again, each alone with as many owners, with another seed; `ahead` are those
whose interval is above zero then too, `undecided` those it does not tell from honest work, with what they did. Both
carry everything that is needed to write the strategy down.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

from tidemill.sim.economy.run import Economy
from tidemill.sim.economy.scenario import EconomyScenario
from tidemill.sim.economy.strategies.catalogue import Honest
from tidemill.sim.economy.strategies.interface import Choices, Flags, OwnerView, Strategy
from tidemill.sim.economy.tally import StrategyOutcome

WHENS: dict[str, tuple[Callable[[OwnerView, float], Flags], tuple[float, ...]]] = {
    "always": (lambda view, _: np.ones(len(view), dtype=bool), (0,)),
    "verified": (lambda view, least: view.verified_results > least, (20, 100, 400, 1000)),
    "reputed": (lambda view, least: view.reputation_points >= least, (350, 600, 800, 900)),
    "older": (lambda view, days: view.age_days > days, (2, 8, 15, 30, 45)),
    "now and then": (lambda view, days: view.age_days % days < days / 8, (2, 8, 16, 40)),
    "never found": (lambda view, _: view.times_found == 0, (0,)),
    "found": (lambda view, _: view.times_found > 0, (0,)),
    "severe": (lambda view, _: view.times_severe > 0, (0,)),
    "owing": (lambda view, share: view.owed_uc > share * view.stake_uc, (0, 0.1, 0.5, 1)),
    "owing nothing": (lambda view, _: (view.owed_uc == 0) & (view.verified_results > 400), (0,)),
    "much unsettled": (lambda view, share: view.unsettled_uc > share * view.stake_uc, (0.01, 0.05, 0.2)),
    "little room": (lambda view, share: view.room_uc < share * view.stake_uc, (0.1, 0.4)),
    "fallen": (lambda view, points: (view.reputation_points < points) & (view.age_days > 10), (100, 300, 700)),
    "rich": (lambda view, share: view.available_uc > share * view.stake_uc, (0.5, 2, 5)),
}


@dataclass(frozen=True)
class Plan:
    """Everything a drawn strategy does, and when."""

    accounts: int
    ring: int
    alike: bool
    cheat: float
    cheat_when: tuple[str, float]
    at_most: float
    from_usual: float
    appetite: float
    self_traded: float
    self_traded_when: tuple[str, float]
    disputes: float
    poisoned: float
    top_up: bool
    leave_when: tuple[str, float] | None
    rejoin: bool


def drawn(draws: np.random.Generator) -> Plan:
    def one_of(*values: Any) -> Any:
        return values[int(draws.integers(len(values)))]

    def when() -> tuple[str, float]:
        name = one_of(*WHENS)
        return name, one_of(*WHENS[name][1])

    def seldom(chance: float, value: Any, otherwise: Any) -> Any:
        return value if draws.random() < chance else otherwise

    return Plan(
        accounts=seldom(0.2, one_of(2, 3, 5), 1),
        ring=seldom(0.6, one_of(5, 30, 10**6), 0),
        alike=bool(draws.random() < 0.3),
        cheat=seldom(0.85, round(float(10 ** draws.uniform(-3.3, 0)), 5), 0.0),
        cheat_when=when(),
        at_most=seldom(0.4, one_of(1, 2, 5, 20), 1e9),
        from_usual=seldom(0.4, one_of(0.5, 1, 2, 3, 5), 0),
        appetite=seldom(0.25, one_of(0.5, 1.05, 1.5, 3, 8), 1),
        self_traded=seldom(0.2, one_of(0.05, 0.3, 0.9), 0),
        self_traded_when=when(),
        disputes=seldom(0.1, one_of(0.01, 0.2, 2), 0),
        poisoned=seldom(0.05, one_of(0.1, 2), 0),
        top_up=bool(draws.random() < 0.8),
        leave_when=seldom(0.5, when(), None),
        rejoin=bool(draws.random() < 0.6),
    )


def strategy_of(plan: Plan, called: str) -> Strategy:
    class Drawn(Strategy):
        name, accounts, ring, alike = called, plan.accounts, plan.ring, plan.alike

        def choose(self, view: OwnerView, draws: np.random.Generator) -> Choices:
            choices = Choices.honest(view)
            on = _holds(plan.cheat_when, view)
            choices.cheat = on * plan.cheat
            choices.cheat_at_most[:] = plan.at_most
            choices.cheat_from_uc = (plan.from_usual * view.usual_reward_uc).astype(np.int64)
            choices.appetite = np.where(on, plan.appetite, 1.0) / (plan.accounts if plan.appetite <= 1 else 1)
            choices.self_traded = _holds(plan.self_traded_when, view) * plan.self_traded
            choices.disputes[:], choices.poisoned[:] = plan.disputes, plan.poisoned
            choices.top_up[:] = plan.top_up
            if plan.leave_when is not None:
                choices.leave = _holds(plan.leave_when, view)
                choices.rejoin[:] = plan.rejoin
            return choices

    return Drawn()


def _holds(when: tuple[str, float], view: OwnerView) -> Flags:
    name, value = when
    return WHENS[name][0](view, value)


def fared(scenario: EconomyScenario, plans: dict[str, Plan]) -> dict[str, StrategyOutcome]:
    strategies = [Honest(), *(strategy_of(plan, name) for name, plan in plans.items())]
    outcomes = Economy(scenario, strategies).run().outcomes
    return {name: one for name, one in outcomes.items() if name in plans}


def told(plan: Plan, one: StrategyOutcome) -> dict[str, Any]:
    figures = {"profit": round(one.profit_vs_honest, 5), "ci95": [round(bound, 5) for bound in one.ci95]}
    return {**figures, "people": one.people, "cheated": one.cheated, "tasks": one.tasks, **asdict(plan)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how many pools are tried")
    parser.add_argument("--each", type=int, default=8, help="how many strategies share a pool")
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--months", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draws = np.random.default_rng(options.seed)
    doubtful: dict[str, Plan] = {}
    for turn in range(options.rounds):
        plans = {f"{options.seed}.{turn}.{at}": drawn(draws) for at in range(options.each)}
        scenario = EconomyScenario(nodes=options.nodes, months=options.months, seed=options.seed + turn)
        found = fared(scenario, plans)
        doubtful |= {name: plans[name] for name, one in found.items() if one.ci95[1] >= 0}
    ahead, undecided = [], []
    for name, plan in doubtful.items():
        again = EconomyScenario(nodes=options.nodes, months=options.months, seed=options.seed + 1000)
        one = fared(again, {name: plan})[name]
        if one.ci95[1] >= 0:
            (ahead if one.ci95[0] > 0 else undecided).append(told(plan, one))
    tried = options.rounds * options.each
    sys.stdout.write(json.dumps({"tried": tried, "ahead": ahead, "undecided": undecided}) + "\n")


if __name__ == "__main__":
    main()
