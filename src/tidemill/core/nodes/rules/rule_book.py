"""Who set which rule, where and when: an owner changes rules on the node and in the pool, and the newest counts.

Each rule is merged by itself. Merging is commutative and idempotent, so node and pool agree once each has heard the
other. A change always counts as newer than the entry it replaces, whatever the clock says; clocks decide only between
changes that did not know of each other. A book from outside is bounded and checked, and accepted as a whole or not at
all.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

from tidemill.core.clock import Instant
from tidemill.core.money import MoneyRefusal, credits_of, micro_credits
from tidemill.core.nodes.rules.rules import IdleRule, NodeRules, WorkMode
from tidemill.core.nodes.rules.windows import DAYS, WINDOWS_MAX, Window, minute_of, time_text
from tidemill.core.refusals import Refusal

AT_MAX = 2**53
"""The largest number that every reader of JSON keeps exactly."""

_AT_USUAL = AT_MAX // 2
"""The year 2112. A rule may be dated later by replacing one that was; but nobody may leap to the last possible date,
after which nothing could ever be set again."""

_LEAP_MAX = 10**6

BOOK_BYTES_MAX = 64 * 1024
LABELS_MAX = 20
LABEL_MAX = 100
_BY_MAX = 100
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*=.*", re.ASCII)


class RulesRefusal(Refusal):
    RULES_MALFORMED = "These are no rules: send an object with a value for each rule to change."
    RULE_UNKNOWN = (
        "There is no such rule: the rules are price, minimum_price, windows, only_when_idle, power_limit_w, "
        "temperature_limit_c, labels, region and work."
    )
    WINDOWS_MALFORMED = (
        f"Windows are a list of up to {WINDOWS_MAX}, each with `from` and `until` such as 22:00 and 08:00, and `days` "
        "such as mon and fri if it is not for all: write them so."
    )
    IDLE_MALFORMED = (
        "The rule for idle machines has `below_pct` from 1 to 100 and `for_s` up to 86400: give whole numbers."
    )
    POWER_LIMIT_MALFORMED = "A power limit is a whole number of watts from 1 to 10000: give one."
    TEMPERATURE_LIMIT_MALFORMED = "A temperature limit is a whole number of degrees from 30 to 120: give one."
    LABELS_MALFORMED = (
        f"Labels are a list of up to {LABELS_MAX} texts such as rack=7, each up to {LABEL_MAX} characters; a key is "
        "made of letters, digits, dots and dashes, and there is one label a key: write them so."
    )
    REGION_MALFORMED = f"A region is a text of up to {LABEL_MAX} printable characters: give one."
    RULE_DATED_AHEAD = "A rule is dated a century ahead: set the clock where it was set, and set it again."
    WORK_MALFORMED = "A node can be told to run, drain or pause: choose one of them."


RuleRefused: TypeAlias = RulesRefusal | MoneyRefusal


class RuleOrigin(StrEnum):
    """Where a rule was set."""

    NODE = "node"
    POOL = "pool"


@dataclass(frozen=True)
class RuleEntry:
    """The value of one rule, and who set it."""

    value: Any
    by: str
    place: RuleOrigin
    at: Instant


@dataclass(frozen=True)
class RuleBook:
    """The entry of each rule that was ever set, by its name."""

    entries: Mapping[str, RuleEntry] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class _Rule:
    attribute: str
    read: Callable[[object], Any]
    show: Callable[[Any], object]


def change(
    book: RuleBook, wishes: Mapping[str, object], *, by: str, place: RuleOrigin, now: Instant
) -> RuleBook | RuleRefused:
    """The book after somebody set these rules, all of them or none. None removes a rule."""
    assert _is_name(by), "the name of who changes rules was checked before"
    entries = dict(book.entries)
    for name, wish in wishes.items():
        value = _value(name, wish)
        if isinstance(value, RulesRefusal | MoneyRefusal):
            return value
        before = entries.get(name)
        at = now if before is None else max(now, min(AT_MAX, before.at + 1))
        entries[name] = RuleEntry(value, by, place, Instant(at))
    return RuleBook(MappingProxyType(entries))


def merge(first: RuleBook, second: RuleBook) -> RuleBook:
    """The newest entry of each rule."""
    names = sorted({*first.entries, *second.entries})
    entries = {name: [book.entries[name] for book in (first, second) if name in book.entries] for name in names}
    return RuleBook(MappingProxyType({name: max(entries[name], key=lambda entry: _age(name, entry)) for name in names}))


def leaps(own: RuleBook, received: RuleBook) -> bool:
    """Whether a peer's book is dated so far ahead of ours that we could no longer change it."""
    ours = {name: entry.at + _LEAP_MAX for name, entry in own.entries.items()}
    return any(entry.at > max(_AT_USUAL, ours.get(name, 0)) for name, entry in received.entries.items())


def rules_of(book: RuleBook) -> NodeRules:
    """The rules in force."""
    values = {_RULES[name].attribute: entry.value for name, entry in book.entries.items() if entry.value is not None}
    return NodeRules(**values)


def book_json(book: RuleBook) -> dict[str, dict[str, object]]:
    """The book as JSON: each rule with its value, and who set it, where and when."""
    return {
        name: {"value": _shown_value(name, entry), "by": entry.by, "place": entry.place.value, "at": entry.at}
        for name, entry in sorted(book.entries.items())
    }


def to_json(book: RuleBook) -> bytes:
    return json.dumps(book_json(book), ensure_ascii=False, separators=(",", ":")).encode()


def from_json(body: bytes) -> RuleBook | RuleRefused:
    """The inverse, for bytes from a peer or a file."""
    if len(body) > BOOK_BYTES_MAX:
        return RulesRefusal.RULES_MALFORMED
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return RulesRefusal.RULES_MALFORMED
    return book_from_json(parsed)


def book_from_json(parsed: object) -> RuleBook | RuleRefused:
    """The inverse of `book_json`."""
    if not isinstance(parsed, dict):
        return RulesRefusal.RULES_MALFORMED
    entries: dict[str, RuleEntry] = {}
    for name, raw in parsed.items():
        entry = _entry(name, raw)
        if not isinstance(entry, RuleEntry):
            return entry
        entries[name] = entry
    return RuleBook(MappingProxyType(entries))


def _entry(name: str, raw: object) -> RuleEntry | RuleRefused:
    if not isinstance(raw, dict) or raw.keys() != {"value", "by", "place", "at"}:
        return RulesRefusal.RULES_MALFORMED
    if not (_is_name(raw["by"]) and raw["place"] in list(RuleOrigin) and _is_whole(raw["at"], 0, AT_MAX)):
        return RulesRefusal.RULES_MALFORMED
    value = _value(name, raw["value"])
    if isinstance(value, RulesRefusal | MoneyRefusal):
        return value
    return RuleEntry(value, raw["by"], RuleOrigin(raw["place"]), Instant(raw["at"]))


def _value(name: str, raw: object) -> Any:
    """The parsed value, or a refusal."""
    if name not in _RULES:
        return RulesRefusal.RULE_UNKNOWN
    return None if raw is None else _RULES[name].read(raw)


def _shown_value(name: str, entry: RuleEntry) -> object:
    return None if entry.value is None else _RULES[name].show(entry.value)


def _age(name: str, entry: RuleEntry) -> tuple[int, bool, str, str]:
    """Newer entries are larger. Of two of one instant the pool's counts, and then the larger text."""
    return entry.at, entry.place is RuleOrigin.POOL, entry.by, json.dumps(_shown_value(name, entry), sort_keys=True)


def _is_whole(raw: object, low: int, high: int) -> bool:
    return isinstance(raw, int) and not isinstance(raw, bool) and low <= raw <= high


def _is_name(raw: object) -> bool:
    return isinstance(raw, str) and 0 < len(raw) <= _BY_MAX and raw.isprintable()


def _read_windows(raw: object) -> tuple[Window, ...] | RulesRefusal:
    if not isinstance(raw, list) or len(raw) > WINDOWS_MAX:
        return RulesRefusal.WINDOWS_MALFORMED
    parsed = [_read_window(item) for item in raw]
    windows = tuple(window for window in parsed if window is not None)
    return windows if len(windows) == len(parsed) else RulesRefusal.WINDOWS_MALFORMED


def _read_window(raw: object) -> Window | None:
    if not isinstance(raw, dict) or not {"from", "until"} <= raw.keys() <= {"from", "until", "days"}:
        return None
    begins, ends = minute_of(raw["from"]), minute_of(raw["until"])
    days = raw.get("days", list(DAYS))
    if begins is None or ends is None or not isinstance(days, list) or not days:
        return None
    if any(not isinstance(day, str) or day not in DAYS for day in days):
        return None
    return Window(begins, ends, tuple(sorted({DAYS.index(day) for day in days})))


def _show_windows(windows: tuple[Window, ...]) -> object:
    return [
        {
            "from": time_text(window.begins),
            "until": time_text(window.ends),
            "days": [DAYS[day] for day in window.days],
        }
        for window in windows
    ]


def _read_idle(raw: object) -> IdleRule | RulesRefusal:
    if not isinstance(raw, dict) or raw.keys() != {"below_pct", "for_s"}:
        return RulesRefusal.IDLE_MALFORMED
    if not (_is_whole(raw["below_pct"], 1, 100) and _is_whole(raw["for_s"], 0, 86_400)):
        return RulesRefusal.IDLE_MALFORMED
    return IdleRule(raw["below_pct"], raw["for_s"])


def _show_idle(idle: IdleRule) -> object:
    return {"below_pct": idle.below_pct, "for_s": idle.for_s}


def _whole(low: int, high: int, refusal: RulesRefusal) -> Callable[[object], object]:
    return lambda raw: raw if _is_whole(raw, low, high) else refusal


def _read_labels(raw: object) -> tuple[str, ...] | RulesRefusal:
    if not isinstance(raw, list) or len(raw) > LABELS_MAX or not all(_is_label(item) for item in raw):
        return RulesRefusal.LABELS_MALFORMED
    keys = {label.partition("=")[0] for label in raw}
    return tuple(sorted(raw)) if len(keys) == len(raw) else RulesRefusal.LABELS_MALFORMED


def _is_label(raw: object) -> bool:
    return _is_text(raw) and LABEL.fullmatch(str(raw)) is not None


def _read_region(raw: object) -> str | RulesRefusal:
    return str(raw) if _is_text(raw) else RulesRefusal.REGION_MALFORMED


def _is_text(raw: object) -> bool:
    return isinstance(raw, str) and 0 < len(raw) <= LABEL_MAX and raw.isprintable()


def _read_work(raw: object) -> WorkMode | RulesRefusal:
    return WorkMode(raw) if isinstance(raw, str) and raw in list(WorkMode) else RulesRefusal.WORK_MALFORMED


def _same(value: object) -> object:
    return value


_RULES: Mapping[str, _Rule] = {
    "price": _Rule("price_uc", micro_credits, credits_of),
    "minimum_price": _Rule("minimum_price_uc", micro_credits, credits_of),
    "windows": _Rule("windows", _read_windows, _show_windows),
    "only_when_idle": _Rule("only_when_idle", _read_idle, _show_idle),
    "power_limit_w": _Rule("power_limit_w", _whole(1, 10_000, RulesRefusal.POWER_LIMIT_MALFORMED), _same),
    "temperature_limit_c": _Rule(
        "temperature_limit_c", _whole(30, 120, RulesRefusal.TEMPERATURE_LIMIT_MALFORMED), _same
    ),
    "labels": _Rule("labels", _read_labels, list),
    "region": _Rule("region", _read_region, _same),
    "work": _Rule("work", _read_work, str),
}
