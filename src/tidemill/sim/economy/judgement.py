"""Consequences of a step's checks: records, charges, looks back, severe findings. Production's rules, row by row."""

from dataclasses import dataclass

import numpy as np

from tidemill.core.settings.kinds.quantities import ONE_PPM
from tidemill.core.trust.audits.rates import audit_rates
from tidemill.core.trust.charges import charges_uc
from tidemill.core.trust.reputation import Misstep, penalty_points
from tidemill.sim.economy.answers import HOUSE, RIGHT, Auditors
from tidemill.sim.economy.books import Purse
from tidemill.sim.economy.checks import StepChecks
from tidemill.sim.economy.placement import StepWork
from tidemill.sim.economy.population import Population
from tidemill.sim.economy.strategies.interface import Flags, Floats, Integers


@dataclass
class StepFindings:
    """One element an account: wrong results confirmed in this step, and the charges for them."""

    wrong: Integers
    charged_uc: Integers


def found_wrong(population: Population, work: StepWork, checked: StepChecks) -> StepFindings:
    """Every confirmed wrong result, of workers and of auditors."""
    rules = population.scenario.rules.audit
    rows, rewards, rates = work.rows[checked.wrong], work.rewards_uc[checked.wrong], checked.rates[checked.wrong]
    by_owner = checked.auditor_wrong & (checked.auditor.rows != HOUSE)
    audit_rows, audit_rewards = checked.auditor.rows[by_owner], checked.auditor_rewards_uc[by_owner]
    own_rates = audit_rates(
        population.right_in_a_row[audit_rows],
        population.failures[audit_rows],
        audit_rewards,
        (population.deposit_uc() + population.unsettled_uc())[audit_rows],
        checked.collusion,
        rules,
    )
    all_rows = np.concatenate([rows, audit_rows])
    all_rewards, all_rates = np.concatenate([rewards, audit_rewards]), np.concatenate([rates, own_rates])
    charged = charges_uc(all_rewards, all_rates, checked.collusion, rules)
    return StepFindings(population.sums(all_rows), population.sums(all_rows, charged))


def luck_of_errors_uc(population: Population, work: StepWork, checked: StepChecks) -> Floats:
    """How much more hardware errors cost in this step than expected, one element an account.

    Computed work errs at the rate of the hardware, and is checked at the rate of the draw.
    """
    scenario = population.scenario
    computed = ~checked.first.cheated & ~work.ours
    lost = work.rewards_uc + charges_uc(work.rewards_uc, checked.rates, checked.collusion, scenario.rules.audit)
    looked_at = np.where(work.canary, 1.0, checked.rates)
    erred = (checked.first.answers != RIGHT) & (checked.audited | work.canary)
    excess = lost * computed * (erred - scenario.hardware_error * looked_at)
    luck: Floats = np.bincount(work.rows, excess, minlength=population.rows).astype(np.float64)
    return luck


def judge(
    population: Population,
    findings: StepFindings,
    implausible: Flags,
    auditors: Auditors,
    *,
    step: int,
    draws: np.random.Generator,
) -> int:
    """Open a case against everyone found wrong, look back, and take what the rules take.

    Returns what the looks back cost, in micro-credits of work.
    """
    rules = population.scenario.rules
    looked = (findings.wrong > 0) | implausible
    unseen, wrong = population.unseen.sum(axis=0), population.unseen_wrong.sum(axis=0)
    size = np.where(looked, np.minimum(unseen, rules.findings.look_back_results), 0)
    siding = auditors.side_with(population) * auditors.beyond_the_house(int(size.sum()))
    seen_wrong = _seen(wrong, unseen, size, siding, draws)
    # Without a wrong result to begin with, the first one that the look back finds is the finding.
    further_wrong = findings.wrong + seen_wrong - 1
    further = np.where(
        looked & (further_wrong == rules.findings.severe_wrong_results),
        np.minimum(unseen - size, rules.findings.look_back_results),
        0,
    )
    more_unseen = unseen > size
    seen_wrong += (again := _seen(wrong - seen_wrong, unseen - size, further, siding, draws))
    severe = looked & (further_wrong + again >= rules.findings.severe_wrong_results + more_unseen)
    usual_uc = population.unsettled_uc() // np.maximum(1, unseen)
    look_back_uc = int(((size + further) * usual_uc).sum())
    _remember(population, findings, looked, severe, step)
    per_wrong = findings.charged_uc // np.maximum(1, findings.wrong)
    _charge(population, np.where(severe, 0, findings.charged_uc + seen_wrong * per_wrong))
    _slash(population, severe)
    return look_back_uc


def _seen(wrong: Integers, unseen: Integers, size: Integers, siding: Floats, draws: np.random.Generator) -> Integers:
    """How many wrong results a look at so many finds, when some auditors side with the owner."""
    wrong_unseen = np.clip(wrong, 0, unseen)
    wrong_seen: Integers = draws.binomial(draws.hypergeometric(wrong_unseen, unseen - wrong_unseen, size), 1 - siding)
    return wrong_seen


def _remember(population: Population, findings: StepFindings, looked: Flags, severe: Flags, step: int) -> None:
    rules = population.scenario.rules.reputation
    guilty = looked & (severe | (findings.wrong > 0))
    population.right_in_a_row[guilty] = 0
    population.penalties += findings.wrong * penalty_points(Misstep.MEDIUM, rules)
    population.penalties += severe * penalty_points(Misstep.SEVERE, rules)
    population.found += guilty
    population.severe += severe
    first = guilty & (population.first_found < 0) & (population.cheated > 0)
    population.first_found[first] = step


def _charge(population: Population, charged_uc: Integers) -> None:
    """Take charges from unsettled rewards, the newest first; the rest becomes debt."""
    remaining = charged_uc.copy()
    for window in range(len(population.locked_uc)):
        part = np.minimum(remaining, population.locked_uc[window])
        population.locked_uc[window] -= part
        remaining -= part
    population.books.move(Purse.LOCKED, Purse.AUDIT_BUDGET, charged_uc - remaining)
    population.owed_uc += remaining


def _slash(population: Population, severe: Flags) -> None:
    """Void everything unsettled and held back, and take part of the stake."""
    rules, books = population.scenario.rules, population.books
    void = np.where(severe, population.unsettled_uc(), 0)
    books.move(Purse.LOCKED, Purse.CROWD, void)
    population.locked_uc[:, severe] = 0
    population.unseen[:, severe] = population.unseen_wrong[:, severe] = 0
    held_back = np.where(severe, population.held_back_uc, 0)
    population.held_back_uc -= held_back
    slashed = np.where(severe, books[Purse.STAKE] * rules.findings.severe_stake_ppm // ONE_PPM, 0)
    for purse, amounts in ((Purse.LOCKED, held_back), (Purse.STAKE, slashed)):
        to_fund = amounts * rules.findings.to_fund_ppm // ONE_PPM
        books.move(purse, Purse.BONUS_FUND, to_fund)
        books.move(purse, Purse.AUDIT_BUDGET, amounts - to_fund)
    population.stake_lost += severe & (slashed > 0)
    population.stake_lost_uc += slashed
    population.active[severe] = False
