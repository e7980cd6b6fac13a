"""Kinds of settings that are numbers: counts, durations, shares, sizes, amounts.

Factors of money are stored as integers, so that no amount depends on binary fractions: credits as micro-credits, shares
and factors of money as parts per million. Not-a-number, infinity and booleans are no numbers.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import TypeVar

from tidemill.core.settings.kinds.kind import SettingKind, UnreadableValue

T = TypeVar("T")
Units = Mapping[str, Decimal]

ONE_PPM = 1_000_000
DIGITS_MOST = 28  # decimal arithmetic is exact up to here
MAGNITUDE_MOST = 18

PLAIN: Units = MappingProxyType({"": Decimal(1)})
PERCENT: Units = MappingProxyType({"": Decimal(1), "%": Decimal("0.01")})
TIME: Units = MappingProxyType(
    {"": Decimal(1), "ms": Decimal("0.001")}
    | {unit: Decimal(seconds) for unit, seconds in {"s": 1, "m": 60, "h": 3600, "d": 86400}.items()}
)
BYTES: Units = MappingProxyType(
    {"": Decimal(1), "b": Decimal(1)}
    | {f"{letter}ib": Decimal(1024**power) for power, letter in enumerate("kmgt", start=1)}
    | {f"{letter}b": Decimal(1000**power) for power, letter in enumerate("kmgt", start=1)}
)
MEBIBYTES: Units = MappingProxyType({unit: size / 1024**2 for unit, size in BYTES.items()} | {"": Decimal(1)})

_WHOLE = re.compile(r"[+-]?[0-9]{1,25}")
_SPOKEN = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?)\s*([A-Za-z%]*)")


def _read_whole(raw: object) -> int | UnreadableValue:
    if isinstance(raw, str):
        return int(raw) if _WHOLE.fullmatch(raw.strip()) else UnreadableValue()
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else UnreadableValue()


def _decimal(raw: object, units: Units) -> Decimal | UnreadableValue:
    """A number, or a text with one of the units, in the base unit."""
    factor = Decimal(1)
    if isinstance(raw, str):
        match = _SPOKEN.fullmatch(raw.strip())
        if match is None or match[2].lower() not in units:
            return UnreadableValue()
        raw, factor = Decimal(match[1]), units[match[2].lower()]
    if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal):
        return UnreadableValue()
    value = Decimal(repr(raw)) if isinstance(raw, float) else Decimal(raw)
    if not value.is_finite() or len(value.as_tuple().digits) > DIGITS_MOST or value.adjusted() > MAGNITUDE_MOST:
        return UnreadableValue("that is not a number we can count with")
    return value * factor


def _reader(units: Units, finish: Callable[[Decimal], T | UnreadableValue]) -> Callable[[object], T | UnreadableValue]:
    def read(raw: object) -> T | UnreadableValue:
        value = _decimal(raw, units)
        return value if isinstance(value, UnreadableValue) else finish(value)

    return read


def _scaled(places: int) -> Callable[[Decimal], int | UnreadableValue]:
    """Store a decimal number as an integer of its last allowed place; never round what an operator wrote."""

    def finish(value: Decimal) -> int | UnreadableValue:
        moved = value.scaleb(places)
        if moved != moved.to_integral_value():
            return UnreadableValue(f"that has more than {places} decimal {'place' if places == 1 else 'places'}")
        return int(moved)

    return finish


def _whole(value: Decimal) -> int | UnreadableValue:
    return (
        int(value) if value == value.to_integral_value() else UnreadableValue("that is not a whole number of the unit")
    )


def _plain(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _show_scaled(places: int) -> Callable[[int], str]:
    return lambda value: _plain(Decimal(value).scaleb(-places))


def _show_number(value: float) -> str:
    return _plain(Decimal(repr(value)))


def _show_percent(value: float) -> str:
    return _plain(Decimal(repr(value)) * 100) + "%"


def _show_percent_ppm(value: int) -> str:
    return _plain(Decimal(value).scaleb(-4)) + "%"


def _show_duration(value: float) -> str:
    for unit, seconds, least in (("d", 86400, 2 * 86400), ("h", 3600, 3600), ("m", 60, 60)):
        if value >= least and value % seconds == 0:
            return f"{_plain(Decimal(int(value) // seconds))}{unit}"
    return f"{_show_number(value)}s"


def _show_size(names: tuple[str, ...]) -> Callable[[int], str]:
    """In the largest binary unit that needs no fraction; `names` are 1,024 apart."""

    def show(value: int) -> str:
        power = 0
        while value and value % 1024 == 0 and power + 1 < len(names):
            value, power = value // 1024, power + 1
        return f"{value}{names[power]}"

    return show


INTEGER: SettingKind[int] = SettingKind("whole number", "a whole number", _read_whole, str, spoken=False, low=0)
NUMBER: SettingKind[float] = SettingKind(
    "number", "a number", _reader(PLAIN, float), _show_number, spoken=False, low=0.0
)
DURATION: SettingKind[float] = SettingKind(
    "duration",
    'seconds, or a text such as "30s", "5m", "24h" or "7d",',
    _reader(TIME, float),
    _show_duration,
    unit="s",
    low=0.0,
)
SHARE: SettingKind[float] = SettingKind(
    "share",
    'a share such as 0.1 or "10%"',
    _reader(PERCENT, float),
    _show_percent,
    unit="share",
    low=0.0,
    high=1.0,
)
SHARE_PPM: SettingKind[int] = SettingKind(
    "exact share",
    'a share such as 0.1 or "10%", with up to six decimal places,',
    _reader(PERCENT, _scaled(6)),
    _show_percent_ppm,
    unit="share",
    suffix="_ppm",
    low=0,
    high=ONE_PPM,
)
FACTOR_PPM: SettingKind[int] = SettingKind(
    "exact factor",
    'a factor such as 1.2 or "120%", with up to six decimal places,',
    _reader(PERCENT, _scaled(6)),
    _show_scaled(6),
    unit="factor",
    suffix="_ppm",
    low=0,
)
CREDITS: SettingKind[int] = SettingKind(
    "credits",
    "an amount in credits, with up to six decimal places,",
    _reader(PLAIN, _scaled(6)),
    _show_scaled(6),
    unit="credits",
    suffix="_uc",
    low=0,
)
POINTS: SettingKind[int] = SettingKind(
    "reputation",
    "a reputation as it is shown, with up to one decimal place,",
    _reader(PLAIN, _scaled(1)),
    _show_scaled(1),
    unit="reputation",
    suffix="_points",
    low=0,
    high=1000,
)
SIZE: SettingKind[int] = SettingKind(
    "size",
    'bytes, or a text such as "512MiB",',
    _reader(BYTES, _whole),
    _show_size(("B", "KiB", "MiB", "GiB", "TiB")),
    unit="bytes",
    low=0,
)
MEMORY: SettingKind[int] = SettingKind(
    "memory",
    'mebibytes, or a text such as "24GiB",',
    _reader(MEBIBYTES, _whole),
    _show_size(("MiB", "GiB", "TiB")),
    unit="MiB",
    low=0,
)
