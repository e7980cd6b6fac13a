"""Which account gets how much work in a step.

Work goes by reputation, weakly: the default policy gives it four tenths of the score. Newcomers have the share that is
kept for them; when checks cost more than their budget, they get that share and what nobody else can take. Nobody gets
more than the exposure allows.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidemill.core.settings.sections.work import ValuePolicySettings
from tidemill.core.trust.newcomers import kept_share
from tidemill.core.trust.reputation import POINTS_MAX, suspended
from tidemill.sim.economy.population import Population
from tidemill.sim.economy.scenario import STEP_HOURS
from tidemill.sim.economy.strategies.interface import Choices, Flags, Floats, Integers

REPUTATION_WEIGHT = ValuePolicySettings().reputation_weight


@dataclass
class StepWork:
    """The tasks of a step, one element a task. `ours` marks those that an accomplice ordered.

    `luck_uc` has an element an account: how much more the drawn work is worth than what was to be expected.
    """

    rows: Integers
    rewards_uc: Integers
    ours: Flags
    canary: Flags
    luck_uc: Floats


def place(
    population: Population,
    reputations: Integers,
    choices: Choices,
    *,
    new: Flags,
    throttled: bool,
    draws: np.random.Generator,
) -> StepWork:
    """The tasks that everybody gets in this step."""
    scenario = population.scenario
    may = population.active & ~suspended(reputations, scenario.rules.reputation)
    capacity = may * population.devices * (STEP_HOURS / scenario.task_hours) * population.uptime
    wanted = capacity * choices.appetite * (1 - choices.self_traded)
    demand = scenario.demand * float((capacity / population.accounts_of_person(may)).sum())
    weights = wanted * weights_of(reputations)
    held_up = population.unproven() if throttled else np.zeros(population.rows, dtype=bool)
    kept = kept_share(float(wanted[new].sum()) / max(1.0, float(wanted.sum())), scenario.rules.newcomers)
    expected = _shares(weights, wanted, new, held_up, demand, kept)
    orders = draws.poisson(expected), draws.poisson(capacity * choices.self_traded)
    rows = np.concatenate([np.repeat(np.arange(population.rows), many) for many in orders])
    ours = np.arange(len(rows)) >= orders[0].sum()
    rewards = _rewards(population, rows, draws)
    canary = (draws.random(len(rows)) < scenario.rules.audit.canary_rate) & ~ours
    fits = _within(population, rows, rewards)
    drawn_uc = population.sums(rows[~ours], rewards[~ours])
    luck_uc = drawn_uc - expected * population.price_uc * scenario.task_hours
    return StepWork(rows[fits], rewards[fits], ours[fits], canary[fits], luck_uc)


def weights_of(reputations: Integers) -> Floats:
    """How much reputations count for in placement, where everything else is the same."""
    weights: Floats = 1 - REPUTATION_WEIGHT + REPUTATION_WEIGHT * reputations / POINTS_MAX
    return weights


def _shares(weights: Floats, wanted: Floats, new: Flags, held_up: Flags, demand: float, kept: float) -> Floats:
    """How much of the demand each account is expected to get: by weight, but newcomers what is kept for them."""
    given = _poured(np.where(held_up, 0, weights), wanted, demand)
    for_new = kept * demand - float(given[new].sum())
    if for_new > 0:
        given = np.where(new, 0, _poured(np.where(new | held_up, 0, weights), wanted, demand * (1 - kept)))
        given += _poured(np.where(new, weights, 0), wanted, demand * kept)
    return given + _poured(np.where(held_up, weights, 0), wanted - given, demand - float(given.sum()))


def _poured(weights: Floats, room: Floats, amount: float) -> Floats:
    """Divide an amount by weight, nobody getting more than they can take."""
    given = np.zeros_like(weights)
    for _ in range(6):
        open_weights = np.where(given < room, weights, 0.0)
        total = float(open_weights.sum())
        left = amount - float(given.sum())
        if total <= 0 or left <= 1e-9:
            break
        given = np.minimum(room, given + left * open_weights / total)
    return given


def _rewards(population: Population, rows: Integers, draws: np.random.Generator) -> Integers:
    scenario = population.scenario
    spread = scenario.task_spread
    hours = scenario.task_hours * draws.lognormal(-spread * spread / 2, spread, len(rows))
    rewards: Integers = np.maximum(1, population.price_uc[rows] * hours).astype(np.int64)
    return rewards


def _within(population: Population, rows: Integers, rewards_uc: Integers) -> NDArray[np.bool_]:
    """Which tasks the exposure of their owner has room for, in the order in which they came."""
    order = np.argsort(rows, kind="stable")
    sums = np.cumsum(rewards_uc[order])
    before = np.concatenate([[0], sums[:-1]])
    firsts = np.concatenate([[True], np.diff(rows[order]) > 0]) if len(rows) else np.zeros(0, dtype=bool)
    starts = np.maximum.accumulate(np.where(firsts, before, 0))
    fits = np.zeros(len(rows), dtype=bool)
    fits[order] = sums - starts <= population.room_uc()[rows[order]]
    return fits
