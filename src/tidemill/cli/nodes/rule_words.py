"""Rules as owners type and read them, on the machine and for the pool, in one spelling for both.

What is shown can be typed again. JSON is accepted as well. The rules themselves decide which values are allowed.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tidemill.cli.terminal.output import CommandRefused
from tidemill.core.nodes.rules.windows import DAYS

NAMES = "price, minimum_price, windows, only_when_idle, power_limit_w, temperature_limit_c, labels and region"
EXAMPLES = "price=1.5 windows=22:00-08:00,sat+sun/00:00-24:00 only_when_idle=10%/300s labels=rack=7,room=east"

_WINDOW = re.compile(r"(?:(?P<days>[a-z+]+)/)?(?P<begins>[0-9:]+)[-–](?P<ends>[0-9:]+)")
_IDLE = re.compile(r"(?P<below_pct>[0-9]{1,3})%?/(?P<for_s>[0-9]{1,6})s?")
_MIDNIGHT = "00:00"


def wish(text: str) -> tuple[str, object]:
    """A rule and its new value from typed text; None takes the rule away."""
    name, equals, value = text.partition("=")
    if not equals:
        raise CommandRefused(f"A rule is written NAME=VALUE, such as {EXAMPLES}; {text}= takes it away.")
    if not value:
        return name, None
    return name, _json(value) if value[0] in "[{" else _READ.get(name, str)(value)


def written(name: str, value: Any) -> str:
    """A value as it is typed. An unknown form, as from a newer pool, is shown as JSON."""
    if value is None:
        return ""
    try:
        return _WRITE.get(name, _plain)(value)
    except (LookupError, TypeError, AttributeError):
        return json.dumps(value, ensure_ascii=False)


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


def _windows_written(value: list[Mapping[str, Any]]) -> str:
    return ",".join(_window_written(window) for window in value)


def _window_written(window: Mapping[str, Any]) -> str:
    days = "" if set(window["days"]) == set(DAYS) else "+".join(window["days"]) + "/"
    return f"{days}{window['from']}-{'24:00' if window['until'] == _MIDNIGHT else window['until']}"


def _idle_written(value: Mapping[str, int]) -> str:
    return f"{value['below_pct']}%/{value['for_s']}s"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_READ: Mapping[str, Callable[[str], object]] = {
    "windows": _windows,
    "only_when_idle": _idle,
    "power_limit_w": _whole,
    "temperature_limit_c": _whole,
    "labels": _labels,
}
_WRITE: Mapping[str, Callable[[Any], str]] = {
    "windows": _windows_written,
    "only_when_idle": _idle_written,
    "labels": ",".join,
}
