"""Amounts of money as people and JSON write them: decimal credits outside, whole micro-credits inside.

Nothing is rounded: an amount that cannot be kept exactly is refused. No amount asked for is negative.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal

from tidemill.core.refusals import Refusal

CREDIT_UC = 1_000_000

AMOUNT_MAX_UC = 10**15
"""A thousand million credits: no sum of entries can then overflow the database's integers."""

_WRITTEN = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_MICRO_CREDIT = Decimal("0.000001")
_WIDE = Context(prec=40)
"""Holds every amount up to the largest, whatever context the process has set."""


class MoneyRefusal(Refusal):
    AMOUNT_MALFORMED = "An amount is a decimal number of credits, such as 12.5: send digits, and a point if needed."
    AMOUNT_NEGATIVE = "An amount cannot be negative: leave out the sign."
    AMOUNT_TOO_LARGE = "An amount is at most a thousand million credits: divide it into several."
    AMOUNT_TOO_FINE = "An amount has at most six decimal places: a micro-credit cannot be divided."


@dataclass(frozen=True)
class AmountObjection:
    """A refusal with the amounts that are in the way, by name, and a sentence that says what to do about them."""

    refusal: Refusal
    sentence: str
    amounts: Mapping[str, int]
    """In micro-credits."""


def credits_of(amount_uc: int) -> str:
    """Micro-credits as people write them: a decimal number with up to six places."""
    units, rest_uc = divmod(abs(amount_uc), CREDIT_UC)
    places = f".{rest_uc:06}".rstrip("0").rstrip(".")
    return f"{'-' if amount_uc < 0 else ''}{units}{places}"


def amount_words(amount_uc: int, currency: str) -> str:
    """An amount with the name of the pool's credit."""
    return f"{credits_of(amount_uc)} {currency}{'' if amount_uc == CREDIT_UC else 's'}"


def micro_credits(amount: object) -> int | MoneyRefusal:
    """The inverse, for what somebody asks for: a text, or a number as a JSON parser gives it."""
    value = _decimal(amount)
    if value is None or not value.is_finite():
        return MoneyRefusal.AMOUNT_MALFORMED
    if value < 0:
        return MoneyRefusal.AMOUNT_NEGATIVE
    if value > AMOUNT_MAX_UC // CREDIT_UC:  # an exact comparison, which 1e999999999 does not slow down
        return MoneyRefusal.AMOUNT_TOO_LARGE
    rounded = value.quantize(_MICRO_CREDIT, ROUND_DOWN, _WIDE)
    return int(rounded.scaleb(6, _WIDE)) if rounded == value else MoneyRefusal.AMOUNT_TOO_FINE


def _decimal(amount: object) -> Decimal | None:
    """Up to the largest amount, floats are so dense that each amount has one which prints as it."""
    if isinstance(amount, str):
        return Decimal(amount) if _WRITTEN.fullmatch(amount) else None
    if isinstance(amount, float):
        return Decimal(repr(amount))
    return Decimal(amount) if isinstance(amount, int | Decimal) and not isinstance(amount, bool) else None
