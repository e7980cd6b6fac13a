"""Settings of money: commission, plans, bonus fund, issuance, contribution, epochs, offers, stake.

Whatever multiplies an amount is an integer in parts per million; amounts are integers in micro-credits.
"""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.quantities import CREDITS, DURATION, FACTOR_PPM, INTEGER, MEMORY, NUMBER, SHARE_PPM
from tidemill.core.settings.texts import SWITCH, TEXT


@dataclass(frozen=True)
class MoneySettings:
    """The currency, and what the pool takes."""

    currency: str = setting(TEXT, "credit", meaning="The name of the internal currency.")
    credit_usd_ppm: int = setting(
        FACTOR_PPM,
        1,
        low="0.000001",
        unit="USD/credit",
        critical=True,
        meaning="What one credit is worth in US dollars.",
    )
    commission_ppm: int = setting(
        SHARE_PPM,
        "10%",
        critical=True,
        meaning="What a customer pays on top of the provider's price, unless a provider has another.",
    )
    burn_ppm: int = setting(SHARE_PPM, 0, critical=True, meaning="The share of the commission that is burnt.")
    self_trade_loss_ppm: int = setting(
        SHARE_PPM,
        "1%",
        critical=True,
        meaning="The share of every payment that no plan may pay out, so that trading with oneself loses.",
    )


@dataclass(frozen=True)
class BonusFundSettings:
    """The fund that bonuses come from, and shrink to."""

    commission_ppm: int = setting(
        SHARE_PPM, "20%", critical=True, meaning="The share of the commission that goes into the fund."
    )
    slashes_ppm: int = setting(
        SHARE_PPM, "50%", critical=True, meaning="The share of every slash that goes into the fund."
    )


@dataclass(frozen=True)
class IssuanceSettings:
    """New credits for network benchmark tasks; off unless an operator turns it on."""

    enabled: bool = setting(SWITCH, False, critical=True, meaning="Whether new credits are issued at all.")
    epoch_cap_uc: int = setting(
        CREDITS, 0, critical=True, meaning="The most credits issued in one epoch; needed to turn it on."
    )
    benchmark: float = setting(NUMBER, 100, unit="points", meaning="The points of one unit of benchmark work.")
    operations: int = setting(
        INTEGER,
        1_000_000,
        unit="multiplications",
        low=1,
        meaning="The multiplications (M × N × K) that make one unit of benchmark work.",
    )


@dataclass(frozen=True)
class PlansSettings:
    """How a provider's price becomes a reward, by kind of work."""

    market_early_ppm: int = setting(
        SHARE_PPM, "10%", meaning="The bonus for finishing early, as a share of the unused part of the price."
    )
    market_early_most_ppm: int = setting(
        SHARE_PPM, "10%", meaning="The most that bonus may be, as a share of the price."
    )
    inference_low_ppm: int = setting(
        FACTOR_PPM, 0.9, high=10, meaning="The multiplier of an inference job's price at the lowest reputation."
    )
    inference_high_ppm: int = setting(
        FACTOR_PPM, 1.1, high=10, meaning="The multiplier of an inference job's price at the highest reputation."
    )
    inference_fast_ppm: int = setting(
        SHARE_PPM, "80%", meaning="An inference job is fast below this share of its expected time."
    )
    inference_fast_bonus_ppm: int = setting(
        SHARE_PPM, "10%", meaning="The bonus for a fast inference job, as a share of the price."
    )
    training_samples_ppm: int = setting(
        SHARE_PPM, "20%", meaning="What a node that trained on all samples is paid on top, as a share of the price."
    )


@dataclass(frozen=True)
class QualitySettings:
    """The quality of a result, which multiplies what it counts for."""

    low_ppm: int = setting(FACTOR_PPM, 0.8, meaning="The lowest quality, after retries and late results.")
    passed_ppm: int = setting(FACTOR_PPM, 1, meaning="The quality of a plain pass.")
    high_ppm: int = setting(FACTOR_PPM, 1.2, high=10, meaning="The highest quality, for exact results in good time.")


@dataclass(frozen=True)
class NvlinkSettings:
    """What links between devices are worth; the value policy divides by the highest."""

    without_ppm: int = setting(FACTOR_PPM, 1, low="1%", meaning="The factor of a node without NVLink.")
    low_ppm: int = setting(FACTOR_PPM, 1.2, low="1%", meaning="The lowest factor of measured NVLink.")
    high_ppm: int = setting(FACTOR_PPM, 1.5, low="1%", high=10, meaning="The highest factor of measured NVLink.")


@dataclass(frozen=True)
class ContributionSettings:
    """How verified work counts for a share of pooled revenue; the four weights sum to 1."""

    base_ppm: int = setting(SHARE_PPM, 0.5, meaning="The weight of verified work itself.")
    uptime_ppm: int = setting(SHARE_PPM, 0.2, meaning="The weight of the node's uptime.")
    success_ppm: int = setting(SHARE_PPM, 0.2, meaning="The weight of the share of tasks that succeeded.")
    quality_ppm: int = setting(SHARE_PPM, 0.1, meaning="The weight of the quality of results.")


@dataclass(frozen=True)
class EpochsSettings:
    """The periods that are settled at once."""

    length_s: float = setting(DURATION, "7d", low="1m", high="366d", meaning="How long an epoch lasts.")
    contribution_every_s: float = setting(
        DURATION, "1h", low="1s", high="7d", meaning="How often contributions are summed."
    )


@dataclass(frozen=True)
class OffersSettings:
    """The price coefficient of offers that opted in."""

    high_demand_ppm: int = setting(FACTOR_PPM, 1.2, meaning="What a price is multiplied by on high demand.")
    low_demand_ppm: int = setting(FACTOR_PPM, 0.9, meaning="What a price is multiplied by on low demand.")
    coefficient_low_ppm: int = setting(FACTOR_PPM, 0.5, meaning="The lowest coefficient.")
    coefficient_high_ppm: int = setting(FACTOR_PPM, 3, high=100, meaning="The highest coefficient.")


@dataclass(frozen=True)
class StakeSettings:
    """A provider's deposit, by the memory of each device."""

    small_memory_mib: int = setting(MEMORY, "12GiB", meaning="A small device has memory up to this.")
    medium_memory_mib: int = setting(MEMORY, "24GiB", meaning="A medium device has memory up to this.")
    large_memory_mib: int = setting(MEMORY, "48GiB", meaning="A large device has memory up to this; above is largest.")
    small_uc: int = setting(CREDITS, 25, critical=True, meaning="The least stake for a small device.")
    medium_uc: int = setting(CREDITS, 50, critical=True, meaning="The least stake for a medium device.")
    large_uc: int = setting(CREDITS, 150, critical=True, meaning="The least stake for a large device.")
    largest_uc: int = setting(CREDITS, 400, critical=True, meaning="The least stake for a device above large.")
    recommended_ppm: int = setting(
        FACTOR_PPM, 2, low=1, high=100, meaning="The recommended stake, as a multiple of the least."
    )
    timelock_s: float = setting(
        DURATION,
        "7d",
        low="1m",
        high="366d",
        critical=True,
        meaning="How long a stake stays after its owner asked for it back.",
    )
    decay_ppm: int = setting(
        SHARE_PPM, "1%", unit="share/day", critical=True, meaning="The share of a stake an offline node loses a day."
    )
    decay_after_s: float = setting(
        DURATION, "7d", low="1m", high="366d", meaning="A node may be offline for so long before its stake decays."
    )
