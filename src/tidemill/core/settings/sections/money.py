"""Settings of money: the currency, commission, bonus fund, plans, NVLink.

Whatever multiplies an amount is an integer in parts per million; amounts are integers in micro-credits.
"""

from dataclasses import dataclass

from tidemill.core.settings.definition import setting
from tidemill.core.settings.kinds.quantities import CREDITS, FACTOR_PPM, SHARE_PPM
from tidemill.core.settings.kinds.texts import TEXT


@dataclass(frozen=True)
class MoneySettings:
    """The currency, and what the pool takes."""

    currency: str = setting(TEXT, "credit", meaning="What the pool calls its credit, wherever it shows an amount.")
    commission_ppm: int = setting(
        SHARE_PPM, "10%", critical=True, meaning="What a customer pays on top of the provider's price."
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


@dataclass(frozen=True)
class PlansSettings:
    """How a provider's price becomes a reward."""

    market_early_ppm: int = setting(
        SHARE_PPM, "10%", meaning="The bonus for finishing early, as a share of the unused part of the price."
    )
    market_early_most_ppm: int = setting(
        SHARE_PPM, "10%", meaning="The most that bonus may be, as a share of the price."
    )
    attempt_minimum_uc: int = setting(
        CREDITS, "0.0001", meaning="The least reward of a result that passes, which covers the start of its sandbox."
    )


@dataclass(frozen=True)
class NvlinkSettings:
    """What links between devices are worth; the value policy divides by the highest."""

    without_ppm: int = setting(FACTOR_PPM, 1, low="1%", meaning="The factor of a node without NVLink.")
    low_ppm: int = setting(FACTOR_PPM, 1.2, low="1%", meaning="The lowest factor of measured NVLink.")
    high_ppm: int = setting(FACTOR_PPM, 1.5, low="1%", high=10, meaning="The highest factor of measured NVLink.")
