"""An owner's reputation: a composite of their record, less penalties; 0 to 1000 points, shown as 0.0 to 100.0.

The composite weighs success by value, speed, uptime and stake, and mixes them with a prior, so that a newcomer starts
at 30.0 and only a long record moves it.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from tidemill.core.settings.sections.trust import ReputationSettings

POINTS_MAX = 1000

Shares = NDArray[np.float64]
Points = NDArray[np.int64]


@dataclass(frozen=True)
class ReputationRules:
    """Four weights that sum to 1, the points that missteps cost and verified successes repay, and how long a start
    counts.

    Only the start is a setting: a running pool knows no more of a reputation yet. Below `suspended_below_points` an
    owner gets no work. `customer_share` is the most that one customer counts for.
    """

    success_weight: float = 0.5
    speed_weight: float = 0.2
    uptime_weight: float = 0.2
    stake_weight: float = 0.1
    start_points: int = ReputationSettings().start_points
    light_penalty_points: int = 50
    medium_penalty_points: int = 150
    severe_penalty_points: int = 300
    repaid_points: int = 1
    prior_results: int = 50
    suspended_below_points: int = 100
    customer_share: float = 0.2


class Misstep(Enum):
    """What takes points away."""

    LIGHT = "a late result, a crash, or a task declined after accepting"
    MEDIUM = "a wrong result"
    SEVERE = "a severe finding"


def composites(
    success: Shares, speed: Shares, uptime: Shares, stake: Shares, evidence: Shares, rules: ReputationRules
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


def reputations(composites_: Shares, penalties: Points) -> Points:
    """Composites minus penalties, as whole points within bounds."""
    points: Points = np.clip(np.rint(composites_).astype(np.int64) - penalties, 0, POINTS_MAX)
    return points


def suspended(points: Points, rules: ReputationRules) -> NDArray[np.bool_]:
    """Who gets no work until an operator has looked: errors alone never bring an owner so low."""
    low: NDArray[np.bool_] = points < rules.suspended_below_points
    return low


def penalty_points(misstep: Misstep, rules: ReputationRules) -> int:
    points = {
        Misstep.LIGHT: rules.light_penalty_points,
        Misstep.MEDIUM: rules.medium_penalty_points,
        Misstep.SEVERE: rules.severe_penalty_points,
    }
    return points[misstep]
