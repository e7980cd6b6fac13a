"""The money of a step: what customers pay, what executions cost, what is locked, released, held back and repaid."""

import numpy as np

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.settlement.pay import HOUR_MS, PayTerms, UsedTime, attempt_pay
from tidemill.sim.economy.answers import HOUSE, ExecutionColumns
from tidemill.sim.economy.books import Purse
from tidemill.sim.economy.checks import StepChecks
from tidemill.sim.economy.placement import StepWork
from tidemill.sim.economy.population import Population
from tidemill.sim.economy.strategies.interface import Choices, Flags, Integers


def spend(
    population: Population, executions: ExecutionColumns, rewards_uc: Integers, choices: Choices, free: Flags
) -> None:
    """What executions cost their owners, outside of the pool."""
    rows = executions.rows
    share = np.where(executions.cheated, 1 - choices.saved[rows], 1.0) * ~(executions.copied | free | (rows == HOUSE))
    costs = rewards_uc * share * population.scenario.cost_share
    owners = rows != HOUSE
    population.spent_uc += population.sums(rows[owners], costs[owners])
    population.tasks += population.sums(rows[owners])
    population.cheated += population.sums(rows[owners & executions.cheated])


def pay_for_work(population: Population, work: StepWork, checked: StepChecks, line_ppm: int) -> None:
    """Lock the rewards of everything that was not found wrong; and charge customers for it."""
    paid = ~checked.wrong
    crowd = population.sums(
        work.rows[paid & ~work.ours & ~work.canary], work.rewards_uc[paid & ~work.ours & ~work.canary]
    )
    canaries = population.sums(work.rows[paid & work.canary], work.rewards_uc[paid & work.canary])
    own = population.sums(work.rows[paid & work.ours], work.rewards_uc[paid & work.ours])
    _buy(population, Purse.CROWD, crowd, line_ppm)
    bought = payment_uc_of(population, own) + own * line_ppm // ONE_PPM
    population.books.move(Purse.EXTERNAL, Purse.CUSTOMER, bought)
    _buy(population, Purse.CUSTOMER, own, line_ppm)
    population.books.move(Purse.AUDIT_BUDGET, Purse.LOCKED, canaries)
    population.locked_uc[0] += crowd + canaries + own + _bonuses(population, own)


def pay_for_checks(population: Population, audits: ExecutionColumns, rewards_uc: Integers, wrong: Flags) -> None:
    """Auditors are paid like anybody, unless found wrong. The house's executions are paid to the outside."""
    house = audits.rows == HOUSE
    earned = population.sums(audits.rows[~house & ~wrong], rewards_uc[~house & ~wrong])
    population.books.move(Purse.AUDIT_BUDGET, Purse.LOCKED, earned)
    population.locked_uc[0] += earned
    population.books.move_one(Purse.AUDIT_BUDGET, Purse.EXTERNAL, int(rewards_uc[house].sum()))


def settle(population: Population, new: Flags) -> None:
    """Close the oldest window: repay debts, hold back from newcomers, pay out the rest; open the next."""
    rules, books = population.scenario.rules, population.books
    released = population.locked_uc[-1].copy()
    repaid = np.minimum(population.owed_uc, released * rules.findings.repaid_ppm // ONE_PPM)
    books.move(Purse.LOCKED, Purse.AUDIT_BUDGET, repaid)
    population.owed_uc -= repaid
    held_back = np.where(new, released * rules.holding_back.held_back_ppm // ONE_PPM, 0)
    held_back = np.minimum(held_back, released - repaid)
    freed = np.where(new, 0, population.held_back_uc)
    books.move(Purse.LOCKED, Purse.AVAILABLE, released - repaid - held_back + freed)
    population.held_back_uc += held_back - freed
    for windows in (population.locked_uc, population.unseen, population.unseen_wrong):
        windows[1:] = windows[:-1].copy()
        windows[0] = 0


def cover_checks(population: Population) -> None:
    """The commission covers checks that customers did not pay for; and the outside pays the crowd's bills."""
    books = population.books
    short = max(0, -books.pool[Purse.AUDIT_BUDGET])
    books.move_one(Purse.COMMISSION, Purse.AUDIT_BUDGET, short)
    debt = -books.pool[Purse.CROWD]
    if debt > 0:
        books.move_one(Purse.EXTERNAL, Purse.CROWD, debt)
    else:
        books.move_one(Purse.CROWD, Purse.EXTERNAL, -debt)


def payment_uc_of(population: Population, prices_uc: Integers) -> Integers:
    """The price and the commission on it, rounded up as production does."""
    paid: Integers = prices_uc - (-prices_uc * population.scenario.rules.plan.commission_ppm // ONE_PPM)
    return paid


def _buy(population: Population, purse: Purse, prices_uc: Integers, line_ppm: int) -> None:
    """The price to the provider, the commission to the pool and its bonus fund, and the line for verification."""
    books = population.books
    commission = payment_uc_of(population, prices_uc) - prices_uc
    to_fund = commission * population.scenario.rules.plan.fund_ppm // ONE_PPM
    books.move(purse, Purse.LOCKED, prices_uc)
    books.move(purse, Purse.BONUS_FUND, to_fund)
    books.move(purse, Purse.COMMISSION, commission - to_fund)
    books.move(purse, Purse.AUDIT_BUDGET, prices_uc * line_ppm // ONE_PPM)


def _bonuses(population: Population, own_uc: Integers) -> Integers:
    """Whoever orders from themselves always gets the highest bonus, to show that they lose even so."""
    rules, books = population.scenario.rules, population.books
    bonuses = np.zeros(population.rows, dtype=np.int64)
    left_uc = books.pool[Purse.BONUS_FUND]
    for row in np.flatnonzero(own_uc).tolist():
        bonus_uc = attempt_pay(
            rules.plan, PayTerms(int(own_uc[row]), 18 * HOUR_MS), UsedTime(HOUR_MS, HOUR_MS)
        ).bonus_uc
        bonuses[row] = min(left_uc, bonus_uc)
        left_uc -= int(bonuses[row])
    books.move(Purse.BONUS_FUND, Purse.LOCKED, bonuses)
    return bonuses
