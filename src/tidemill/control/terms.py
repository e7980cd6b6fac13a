"""The pool's settings as the terms that core takes: by which work is judged and paid, and by which nodes sell."""

from tidemill.core.clock import SECOND
from tidemill.core.jobs.plans.happenings import WorkTerms
from tidemill.core.jobs.task import RetryLimits
from tidemill.core.nodes.rules.rules import HeatLimits
from tidemill.core.placement.seller import SellerDefaults
from tidemill.core.placement.supply import plan_of
from tidemill.core.settings import Settings


def work_terms(settings: Settings) -> WorkTerms:
    """The rules by which attempts are judged and paid in this pool."""
    jobs = settings.jobs
    patience = RetryLimits(failures_max=jobs.attempts_max)
    return WorkTerms(patience, plan_of(settings.money, settings.bonus_fund, settings.plans))


def selling_terms(settings: Settings) -> SellerDefaults:
    heat = HeatLimits(settings.nodes.pause_above_c, settings.nodes.resume_at_c)
    newcomers = settings.newcomers
    return SellerDefaults(
        settings.market.default_hourly_uc,
        settings.reputation.start_points,
        heat,
        int(newcomers.new_for_s * SECOND),
        newcomers.new_for_results,
    )
