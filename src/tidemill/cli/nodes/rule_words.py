"""Rules as owners type them, on the machine and for the pool, in the spelling in which they are shown.

JSON is accepted as well. The rules themselves decide which values are allowed.
"""

import json
import re
from collections.abc import Callable, Mapping

from tidemill.cli.terminal.output import CommandRefused

NAMES = "price, minimum_price, windows, only_when_idle, power_limit_w, temperature_limit_c, labels and region"
EXAMPLES = "price=1.5 windows=22:00-08:00,sat+sun/00:00-24:00 only_when_idle=10%/300s labels=rack=7,room=east"

_WINDOW = re.compile(r"(?:(?P<days>[a-z+]+)/)?(?P<begins>[0-9:]+)[-–](?P<ends>[0-9:]+)")
_IDLE = re.compile(r"(?P<below_pct>[0-9]{1,3})%?/(?P<for_s>[0-9]{1,6})s?")


def wish(text: str) -> tuple[str, object]:
    """A rule and its new value from typed text; None takes the rule away."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandRefused(f"A rule is written NAME=VALUE, such as {EXAMPLES}; {text}= takes it away.")
    if not value:
        return name, None
    return name, _json(value) if value[0] in "[{" else _READ.get(name, str)(value)


def _json(value: str) -> object:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise CommandRefused(f"{value} is no JSON: write rules such as {EXAMPLES}.") from None


def _windows(value: str) -> object:
    return [
        _window(_matched(_WINDOW, window, "windows as 22:00-08:00,sat+sun/00:00-24:00")) for window in value.split(",")
    ]


def _window(parts: Mapping[str, str]) -> object:
    days = {"days": parts["days"].split("+")} if parts["days"] else {}
    return {"from": parts["begins"], "until": parts["ends"], **days}


def _idle(value: str) -> object:
    matched = _matched(_IDLE, value, "only_when_idle as 10%/300s: others use less than 10 % for 300 s")
    return {name: int(number) for name, number in matched.items()}


def _matched(pattern: re.Pattern[str], value: str, form: str) -> Mapping[str, str]:
    match = pattern.fullmatch(value)
    if not match:
        raise CommandRefused(f"Write {form}.")
    return match.groupdict()


def _whole(value: str) -> object:
    """A whole number. Other text is passed on as it is: the rules say what is wrong with it."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value


def _labels(value: str) -> object:
    return value.split(",")


_READ: Mapping[str, Callable[[str], object]] = {
    "windows": _windows,
    "only_when_idle": _idle,
    "power_limit_w": _whole,
    "temperature_limit_c": _whole,
    "labels": _labels,
}
