"""When a node may work: windows of the week in its owner's own time, such as 22:00–08:00 from Monday to Friday.

A window belongs to the day it begins on and may run over midnight, also from Sunday to Monday. Pure: the caller brings
the time and the offset of the owner's clock from UTC, which may differ by season; nothing here remembers it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tidemill.core.clock import SECOND, Instant

MINUTE = 60 * SECOND
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WINDOWS_MAX = 20
OFFSET_MAX_S = 18 * 3600
"""No clock on earth is further from UTC."""

_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES
_EPOCH_DAY = 3  # the first of January 1970 was a Thursday
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])", re.ASCII)


@dataclass(frozen=True)
class Window:
    """From one minute of the day to another, on some days; equal minutes mean 24 hours."""

    begins: int
    ends: int
    days: tuple[int, ...] = tuple(range(7))

    @property
    def minutes(self) -> int:
        return (self.ends - self.begins) % _DAY_MINUTES or _DAY_MINUTES


def is_open(windows: Sequence[Window], now: Instant, utc_offset_s: int) -> bool:
    """Whether a node may work now. Without windows it always may."""
    return not windows or _open_for(windows, _minute_of_week(now, utc_offset_s)) > 0


def closes_at(windows: Sequence[Window], now: Instant, utc_offset_s: int) -> Instant | None:
    """When windows that are open now close, if no clock is changed; None if they never do."""
    first = _minute_of_week(now, utc_offset_s)
    open_for = 0
    while open_for < _WEEK_MINUTES:
        more = _open_for(windows, (first + open_for) % _WEEK_MINUTES)
        if more == 0:
            return _minutes_ahead(now, utc_offset_s, open_for)
        open_for += more
    return None


def opens_at(windows: Sequence[Window], now: Instant, utc_offset_s: int) -> Instant | None:
    """When the next window begins, if no clock is changed; None if there is none."""
    minute = _minute_of_week(now, utc_offset_s)
    waits = [(start - minute) % _WEEK_MINUTES for start, _ in _starts(windows)]
    return _minutes_ahead(now, utc_offset_s, min(waits)) if waits else None


def spoken_time(at: Instant, utc_offset_s: int) -> str:
    """A time as the owner's clock and calendar show it: `Monday at 22:00`."""
    day, minute = divmod(_minute_of_week(at, utc_offset_s), _DAY_MINUTES)
    return f"{_DAY_NAMES[day]} at {time_text(minute)}"


def spoken_windows(windows: Iterable[Window]) -> str:
    """`22:00–08:00`, or `Monday, Friday 22:00–08:00`."""
    return " and ".join(
        f"{_spoken_days(window.days)}{time_text(window.begins)}–{time_text(window.ends)}" for window in windows
    )


def time_text(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def minute_of(text: object) -> int | None:
    """The minute of the day that `22:30` names; `24:00` is midnight."""
    if text == "24:00":
        return 0
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    return int(match[1]) * 60 + int(match[2]) if match else None


def _minute_of_week(at: Instant, utc_offset_s: int) -> int:
    return ((at + utc_offset_s * SECOND) // MINUTE + _EPOCH_DAY * _DAY_MINUTES) % _WEEK_MINUTES


def _minutes_ahead(now: Instant, utc_offset_s: int, minutes: int) -> Instant:
    """The beginning of the owner's minute so many minutes after this one."""
    local = now + utc_offset_s * SECOND
    return Instant(local - local % MINUTE + minutes * MINUTE - utc_offset_s * SECOND)


def _open_for(windows: Sequence[Window], minute: int) -> int:
    """For how many minutes from this one some window is open; 0 if none is."""
    remaining = (length - (minute - start) % _WEEK_MINUTES for start, length in _starts(windows))
    return max((minutes for minutes in remaining if minutes > 0), default=0)


def _starts(windows: Sequence[Window]) -> Iterator[tuple[int, int]]:
    for window in windows:
        yield from ((day * _DAY_MINUTES + window.begins, window.minutes) for day in window.days)


def _spoken_days(days: tuple[int, ...]) -> str:
    return "" if len(days) == len(DAYS) else ", ".join(_DAY_NAMES[day] for day in days) + " "
