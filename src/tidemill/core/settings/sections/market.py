"""Settings of the marketplace: what an hour costs where its owner has set no price, and what a quote is good for."""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.kinds.quantities import CREDITS, DURATION, INTEGER


@dataclass(frozen=True)
class MarketSettings:
    """Prices and quotes of jobs."""

    default_hourly_uc: int = setting(
        CREDITS, "0.2", meaning="What a device-hour costs on a node whose owner has set no price."
    )
    quote_valid_s: float = setting(
        DURATION, "15m", low="1s", high="7d", meaning="How long a quote can be confirmed at the price it names."
    )
    tasks_max: int = setting(
        INTEGER, 1_000, unit="tasks", low=1, high=10_000, meaning="The most tasks that one job is divided into."
    )
    unconfirmed_max: int = setting(
        INTEGER, 1_000, unit="jobs", low=1, meaning="The most jobs of one account that wait to be confirmed."
    )
    deadline_s: float = setting(
        DURATION, "24h", low="1m", high="90d", meaning="The deadline of a job that has none of its own, at the least."
    )
