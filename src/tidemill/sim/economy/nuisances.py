"""Nuisances that cost others more than they bring: false disputes, and tasks that have no single answer.

A disputing account pays a deposit that the jury's executions use up. A jury errs only when its majority is of the ring
that opened the dispute; then the owner appeals, and a house node decides. Whoever orders a task without a single answer
pays for every execution it took.
"""

import numpy as np

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.trust.charges import dispute_deposit_uc
from tidemill.sim.economy.answers import Auditors
from tidemill.sim.economy.books import Purse
from tidemill.sim.economy.population import Population
from tidemill.sim.economy.settlement import payment_uc_of
from tidemill.sim.economy.strategies.interface import Choices


def dispute(
    population: Population,
    choices: Choices,
    auditors: Auditors,
    usual_uc: int,
    draws: np.random.Generator,
) -> int:
    """Open false disputes, as many as can be paid for. Returns what juries and appeals cost."""
    rules = population.scenario.rules
    deposit = dispute_deposit_uc(usual_uc, rules.disputes)
    intended = draws.poisson(choices.disputes) * population.open
    opened = np.minimum(intended, population.books[Purse.AVAILABLE] // max(1, deposit)).astype(np.int64)
    if not opened.any():
        return 0
    side = auditors.side_with(population)
    appealed = draws.binomial(opened, 3 * side**2 - 2 * side**3)
    population.books.move(Purse.AVAILABLE, Purse.AUDIT_BUDGET, opened * deposit)
    executions = int((opened * rules.disputes.jurors + appealed).sum()) * usual_uc
    population.books.move_one(Purse.AUDIT_BUDGET, Purse.EXTERNAL, executions)
    return executions


def poison(
    population: Population, choices: Choices, usual_uc: int, rate: float, line_ppm: int, draws: np.random.Generator
) -> int:
    """Order tasks without a single answer. Returns what checking them cost. Nobody is blamed for them."""
    ordered = draws.poisson(choices.poisoned) * population.open
    price = ordered * usual_uc
    checks = draws.binomial(ordered, rate) * 2 * usual_uc
    bill = payment_uc_of(population, price) + price * line_ppm // ONE_PPM + checks
    books = population.books
    books.move(Purse.EXTERNAL, Purse.CUSTOMER, bill)
    books.move(Purse.CUSTOMER, Purse.COMMISSION, bill - price - checks)
    books.move(Purse.CUSTOMER, Purse.AUDIT_BUDGET, price + checks)
    books.move_one(Purse.AUDIT_BUDGET, Purse.EXTERNAL, int((price + checks).sum()))
    return int(checks.sum())
