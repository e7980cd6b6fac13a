"""The checks of a step: which tasks are drawn, what the second and third executions answer, and who is wrong.

The rate of each task is production's, for what its owner has to lose at that moment. Where two answers differ, a third
decides; an answer that stands alone is wrong, and three different answers are nobody's fault.
"""

from dataclasses import dataclass

import numpy as np

from tidemill.core.trust.audits.rates import assumed_collusion, audit_rates
from tidemill.sim.economy.answers import HOUSE, RIGHT, AnswerMaker, Auditors, ExecutionColumns
from tidemill.sim.economy.placement import StepWork
from tidemill.sim.economy.population import Population
from tidemill.sim.economy.strategies.interface import Flags, Floats, Integers


@dataclass
class StepChecks:
    """The results of a step's checks. Flags have one element a task; `audits` are the executions that checked them."""

    first: ExecutionColumns
    rates: Floats
    audited: Flags
    wrong: Flags
    auditor: ExecutionColumns
    auditor_rewards_uc: Integers
    auditor_wrong: Flags
    third: ExecutionColumns
    third_rewards_uc: Integers
    collusion: float


def check(population: Population, work: StepWork, executions: AnswerMaker, auditors: Auditors) -> StepChecks:
    """Execute the tasks of a step, and some of them again."""
    first = executions.execute(np.where(work.ours, HOUSE, work.rows), work.rewards_uc)
    first.answers[work.ours] = RIGHT  # an accomplice orders tasks that cost nothing to get right
    first.rows = work.rows
    collusion = assumed_collusion(auditors.largest_share, population.scenario.rules.audit)
    rates = _rates(population, work, collusion)
    audited = (executions.draws.random(len(rates)) < rates) & ~work.canary
    second = _audit(executions, auditors, first, work, audited)
    differ = second.answers != first.answers[audited]
    disputed, disputing, rewards = _part(_part(first, audited), differ), _part(second, differ), work.rewards_uc[audited]
    third = _tie(executions, auditors, disputed, disputing, rewards[differ])
    first_wrong, second_wrong = outvoted(disputed.answers, disputing.answers, third.answers)
    wrong = work.canary & (first.answers != RIGHT)
    wrong[np.flatnonzero(audited)[differ]] = first_wrong
    auditor_wrong = np.zeros(len(differ), dtype=bool)
    auditor_wrong[differ] = second_wrong
    return StepChecks(first, rates, audited, wrong, second, rewards, auditor_wrong, third, rewards[differ], collusion)


def outvoted(first: Integers, second: Integers, third: Integers) -> tuple[Flags, Flags]:
    """For answers of which the first two differ: whether the first stands alone, and whether the second does."""
    return third == second, third == first


def _rates(population: Population, work: StepWork, collusion: float) -> Floats:
    at_risk = population.deposit_uc() + population.unsettled_uc()
    return audit_rates(
        population.right_in_a_row[work.rows],
        population.failures[work.rows],
        work.rewards_uc,
        at_risk[work.rows],
        collusion,
        population.scenario.rules.audit,
    )


def _audit(
    executions: AnswerMaker, auditors: Auditors, first: ExecutionColumns, work: StepWork, audited: Flags
) -> ExecutionColumns:
    checked = _part(first, audited)
    audits = executions.execute(auditors.draw(checked.rows), work.rewards_uc[audited])
    return executions.say_the_same(audits, checked)


def _tie(
    executions: AnswerMaker, auditors: Auditors, first: ExecutionColumns, second: ExecutionColumns, rewards_uc: Integers
) -> ExecutionColumns:
    """The third execution where two differ, by the house or by a third owner."""
    third = executions.execute(auditors.draw(first.rows, second.rows), rewards_uc)
    return executions.say_the_same(executions.say_the_same(third, second), first)


def _part(executions: ExecutionColumns, mask: Flags) -> ExecutionColumns:
    return ExecutionColumns(
        executions.rows[mask], executions.answers[mask], executions.cheated[mask], executions.copied[mask]
    )
