"""Who joins the simulated pool: at the beginning, in place of those who left, and again after being found."""

from collections.abc import Sequence

import numpy as np

from tidemill.sim.economy.books import Purse
from tidemill.sim.economy.population import HONEST, NO_RING, Arrivals, Population
from tidemill.sim.economy.scenario import DAYS_A_MONTH, DEVICES, STEPS_A_DAY, EconomyScenario
from tidemill.sim.economy.strategies.interface import Choices, Integers, Strategy

ROWS_SPARE = 1.3
"""Rows at first, as a multiple of the first accounts: others come later."""

STAYS_DAYS = 1
"""The shortest time in which anybody joins, is challenged, pays in a stake and leaves again."""


def first_population(
    scenario: EconomyScenario, strategies: Sequence[Strategy], draws: np.random.Generator
) -> Population:
    """Everybody present on the first day. Strategy 0 is honest work; the others share the cheaters evenly."""
    sizes = _devices(scenario.nodes, draws)
    people = int(np.searchsorted(np.cumsum(sizes), scenario.nodes)) + 1
    codes = np.zeros(people, dtype=np.int64)
    cheating_strategies = len(strategies) - 1
    dishonest = int(people * scenario.cheaters) if cheating_strategies else 0
    codes[:dishonest] = np.arange(dishonest) % max(1, cheating_strategies) + 1
    accounts = sum(strategies[code].accounts for code in codes.tolist())
    population = Population(scenario, strategies, int(accounts * ROWS_SPARE) + 100)
    admit_people(population, codes, sizes[:people], 0, draws)
    return population


def admit_people(
    population: Population, codes: Integers, devices: Integers, step: int, draws: np.random.Generator
) -> Integers:
    """New people, each with as many accounts as their strategy opens, in rings of people who know each other."""
    many = len(codes)
    people = population.people + np.arange(many)
    population.people += many
    rings = _rings(population, codes)
    copies = np.array([strategy.accounts for strategy in population.strategies])[codes]
    size = draws.choice(len(DEVICES), many, p=[device.share for device in DEVICES])
    person_of = np.repeat(np.arange(many), copies)
    began = np.full(len(person_of), step)
    coming = Arrivals(codes[person_of], people[person_of], rings[person_of], devices[person_of], size[person_of], began)
    return population.admit(coming, step, draws)


def churn(population: Population, step: int, draws: np.random.Generator) -> None:
    """Some honest owners leave, and as many other honest ones come."""
    rate = population.scenario.churn_a_month / (DAYS_A_MONTH * STEPS_A_DAY)
    honest = np.flatnonzero(population.open & (population.strategy == HONEST))
    going = honest[draws.random(len(honest)) < rate]
    leave(population, going, step)
    admit_people(population, np.zeros(len(going), dtype=np.int64), population.devices[going], step, draws)


def leave(population: Population, rows: Integers, step: int) -> None:
    """Close accounts: their stakes begin to unlock."""
    population.open[rows] = population.active[rows] = False
    population.left[rows] = step
    moved = np.zeros(population.rows, dtype=np.int64)
    moved[rows] = population.books[Purse.STAKE][rows]
    population.books.move(Purse.STAKE, Purse.UNLOCKING, moved)


def come_and_go(
    population: Population, choices: Choices, rows: Integers, step: int, draws: np.random.Generator
) -> None:
    """Accounts leave when their strategy says so; some people start over, as strangers with a new stake."""
    going = choices.leave & population.open[rows] & (population.age_days(step)[rows] >= STAYS_DAYS)
    again = going & choices.rejoin
    leave(population, rows[going], step)
    old = rows[again]
    if not len(old):
        return
    size = np.searchsorted([device.price_uc for device in DEVICES], population.price_uc[old])
    coming = Arrivals(
        strategy=population.strategy[old],
        person=population.person[old],
        ring=population.ring[old],
        devices=population.devices[old],
        size=size,
        began=population.began[old],
    )
    population.admit(coming, step, draws)


def unlock(population: Population, step: int) -> None:
    """Unlocked stakes go back to their owners, less their debts."""
    due = (population.left >= 0) & (step - population.left == population.scenario.timelock_steps)
    unlocking = np.where(due, population.books[Purse.UNLOCKING], 0)
    repaid = np.minimum(unlocking, population.owed_uc)
    population.books.move(Purse.UNLOCKING, Purse.AUDIT_BUDGET, repaid)
    population.books.move(Purse.UNLOCKING, Purse.EXTERNAL, unlocking - repaid)
    population.owed_uc -= repaid
    population.stake_lost += repaid > 0
    population.stake_lost_uc += repaid


def _devices(nodes: int, draws: np.random.Generator) -> Integers:
    """How many devices each owner has: most one, some a few, few a rack."""
    kind = draws.random(nodes)
    few, rack = draws.integers(2, 5, nodes), draws.integers(5, 21, nodes)
    devices: Integers = np.where(kind < 0.8, 1, np.where(kind < 0.97, few, rack))
    return devices


def _rings(population: Population, codes: Integers) -> Integers:
    """The ring of each new person: people of one strategy who come together, in groups of the strategy's size."""
    rings = np.full(len(codes), NO_RING)
    for code, strategy in enumerate(population.strategies):
        members = np.flatnonzero(codes == code)
        if strategy.ring > 1 and len(members):
            rings[members] = population.rings + np.arange(len(members)) // strategy.ring
            population.rings = int(rings[members].max()) + 1
    return rings
