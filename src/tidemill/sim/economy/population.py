"""Everybody in the simulated pool: one row an account, all of the same length, grown only at the end.

Row by row: whose account it is, what it has and has done. Results wait in columns of one step each until their window
closes; what was not audited among them can still be looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.reputation import composites, reputations
from tidemill.core.stakes import least_stake_uc, recommended_stake_uc
from tidemill.core.verification.exposure import deposit_at_risk_uc, exposure_limits_uc
from tidemill.sim.economy.books import Books, Purse
from tidemill.sim.economy.interface import Flags, Floats, Integers, Strategy
from tidemill.sim.economy.scenario import DEVICES, STEPS_A_DAY, Scenario

HONEST = 0
NO_RING = -1


def _zeros(rows: int, kind: type = np.int64) -> NDArray[np.generic]:
    return np.zeros(rows, dtype=kind)


@dataclass
class Arrivals:
    """Accounts to open: the strategy of each, whose they are, and what stands behind them."""

    strategy: Integers
    person: Integers
    ring: Integers
    devices: Integers
    size: Integers
    real: Flags
    began: Integers


@dataclass
class Population:
    """All accounts, open and closed. `many` is how many rows are in use."""

    scenario: Scenario
    strategies: Sequence[Strategy]
    rows: int
    many: int = 0
    people: int = 0
    rings: int = 0
    books: Books = field(init=False)

    def __post_init__(self) -> None:
        rows, window = self.rows, self.scenario.window_steps
        self.books = Books(rows)
        whole = (
            "strategy",
            "person",
            "ring",
            "devices",
            "joined",
            "began",
            "left",
            "right_in_a_row",
            "verified",
            "penalties",
        )
        counted = ("price_uc", "least_stake_uc", "held_back_uc", "owed_uc", "tasks", "cheated", "spent_uc", "found")
        for name in (
            *whole,
            *counted,
            "severe",
            "first_cheat",
            "first_found",
            "tasks_last",
            "cheated_last",
            "stake_lost",
            "stake_lost_uc",
        ):
            setattr(self, name, _zeros(rows))
        for name in ("right_value", "all_value", "evidence", "failures", "uptime", "speed", "baseline_uc", "presence"):
            setattr(self, name, _zeros(rows, np.float64))
        for name in ("active", "open", "real"):
            setattr(self, name, _zeros(rows, np.bool_))
        self.locked_uc = np.zeros((window, rows), dtype=np.int64)
        self.unseen = np.zeros((window, rows), dtype=np.int64)
        self.unseen_wrong = np.zeros((window, rows), dtype=np.int64)
        self.left[:] = -1
        self.first_cheat[:] = self.first_found[:] = -1

    strategy: Integers = field(init=False)
    person: Integers = field(init=False)
    ring: Integers = field(init=False)
    devices: Integers = field(init=False)
    joined: Integers = field(init=False)
    began: Integers = field(init=False)
    left: Integers = field(init=False)
    right_in_a_row: Integers = field(init=False)
    verified: Integers = field(init=False)
    penalties: Integers = field(init=False)
    price_uc: Integers = field(init=False)
    least_stake_uc: Integers = field(init=False)
    held_back_uc: Integers = field(init=False)
    owed_uc: Integers = field(init=False)
    tasks: Integers = field(init=False)
    cheated: Integers = field(init=False)
    spent_uc: Integers = field(init=False)
    found: Integers = field(init=False)
    severe: Integers = field(init=False)
    stake_lost: Integers = field(init=False)
    stake_lost_uc: Integers = field(init=False)
    first_cheat: Integers = field(init=False)
    first_found: Integers = field(init=False)
    tasks_last: Integers = field(init=False)
    cheated_last: Integers = field(init=False)
    right_value: Floats = field(init=False)
    all_value: Floats = field(init=False)
    evidence: Floats = field(init=False)
    failures: Floats = field(init=False)
    uptime: Floats = field(init=False)
    speed: Floats = field(init=False)
    baseline_uc: Floats = field(init=False)
    presence: Floats = field(init=False)
    active: Flags = field(init=False)
    open: Flags = field(init=False)
    real: Flags = field(init=False)
    locked_uc: NDArray[np.int64] = field(init=False)
    unseen: NDArray[np.int64] = field(init=False)
    unseen_wrong: NDArray[np.int64] = field(init=False)

    def admit(self, coming: Arrivals, step: int, draws: np.random.Generator) -> Integers:
        """Open accounts with the least stake paid in. Answers their rows; fewer when there is no place left."""
        many = min(len(coming.strategy), self.rows - self.many)
        rows = np.arange(self.many, self.many + many)
        self.many += many
        for name in ("strategy", "person", "ring", "devices", "real", "began"):
            getattr(self, name)[rows] = getattr(coming, name)[:many]
        prices = np.array([device.price_uc for device in DEVICES])
        least = np.array([least_stake_uc(device.memory_mib, self.scenario.rules.stake) for device in DEVICES])
        self.price_uc[rows] = prices[coming.size[:many]]
        self.least_stake_uc[rows] = least[coming.size[:many]] * coming.devices[:many]
        self.joined[rows] = step
        self.uptime[rows] = draws.uniform(0.92, 1.0, many)
        self.speed[rows] = draws.uniform(0.85, 1.0, many)
        self.active[rows] = self.open[rows] = True
        self.pay_in_stake(rows)
        return rows

    def pay_in_stake(self, rows: Integers) -> None:
        """Bring each stake up to the least, from outside."""
        missing = np.zeros(self.rows, dtype=np.int64)
        missing[rows] = np.maximum(0, self.least_stake_uc[rows] - self.books[Purse.STAKE][rows])
        self.books.move(Purse.EXTERNAL, Purse.STAKE, missing)

    def age_days(self, step: int) -> Floats:
        ages: Floats = (step - self.joined) / STEPS_A_DAY
        return ages

    def new(self, step: int) -> Flags:
        """Who is new by the rules: too young, or with too few verified results."""
        rules = self.scenario.rules.newcomers
        young = self.age_days(step) * 86_400 < rules.new_for_s
        new: Flags = young | (self.verified < rules.new_for_results)
        return new

    def unproven(self) -> Flags:
        """Whose every result is checked."""
        unproven: Flags = self.right_in_a_row < self.scenario.rules.audit.results_before_sampling
        return unproven

    def unsettled_uc(self) -> Integers:
        unsettled: Integers = self.locked_uc.sum(axis=0)
        return unsettled

    def deposit_uc(self) -> Integers:
        return deposit_at_risk_uc(self.books[Purse.STAKE], self.held_back_uc, self.scenario.rules.findings)

    def room_uc(self) -> Integers:
        rules, stakes = self.scenario.rules, self.books[Purse.STAKE]
        limits = exposure_limits_uc(stakes, self.held_back_uc, self.owed_uc, rules.exposure, rules.findings)
        left: Integers = np.maximum(0, limits - self.unsettled_uc())
        return left

    def reputation(self) -> Integers:
        """Everybody's reputation in points, by production's formula."""
        rules = self.scenario.rules
        success = self.right_value / np.maximum(self.all_value, 1)
        recommended = recommended_stake_uc(1_000_000, rules.stake) / 1_000_000
        stake = self.books[Purse.STAKE] / np.maximum(self.least_stake_uc * recommended, 1)
        made = composites(success, self.speed, self.uptime, stake, self.evidence, rules.reputation)
        return reputations(made, self.penalties)

    def worth_uc(self) -> Integers:
        """What each account has made so far: what it has in the pool, less what it brought, spent and owes."""
        return self.books.worth() - self.spent_uc - self.owed_uc

    def sums(self, rows: Integers, values: NDArray[Any] | None = None) -> Integers:
        """One sum a row; amounts stay exact, since no sum in a step reaches what floats can hold."""
        added: Integers = np.bincount(rows, values, minlength=self.rows).astype(np.int64)
        return added
