"""Rules as owners read them, in the spelling in which they type them: what is shown can be typed again."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tidemill.core.nodes.rules.windows import DAYS

_MIDNIGHT = "00:00"


def written(name: str, value: Any) -> str:
    """A value as it is typed. An unknown form, as from a newer pool, is shown as JSON."""
    if value is None:
        return ""
    try:
        return _WRITE.get(name, _plain)(value)
    except (LookupError, TypeError, AttributeError):
        return json.dumps(value, ensure_ascii=False)


def _windows_written(value: list[Mapping[str, Any]]) -> str:
    return ",".join(_window_written(window) for window in value)


def _window_written(window: Mapping[str, Any]) -> str:
    days = "" if set(window["days"]) == set(DAYS) else "+".join(window["days"]) + "/"
    return f"{days}{window['from']}-{'24:00' if window['until'] == _MIDNIGHT else window['until']}"


def _idle_written(value: Mapping[str, int]) -> str:
    return f"{value['below_pct']}%/{value['for_s']}s"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_WRITE: Mapping[str, Callable[[Any], str]] = {
    "windows": _windows_written,
    "only_when_idle": _idle_written,
    "labels": ",".join,
}
