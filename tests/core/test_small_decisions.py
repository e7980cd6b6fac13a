"""Switches, pauses, backups to keep, and names in queries."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.operations.backups import backup_name, made_at, superfluous
from tidemill.core.operations.switches import Switch, SwitchRefusal, SwitchState, stopping_switch, throw
from tidemill.core.pace import Backoff, between_ticks
from tidemill.core.reasons import ReasonRefusal
from tidemill.store.query import compile_names

NOW = Instant(1_800_000_000 * SECOND)
RUNNING = SwitchState(Switch.PLACEMENT, stopped=False, reason="", changed_by="", changed_at=None)
STOPPED = SwitchState(Switch.PLACEMENT, stopped=True, reason="why", changed_by="me", changed_at=NOW)


@pytest.mark.parametrize(
    ("current", "stop", "reason", "expected"),
    [
        (RUNNING, True, " why ", STOPPED),
        (RUNNING, True, "  ", ReasonRefusal.REASON_MISSING),
        (RUNNING, True, "x" * 501, ReasonRefusal.REASON_TOO_LONG),
        (RUNNING, False, "why", SwitchRefusal.ALREADY_SO),
        (STOPPED, True, "why", SwitchRefusal.ALREADY_SO),
        (STOPPED, False, "why", SwitchState(Switch.PLACEMENT, False, "why", "me", NOW)),
    ],
)
def test_throwing_a_switch(current: SwitchState, stop: bool, reason: str, expected: object) -> None:
    assert throw(current, stop=stop, reason=reason, by="me", now=NOW) == expected


def test_a_loop_is_held_by_its_own_switch_and_by_the_one_for_all() -> None:
    everything = SwitchState(Switch.ALL, stopped=True, reason="why", changed_by="me", changed_at=NOW)
    assert stopping_switch(Switch.PLACEMENT, [STOPPED]) is STOPPED
    assert stopping_switch(Switch.PAYOUTS, [STOPPED]) is None
    assert stopping_switch(Switch.PAYOUTS, [STOPPED, everything]) is everything
    assert stopping_switch(Switch.PLACEMENT, [RUNNING]) is None
    assert stopping_switch(None, [everything]) is None


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backing_off_grows_to_its_limit_and_never_below_half(failures: int, draw: float) -> None:
    backoff = Backoff(first_s=0.5, most_s=30)
    whole = min(30, 0.5 * 2 ** min(failures - 1, 10))
    assert whole / 2 <= backoff.after(failures, draw) <= whole


@given(st.floats(0.01, 1000), st.floats(0, 1, exclude_max=True))
def test_ticks_keep_their_period_and_hurry_only_when_there_is_more(every_s: float, draw: float) -> None:
    assert between_ticks(every_s, more=True, draw=draw) == 0
    assert 0.9 * every_s <= between_ticks(every_s, more=False, draw=draw) <= 1.1 * every_s


def test_of_many_backups_the_newest_of_the_last_days_and_weeks_stay() -> None:
    twice_a_day = [backup_name(Instant(NOW - half * DAY // 2)) for half in range(120)]
    kept = set(twice_a_day) - set(superfluous(twice_a_day, keep_daily=7, keep_weekly=4))
    dates = sorted(at for name in kept if (at := made_at(name)))
    assert twice_a_day[0] in kept
    assert len({date.date() for date in dates[-7:]}) == 7
    assert 7 + 2 <= len(dates) <= 7 + 4
    assert dates[0] >= datetime.fromtimestamp(NOW / SECOND, UTC) - timedelta(weeks=5)


def test_files_that_are_not_backups_are_never_superfluous() -> None:
    names = ["notes.txt", "tidemill-2026.dump", "tidemill-20260101T000000Z.dump.partial"]
    assert superfluous(names, keep_daily=1, keep_weekly=1) == []


@given(st.sets(st.integers(0, 10**4), max_size=60), st.integers(1, 10), st.integers(1, 10))
def test_keeping_backups_is_stable_and_never_loses_the_newest(hours: set[int], daily: int, weekly: int) -> None:
    names = [backup_name(Instant(NOW + hour * 3600 * SECOND)) for hour in hours]
    gone = superfluous(names, keep_daily=daily, keep_weekly=weekly)
    rest = [name for name in names if name not in gone]
    assert superfluous(rest, keep_daily=daily, keep_weekly=weekly) == []
    assert max(names, default=None) == max(rest, default=None)


@pytest.mark.parametrize(
    ("text", "sql", "names"),
    [
        ("SELECT :a, :b, :a", "SELECT $1, $2, $1", ["a", "b"]),
        ("SELECT :a::text, x::int", "SELECT $1::text, x::int", ["a"]),
        ("SELECT ':a', :b", "SELECT ':a', $1", ["b"]),
        ("-- why :a\nSELECT :b", "SELECT $1", ["b"]),
        ("SELECT 'it''s :a' -- :c", "SELECT 'it''s :a'", []),
        ("SELECT :body_sha256", "SELECT $1", ["body_sha256"]),
    ],
)
def test_names_in_queries_become_numbers(text: str, sql: str, names: list[str]) -> None:
    assert compile_names(text)[:2] == (sql, names)
