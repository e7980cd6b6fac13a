"""Owners without a record: which placements are kept for them, and when they wait.

A share of placements is kept for newcomers, so that they can earn a record, but never more than their share of the
pool's capacity: if being new brought more work than a record does, owners would start over again and again. When
audits cost more than their budget, newcomers get only that share and the work that nobody else can take.
"""

from dataclasses import dataclass

from tidemill.core.settings.sections.trust import NewcomersSettings
from tidemill.core.trust.rules import AuditRules


@dataclass(frozen=True)
class Throttle:
    """Whether newcomers wait, and why."""

    on: bool
    because: str


def kept_share(capacity_share: float, rules: NewcomersSettings) -> float:
    """The share of placements kept for newcomers who have this share of the capacity."""
    return min(rules.placements, capacity_share)


def throttle(checks_uc: int, work_uc: int, rules: AuditRules) -> Throttle:
    """Whether the recent cost of checks, as a share of all work, is above their budget."""
    share = checks_uc / work_uc if work_uc else 0.0
    if share <= rules.budget:
        return Throttle(False, f"Checks took {share:.1%} of the work, within their budget of {rules.budget:.0%}.")
    return Throttle(
        True,
        f"Checks took {share:.1%} of the work, above their budget of {rules.budget:.0%}: newcomers, whose every result "
        "is checked, get the placements kept for them and what nobody else can take.",
    )
