"""Owners without a record: what is held back from them, and which placements are kept for them.

An owner is new until both enough time has passed and enough results were verified. A share of placements is kept for
newcomers, so that a record can be earned, but never more than their share of the pool's capacity: if being new brought
more work than a record does, owners would begin anew again and again. When audits cost more than their budget,
newcomers get that share and what nobody else can take, and no more.
"""

from dataclasses import dataclass

from tidemill.core.clock import SECOND, Instant
from tidemill.core.settings.quantities import ONE_PPM
from tidemill.core.settings.trust import AuditSettings, NewcomersSettings


@dataclass(frozen=True)
class Throttle:
    """Whether newcomers wait, and why."""

    on: bool
    because: str


@dataclass(frozen=True)
class Preference:
    """Whether newcomers come first, and why."""

    on: bool
    because: str


def is_new(joined_at: Instant, verified_results: int, now: Instant, rules: NewcomersSettings) -> bool:
    return now - joined_at < rules.new_for_s * SECOND or verified_results < rules.new_for_results


def held_back_uc(reward_uc: int, *, new: bool, rules: NewcomersSettings) -> int:
    """The part of a reward that stays until its owner is new no longer. Rounded down: never more than was said."""
    return reward_uc * rules.held_back_ppm // ONE_PPM if new else 0


def kept_share(capacity_share: float, rules: NewcomersSettings) -> float:
    """The share of placements kept for newcomers who have this share of the capacity."""
    return min(rules.placements, capacity_share)


def looks_among_newcomers(had_share: float, capacity_share: float, rules: NewcomersSettings) -> Preference:
    """Whether the next placement looks among newcomers first: until they had the share that is kept for them."""
    kept = kept_share(capacity_share, rules)
    return Preference(
        had_share < kept, f"Newcomers had {had_share:.1%} of recent placements; {kept:.1%} are kept for them."
    )


def throttle(checks_uc: int, work_uc: int, rules: AuditSettings) -> Throttle:
    """Whether what checks cost lately, as a share of all work, is above their budget."""
    share = checks_uc / work_uc if work_uc else 0.0
    if share <= rules.budget:
        return Throttle(False, f"Checks took {share:.1%} of the work, within their budget of {rules.budget:.0%}.")
    return Throttle(
        True,
        f"Checks took {share:.1%} of the work, above their budget of {rules.budget:.0%}: newcomers, whose every result "
        "is checked, get the placements kept for them and what nobody else can take.",
    )
