"""Everybody in the simulated pool: one row an account, all columns of the same length, grown only at the end of a step.

Row by row: who owns the account, what it has and what it did. The last row is never used: new rows are copies of it.
Results wait in columns of one step each until their window closes; those not audited can be checked until then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidemill.core.trust.exposure import deposit_at_risk_uc, exposure_limits_uc
from tidemill.core.trust.reputation import composites, reputations
from tidemill.core.trust.stake import least_stake_uc, recommended_stake_uc
from tidemill.sim.economy.books import EconomyBooks, Purse
from tidemill.sim.economy.scenario import DEVICES, STEPS_A_DAY, EconomyScenario
from tidemill.sim.economy.strategies.interface import Flags, Floats, Integers, Strategy

HONEST = 0
NO_RING = -1
NEVER = -1


@dataclass
class Arrivals:
    """Accounts to open: the strategy of each, whose they are, and what stands behind them."""

    strategy: Integers
    person: Integers
    ring: Integers
    devices: Integers
    size: Integers
    began: Integers


class Population:
    """All accounts, open and closed. `many` is how many rows are in use; the others are for later arrivals."""

    def __init__(self, scenario: EconomyScenario, strategies: Sequence[Strategy], rows: int) -> None:
        self.scenario, self.strategies, self.rows = scenario, strategies, rows
        self.many = self.people = self.rings = 0
        self.books = EconomyBooks(rows)
        self._open_membership()
        self._open_record()
        self._open_money()

    def _open_membership(self) -> None:
        """The account's owner, age and devices; `began` is when the person first came."""
        self.strategy, self.person, self.ring = self._counts(), self._counts(), self._counts(NO_RING)
        self.devices, self.price_uc, self.least_stake_uc = self._counts(), self._counts(), self._counts()
        self.joined, self.began, self.left = self._counts(), self._counts(), self._counts(NEVER)
        self.active, self.open = self._flags(), self._flags()
        self.uptime, self.speed = self._numbers(), self._numbers()

    def _open_record(self) -> None:
        """What production knows of an owner, and what only the simulator knows: who cheated when."""
        self.right_in_a_row, self.verified, self.penalties = self._counts(), self._counts(), self._counts()
        self.right_value, self.all_value = self._numbers(), self._numbers()
        self.evidence, self.failures = self._numbers(), self._numbers()
        self.found, self.severe, self.first_found = self._counts(), self._counts(), self._counts(NEVER)
        self.tasks, self.tasks_last = self._counts(), self._counts()
        self.cheated, self.cheated_last, self.first_cheat = self._counts(), self._counts(), self._counts(NEVER)

    def _open_money(self) -> None:
        """Besides the books: which part of the locked rewards waits for what. Windows are newest first."""
        shape = (self.scenario.window_steps, self.rows)
        self.locked_uc, self.unseen, self.unseen_wrong = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self.held_back_uc, self.owed_uc, self.spent_uc = self._counts(), self._counts(), self._counts()
        self.stake_lost, self.stake_lost_uc = self._counts(), self._counts()
        self.baseline_uc, self.luck_uc = self._numbers(), self._numbers()

    def _counts(self, value: int = 0) -> Integers:
        return np.full(self.rows, value, dtype=np.int64)

    def _numbers(self) -> Floats:
        return np.zeros(self.rows)

    def _flags(self) -> Flags:
        return np.zeros(self.rows, dtype=np.bool_)

    def admit(self, coming: Arrivals, step: int, draws: np.random.Generator) -> Integers:
        """Open accounts with the least stake paid in. Returns their rows."""
        many = len(coming.strategy)
        rows = np.arange(self.many, self.many + many)
        self.many += many
        if self.many >= self.rows:
            self._grow(self.many - self.rows + self.rows // 4 + 1)
        for name in ("strategy", "person", "ring", "devices", "began"):
            getattr(self, name)[rows] = getattr(coming, name)
        prices = np.array([device.price_uc for device in DEVICES])
        least = np.array([least_stake_uc(device.memory_mib, self.scenario.rules.stake) for device in DEVICES])
        self.price_uc[rows] = prices[coming.size]
        self.least_stake_uc[rows] = least[coming.size] * coming.devices
        self.joined[rows] = step
        self.uptime[rows] = draws.uniform(0.92, 1.0, many)
        self.speed[rows] = draws.uniform(0.85, 1.0, many)
        self.active[rows] = self.open[rows] = True
        self.pay_in_stake(rows)
        return rows

    def _grow(self, more: int) -> None:
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray):
                setattr(self, name, np.concatenate([values, np.repeat(values[..., -1:], more, axis=-1)], axis=-1))
        self.books.grow(more)
        self.rows += more

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
        """Accounts whose every result is checked."""
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
        room: Integers = np.maximum(0, limits - self.unsettled_uc())
        return room

    def reputation(self) -> Integers:
        """Everybody's reputation in points, by production's formula."""
        success = self.right_value / np.maximum(self.all_value, 1)
        scores = self._composites(success, self.books[Purse.STAKE], self.evidence)
        return reputations(scores, self.penalties)

    def merits(self) -> Integers:
        """The reputations that everybody's devices would have after long and faultless work."""
        long = np.full(self.rows, 1e9)
        scores = self._composites(np.ones(self.rows), self.least_stake_uc, long)
        return reputations(scores, np.zeros(self.rows, dtype=np.int64))

    def _composites(self, success: Floats, stakes_uc: Integers, evidence: Floats) -> Floats:
        rules = self.scenario.rules
        recommended = recommended_stake_uc(1_000_000, rules.stake) / 1_000_000
        stake = stakes_uc / np.maximum(self.least_stake_uc * recommended, 1)
        return composites(success, self.speed, self.uptime, stake, evidence, rules.reputation)

    def worth_uc(self) -> Integers:
        """Each account's profit so far: what it has in the pool, less what it paid in, spent and owes.

        An account that owes more than the stake can leave: the rest is never paid, and no loss.
        """
        standing_for = self.books[Purse.STAKE] + self.books[Purse.UNLOCKING]
        worth: Integers = self.books.worth() - self.spent_uc - np.minimum(self.owed_uc, standing_for)
        return worth

    def accounts_of_person(self, counted: Flags) -> Integers:
        """For each account, how many of the counted accounts its person has; at least one."""
        many: Integers = np.bincount(self.person[counted], minlength=max(1, self.people))
        at_least_one: Integers = np.maximum(1, many[self.person])
        return at_least_one

    def sums(self, rows: Integers, values: NDArray[Any] | None = None) -> Integers:
        """One sum a row; amounts stay exact, since no sum in a step exceeds the integers that floats hold."""
        added: Integers = np.bincount(rows, values, minlength=self.rows).astype(np.int64)
        return added
