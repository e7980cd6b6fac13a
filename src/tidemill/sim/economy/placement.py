"""Which account gets how much work in a step.

Work goes by reputation, weakly: the default policy gives it four tenths of the score. Newcomers have the share that is
kept for them; when checks cost more than their budget, they get only that share and what nobody else can take. Nobody
gets more than the exposure allows.
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

    `luck_uc` has an element an account: how much more the drawn work is worth than expected.
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
    """Everybody's tasks in this step."""
    scenario = population.scenario
    may = population.active & ~suspended(reputations, scenario.rules.reputation)
    capacity = may * population.devices * (STEP_HOURS / scenario.task_hours) * population.uptime
    wished = capacity * choices.appetite * (1 - choices.self_traded)
    demand = scenario.demand * float((capacity / population.accounts_of_person(may)).sum())
    weights = wished * weights_of(reputations)
    held_up = population.unproven() if throttled else np.zeros(population.rows, dtype=bool)
    newcomers_share = kept_share(float(wished[new].sum()) / max(1.0, float(wished.sum())), scenario.rules.newcomers)
    expected = _shares(weights, wished, new, held_up, demand, newcomers_share)
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
    """The weight of reputations in placement, where everything else is equal."""
    weights: Floats = 1 - REPUTATION_WEIGHT + REPUTATION_WEIGHT * reputations / POINTS_MAX
    return weights


def _shares(
    weights: Floats, wished: Floats, new: Flags, held_up: Flags, demand: float, newcomers_share: float
) -> Floats:
    """How much of the demand each account is expected to get: by weight, and newcomers at least their kept share."""
    shares = _poured(np.where(held_up, 0, weights), wished, demand)
    for_new = newcomers_share * demand - float(shares[new].sum())
    if for_new > 0:
        shares = np.where(new, 0, _poured(np.where(new | held_up, 0, weights), wished, demand * (1 - newcomers_share)))
        shares += _poured(np.where(new, weights, 0), wished, demand * newcomers_share)
    return shares + _poured(np.where(held_up, weights, 0), wished - shares, demand - float(shares.sum()))


def _poured(weights: Floats, room: Floats, amount: float) -> Floats:
    """Divide an amount by weight; nobody gets more than their room."""
    parts = np.zeros_like(weights)
    for _ in range(6):
        open_weights = np.where(parts < room, weights, 0.0)
        total = float(open_weights.sum())
        rest = amount - float(parts.sum())
        if total <= 0 or rest <= 1e-9:
            break
        parts = np.minimum(room, parts + rest * open_weights / total)
    return parts


def _rewards(population: Population, rows: Integers, draws: np.random.Generator) -> Integers:
    scenario = population.scenario
    spread = scenario.task_spread
    hours = scenario.task_hours * draws.lognormal(-spread * spread / 2, spread, len(rows))
    rewards: Integers = np.maximum(1, population.price_uc[rows] * hours).astype(np.int64)
    return rewards


def _within(population: Population, rows: Integers, rewards_uc: Integers) -> NDArray[np.bool_]:
    """Which tasks fit into their owner's exposure, in the order in which they came."""
    by_row = np.argsort(rows, kind="stable")
    sums = np.cumsum(rewards_uc[by_row])
    before = np.concatenate([[0], sums[:-1]])
    firsts = np.concatenate([[True], np.diff(rows[by_row]) > 0]) if len(rows) else np.zeros(0, dtype=bool)
    starts = np.maximum.accumulate(np.where(firsts, before, 0))
    fits = np.zeros(len(rows), dtype=bool)
    fits[by_row] = sums - starts <= population.room_uc()[rows[by_row]]
    return fits
