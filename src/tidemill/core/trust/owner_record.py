"""What an owner's record says: how many attempts were verified, and what others came to."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from tidemill.core.jobs.plans.work_plan import WorkPlan
from tidemill.core.jobs.task import Blame


class AttemptCounts(NamedTuple):
    """How many attempts passed, came late, failed, were declined after they had been accepted, or were wrong."""

    verified: int = 0
    late: int = 0
    crashed: int = 0
    broke_its_word: int = 0
    wrong: int = 0


def told_by(plan: WorkPlan) -> Mapping[UUID, AttemptCounts]:
    """What a plan tells the record of each owner."""
    verified = Counter(paid.owner_id for paid in plan.paid if paid.is_verified)
    blames: dict[UUID, Counter[Blame]] = defaultdict(Counter)
    for owner_id, blame in plan.blames:
        blames[owner_id][blame] += 1
    return {
        owner_id: AttemptCounts(
            verified[owner_id],
            blames[owner_id][Blame.LATE],
            blames[owner_id][Blame.CRASHED],
            blames[owner_id][Blame.BROKE_ITS_WORD],
            blames[owner_id][Blame.WRONG],
        )
        for owner_id in {*verified, *blames}
    }
