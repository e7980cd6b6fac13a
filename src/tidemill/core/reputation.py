"""An owner's reputation: a composite of their record, less penalties; 0 to 1000 points, shown as 0.0 to 100.0.

The composite weighs success by value, speed, uptime and stake, and mixes them with a prior, so that a newcomer starts
at 30.0 and a record has to be long before it speaks. No customer counts for more than a share of an owner's record, so
that an owner and one friend cannot make a record between them. Penalties are repaid by verified successes, never below
none: nothing but verified work raises a reputation.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tidemill.core.settings.trust import ReputationSettings

POINTS_MAX = 1000

Shares = NDArray[np.float64]
Points = NDArray[np.int64]


class Misstep(Enum):
    """What takes points away."""

    LIGHT = "a late result, a crash, or a task declined after accepting"
    MEDIUM = "a wrong result"
    SEVERE = "a severe finding"


@dataclass(frozen=True)
class FromCustomer:
    """An owner's verified record with one customer. Values are what the work was worth, in micro-credits."""

    results: int
    right_value_uc: int
    all_value_uc: int


@dataclass(frozen=True)
class Record:
    """What a reputation is made of. Shares are between 0 and 1; `speed` is expected over actual time."""

    customers: tuple[FromCustomer, ...] = ()
    speed: float = 0.0
    uptime: float = 0.0
    stake_of_recommended: float = 0.0
    penalty_points: int = 0


@dataclass(frozen=True)
class Reputation:
    points: int
    because: str


def reputation(record: Record, rules: ReputationSettings) -> Reputation:
    """An owner's reputation, with the parts it is made of."""
    success, evidence = success_by_value(record.customers, rules)
    parts = [np.array([one]) for one in (success, record.speed, record.uptime, record.stake_of_recommended)]
    made = composites(parts[0], parts[1], parts[2], parts[3], np.array([evidence]), rules)
    points = int(reputations(made, np.array([record.penalty_points]))[0])
    because = (
        f"{points / 10:.1f}: a composite of {float(made[0]) / 10:.1f} (success {success:.1%}, "
        f"speed {record.speed:.1%}, uptime {record.uptime:.1%}, "
        f"stake {min(1.0, record.stake_of_recommended):.1%} of what is recommended, from {evidence:.0f} results), "
        f"less {record.penalty_points / 10:.1f} in penalties."
    )
    return Reputation(points, because)


def success_by_value(customers: Sequence[FromCustomer], rules: ReputationSettings) -> tuple[float, float]:
    """The share of value that was right, and how many results that is evidence of, with every customer capped."""
    total_uc = sum(one.all_value_uc for one in customers)
    if not total_uc:
        return 0.0, 0.0
    cap_uc = total_uc * rules.customer_share
    weights = [min(1.0, cap_uc / max(1, one.all_value_uc)) for one in customers]
    counted = list(zip(customers, weights, strict=True))
    all_uc = sum(one.all_value_uc * weight for one, weight in counted)
    right_uc = sum(one.right_value_uc * weight for one, weight in counted)
    return right_uc / all_uc, sum(one.results * weight for one, weight in counted)


def composites(
    success: Shares, speed: Shares, uptime: Shares, stake: Shares, evidence: Shares, rules: ReputationSettings
) -> Shares:
    """The composites of many owners, in points. `evidence` is the number of results the record consists of."""
    weighted = (
        rules.success_weight * np.clip(success, 0, 1)
        + rules.speed_weight * np.clip(speed, 0, 1)
        + rules.uptime_weight * np.clip(uptime, 0, 1)
        + rules.stake_weight * np.clip(stake, 0, 1)
    )
    prior = rules.prior_results
    mixed: Shares = (prior * rules.start_points + evidence * weighted * POINTS_MAX) / (prior + evidence)
    return mixed


def reputations(made: Shares, penalties: Points) -> Points:
    """Composites less penalties, as whole points between none and all."""
    points: Points = np.clip(np.rint(made).astype(np.int64) - penalties, 0, POINTS_MAX)
    return points


def suspended(points: Points, rules: ReputationSettings) -> NDArray[np.bool_]:
    """Who gets no work until an operator has looked: nobody comes so low by errors alone."""
    low: NDArray[np.bool_] = points < rules.suspended_below_points
    return low


def penalised(record: Record, misstep: Misstep, rules: ReputationSettings) -> Record:
    return replace(record, penalty_points=record.penalty_points + penalty_points(misstep, rules))


def repaid(record: Record, successes: int, rules: ReputationSettings) -> Record:
    """After so many verified successes."""
    return replace(record, penalty_points=max(0, record.penalty_points - successes * rules.repaid_points))


def penalty_points(misstep: Misstep, rules: ReputationSettings) -> int:
    points = {
        Misstep.LIGHT: rules.light_penalty_points,
        Misstep.MEDIUM: rules.medium_penalty_points,
        Misstep.SEVERE: rules.severe_penalty_points,
    }
    return points[misstep]
