"""Quantities as customers write them: 500GB, 70B, 2h, and ranges such as 24GB.. or 1..16 or ..2.5.

Unreadable text is None; the caller names the field and says what it must be. Nothing that somebody meant is rounded
away, and no text yields a number that is not finite or is larger than we count.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from tidemill.core.settings.kinds.quantities import BYTES, MEBIBYTES, PLAIN, TIME

Units = Mapping[str, Decimal]

COUNT: Units = MappingProxyType(
    {"": Decimal(1)} | {letter: Decimal(1000**power) for power, letter in enumerate("kmbt", start=1)}
)
"""Units for the parameters of models: 70B is seventy thousand million."""

LARGEST = Decimal(10**18)
_WRITTEN = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s{0,3}([A-Za-z]{0,3})", re.ASCII)

__all__ = ["BYTES", "COUNT", "LARGEST", "MEBIBYTES", "PLAIN", "TIME", "Range", "amount", "range_of"]


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both included. None is an open end."""

    low: Decimal | None = None
    high: Decimal | None = None


def amount(raw: object, units: Units) -> Decimal | None:
    """A number, or a text with one of the units, in the base unit."""
    if isinstance(raw, bool) or not isinstance(raw, str | int | float | Decimal):
        return None
    if isinstance(raw, int | float | Decimal):
        value = Decimal(repr(raw)) if isinstance(raw, float) else Decimal(raw)
        return value if value.is_finite() and 0 <= value <= LARGEST else None
    match = _WRITTEN.fullmatch(raw.strip()[:64])
    if match is None or match[2].lower() not in units:
        return None
    value = Decimal(match[1]) * units[match[2].lower()]
    return value if value <= LARGEST else None


def range_of(raw: object, units: Units) -> Range | None:
    """A range with two dots; a single amount is both of its ends."""
    if not isinstance(raw, str) or ".." not in raw:
        alone = amount(raw, units)
        return None if alone is None else Range(alone, alone)
    first, _, final = raw.strip().partition("..")
    low, high = (None if not text.strip() else amount(text, units) for text in (first, final))
    unread = (low is None and first.strip()) or (high is None and final.strip())
    if unread or (low is None and high is None) or (low is not None and high is not None and low > high):
        return None
    return Range(low, high)
