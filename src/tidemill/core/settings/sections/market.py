"""Settings of the marketplace: what an hour costs where its owner has set no price, and what a quote is good for."""

from dataclasses import dataclass

from tidemill.core.settings.definition import SettingScope, setting
from tidemill.core.settings.kinds.quantities import CREDITS, DURATION, INTEGER, SIZE


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
        INTEGER,
        1_000,
        unit="jobs",
        low=1,
        high=100_000,
        meaning="The most jobs of one account that were never confirmed, those called off among them.",
    )
    unconfirmed_max_bytes: int = setting(
        SIZE,
        "16MiB",
        low="1MiB",
        high="1TiB",
        meaning="The most that these jobs, with their orders and quotes, may take in the database.",
    )
    unconfirmed_keep_s: float = setting(
        DURATION, "72h", low="1m", high="366d", meaning="How long such a job is kept after its quote has expired."
    )
    quotes_at_once: int = setting(
        INTEGER,
        2,
        unit="orders",
        low=1,
        high=64,
        scope=SettingScope.PROCESS,
        meaning="How many orders a process prices or confirms at once; one at a time for each account.",
    )
    quotes_waiting_max: int = setting(
        INTEGER,
        20,
        unit="orders",
        low=1,
        high=10_000,
        scope=SettingScope.PROCESS,
        meaning="How many orders of one account may be in line for that.",
    )
    deadline_s: float = setting(
        DURATION, "24h", low="1m", high="90d", meaning="The deadline of a job that has none of its own, at the least."
    )
