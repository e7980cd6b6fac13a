"""Everybody's answers, and which answers are compared.

An answer is a number: zero is right, every other is wrong. Two wrong answers are equal only by arrangement: of
everybody with a strategy whose wrong answers are alike, or of a ring whose members repeat the answer of the member they
check.
"""

from dataclasses import dataclass

import numpy as np

from tidemill.core.trust.reputation import POINTS_MAX
from tidemill.sim.economy.population import NO_RING, Population
from tidemill.sim.economy.scenario import STEP_HOURS
from tidemill.sim.economy.strategies.interface import Choices, Flags, Floats, Integers

RIGHT = 0
HOUSE = -1
"""Stands for a row where the operator's own node executed."""


@dataclass
class ExecutionColumns:
    """Who executed what, and their answers, one element a task. `cheated`: without computing it."""

    rows: Integers
    answers: Integers
    cheated: Flags
    copied: Flags


class AnswerMaker:
    """Makes answers. Individual wrong answers get numbers that are never used twice."""

    def __init__(self, population: Population, choices: Choices, draws: np.random.Generator) -> None:
        self.population, self.choices, self.draws = population, choices, draws
        self.next_answer = 1
        self.left = choices.cheat_at_most.copy()
        self.alike = np.array([strategy.alike for strategy in population.strategies])

    def execute(self, rows: Integers, rewards_uc: Integers) -> ExecutionColumns:
        """Everybody computes, or does not, by their own choice; hardware errs."""
        house = rows == HOUSE
        choices, draws = self.choices, self.draws
        cheated = ~house & (draws.random(len(rows)) < choices.cheat[rows])
        cheated &= rewards_uc >= choices.cheat_from_uc[rows]
        self._stop_in_time(rows, cheated)
        erred = draws.random(len(rows)) < self.population.scenario.hardware_error
        answers = np.where(cheated | erred, self._own_wrong(len(rows)), RIGHT)
        codes = self.population.strategy[rows]
        answers = np.where(cheated & self.alike[codes], -1 - codes, answers)
        return ExecutionColumns(rows, answers, cheated, np.zeros(len(rows), dtype=bool))

    def say_the_same(self, executions: ExecutionColumns, friends_of: ExecutionColumns) -> ExecutionColumns:
        """Members of a ring who check one of their own repeat that member's answer, and compute nothing."""
        population = self.population
        rings = np.where(executions.rows == HOUSE, NO_RING, population.ring[executions.rows])
        checked_rings = np.where(friends_of.rows == HOUSE, NO_RING, population.ring[friends_of.rows])
        same = (rings != NO_RING) & (rings == checked_rings)
        answers = np.where(same, friends_of.answers, executions.answers)
        return ExecutionColumns(executions.rows, answers, executions.cheated & ~same, executions.copied | same)

    def _stop_in_time(self, rows: Integers, cheated: Flags) -> None:
        """Unmark cheating beyond what an account wants in this step, later tasks first."""
        marked = np.flatnonzero(cheated & (self.left[rows] < np.inf))
        if not len(marked):
            return
        by_row = marked[np.argsort(rows[marked], kind="stable")]
        firsts = np.searchsorted(rows[by_row], rows[by_row])
        cheated[by_row[np.arange(len(by_row)) - firsts >= self.left[rows[by_row]]]] = False
        self.left -= np.bincount(rows[by_row][cheated[by_row]], minlength=len(self.left))

    def _own_wrong(self, many: int) -> Integers:
        numbers = np.arange(self.next_answer, self.next_answer + many)
        self.next_answer += many
        return numbers


class Auditors:
    """Who checks: the house as far as its machines go in a step, then owners with a record, drawn by reputation and
    capacity. Where nobody has a record yet, the house catches up later.
    """

    def __init__(
        self, population: Population, reputations: Integers, appetite: Floats, draws: np.random.Generator
    ) -> None:
        rules, scenario = population.scenario.rules.audit, population.scenario
        eligible = population.active & (reputations >= rules.auditor_floor_points)
        self.weights = np.where(eligible, reputations * population.devices * np.minimum(1, appetite), 0.0)
        house = scenario.house_share * scenario.nodes
        self.left = round(house * STEP_HOURS / scenario.task_hours)
        self.sums, self.draws = np.cumsum(self.weights), draws
        self.total = float(self.sums[-1])
        self.everyone = self.total + max(house * POINTS_MAX, 1.0)
        self.largest_share = float(self.weights.max()) / self.everyone

    def draw(self, *involved: Integers) -> Integers:
        """One auditor for each element, none of them involved. If two draws fail, the house does it."""
        many = len(involved[0])
        by_house = self.draws.permutation(many) < self._taken(many)
        return np.where(by_house, HOUSE, self._owners(*involved))

    def beyond_the_house(self, many: int) -> float:
        """The share of so many more checks for which the house has no machines left."""
        return 1 - self._taken(many) / max(1, many)

    def _taken(self, many: int) -> int:
        """How many of these checks the house does."""
        by_house = min(self.left, many)
        self.left -= by_house
        return by_house

    def _owners(self, *involved: Integers) -> Integers:
        rows = self._any(len(involved[0]))
        for is_last in (False, True):
            clash = np.zeros(len(rows), dtype=bool)
            for involved_rows in involved:
                clash |= (rows == involved_rows) & (rows != HOUSE)
            rows = np.where(clash, HOUSE if is_last else self._any(len(rows)), rows)
        return rows

    def side_with(self, population: Population) -> Floats:
        """For each account, the share of all possible auditors that would repeat its answer: those of its ring."""
        in_rings = population.ring != NO_RING
        by_ring = np.bincount(population.ring[in_rings], self.weights[in_rings], minlength=max(1, population.rings))
        shares = np.zeros(population.rows)
        shares[in_rings] = by_ring[population.ring[in_rings]] / self.everyone
        return shares

    def _any(self, many: int) -> Integers:
        if not self.total:
            return np.full(many, HOUSE)
        return np.searchsorted(self.sums, self.draws.random(many) * self.total, side="right")
