"""The owner's rules: windows of the week, heat and power, idle machines, and whether a node may work now."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidemill.core.clock import DAY, SECOND, Instant, as_datetime, as_instant
from tidemill.core.nodes.no_work_reasons import IN_HAND, BegunWork, NoWorkCause
from tidemill.core.nodes.rules.rules import (
    UNSEEN_US,
    HeatLimits,
    IdleRule,
    MachineReading,
    NodeRules,
    Senses,
    WorkMode,
    heat_limits,
    objections,
    sense,
)
from tidemill.core.nodes.rules.windows import OFFSET_MAX_S, Window, closes_at, is_open, minute_of, opens_at
from tidemill.core.settings.sections.work import NodesSettings

POOL = HeatLimits(pause_above_c=85, resume_at_c=80)
COOL = MachineReading(temperature_c=60, power_w=200, others_pct=0)
NIGHT = Window(22 * 60, 8 * 60)
WEEKEND_NIGHT = Window(22 * 60, 8 * 60, (5, 6))
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)

instants = st.integers(0, 4 * 10**15).map(Instant)
offsets = st.integers(-OFFSET_MAX_S // 900, OFFSET_MAX_S // 900).map(lambda quarters: quarters * 900)
minutes = st.integers(0, 24 * 60 - 1)
some_windows = st.lists(
    st.builds(Window, minutes, minutes, st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days)))),
    min_size=1,
    max_size=5,
)


def at(day: int, hour: int, minute: int = 0) -> Instant:
    """A time of the week that begins with MONDAY, in UTC."""
    return as_instant(MONDAY + timedelta(days=day, hours=hour, minutes=minute))


@pytest.mark.parametrize(
    ("window", "day", "hour", "minute", "expected"),
    [
        (NIGHT, 0, 21, 59, False),
        (NIGHT, 0, 22, 0, True),
        (NIGHT, 1, 0, 0, True),
        (NIGHT, 1, 7, 59, True),
        (NIGHT, 1, 8, 0, False),
        (WEEKEND_NIGHT, 5, 21, 59, False),
        (WEEKEND_NIGHT, 5, 7, 0, False),
        (WEEKEND_NIGHT, 5, 22, 0, True),
        (WEEKEND_NIGHT, 6, 7, 59, True),
        (WEEKEND_NIGHT, 6, 12, 0, False),
        (WEEKEND_NIGHT, 7, 7, 59, True),
        (WEEKEND_NIGHT, 7, 8, 0, False),
        (Window(9 * 60, 17 * 60, (0,)), 0, 9, 0, True),
        (Window(9 * 60, 17 * 60, (0,)), 0, 17, 0, False),
        (Window(9 * 60, 17 * 60, (0,)), 1, 9, 0, False),
        (Window(0, 0, (2,)), 2, 0, 0, True),
        (Window(0, 0, (2,)), 2, 23, 59, True),
        (Window(0, 0, (2,)), 3, 0, 0, False),
        (Window(600, 600, (2,)), 3, 9, 59, True),
        (Window(600, 600, (2,)), 3, 10, 0, False),
    ],
)
def test_a_window_belongs_to_the_day_it_begins_on(
    window: Window, day: int, hour: int, minute: int, expected: bool
) -> None:
    assert is_open([window], at(day, hour, minute), 0) is expected


def test_a_window_is_in_the_owners_own_time() -> None:
    assert is_open([NIGHT], at(0, 14), 8 * 3600), "ten in the evening in Shanghai"
    assert not is_open([NIGHT], at(0, 2), 8 * 3600), "ten in the morning there"
    assert is_open([WEEKEND_NIGHT], at(5, 16, 30), 5 * 3600 + 1800), "ten on Saturday evening in Delhi"
    assert is_open([WEEKEND_NIGHT], at(7, 12), -5 * 3600), "seven on Monday morning in New York"


def test_without_windows_a_node_always_may_work() -> None:
    assert is_open([], at(0, 0), 0)
    assert opens_at([], at(0, 0), 0) is None


def test_when_a_window_closes_and_opens() -> None:
    assert closes_at([NIGHT], at(0, 23, 30), 0) == at(1, 8)
    assert opens_at([NIGHT], at(1, 12), 0) == at(1, 22)
    assert opens_at([WEEKEND_NIGHT], at(0, 9), 0) == at(5, 22)
    assert closes_at([NIGHT, Window(8 * 60, 12 * 60)], at(0, 23), 0) == at(1, 12), "one window after the other"
    assert closes_at([Window(0, 0)], at(0, 5), 0) is None
    assert closes_at([NIGHT, Window(7 * 60, 23 * 60)], at(0, 5), 0) is None


@given(some_windows, instants, offsets)
def test_windows_are_what_a_calendar_says(windows: list[Window], now: Instant, offset_s: int) -> None:
    local = as_datetime(now).astimezone(timezone(timedelta(seconds=offset_s)))

    def covers(window: Window, days_before: int) -> bool:
        begins = local.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days_before)
        start = begins + timedelta(minutes=window.begins)
        return begins.weekday() in window.days and start <= local < start + timedelta(minutes=window.minutes)

    assert is_open(windows, now, offset_s) == any(covers(window, days) for window in windows for days in (0, 1))


@given(some_windows, instants, offsets)
def test_at_its_edges_a_window_opens_and_closes(windows: list[Window], now: Instant, offset_s: int) -> None:
    if is_open(windows, now, offset_s):
        closes = closes_at(windows, now, offset_s)
        if closes is not None:
            assert now < closes <= now + 7 * DAY
            assert is_open(windows, Instant(closes - 1), offset_s)
            assert not is_open(windows, closes, offset_s)
    else:
        opens = opens_at(windows, now, offset_s)
        assert opens is not None
        assert now < opens <= now + 7 * DAY
        assert is_open(windows, opens, offset_s)
        assert not is_open(windows, Instant(opens - 1), offset_s)


@given(some_windows, instants, offsets, st.integers(-10, 10))
def test_a_week_is_like_the_next_and_an_offset_only_shifts(
    windows: list[Window], now: Instant, offset_s: int, weeks: int
) -> None:
    assume(now + weeks * 7 * DAY >= 0)
    there = is_open(windows, now, offset_s)
    assert is_open(windows, Instant(now + weeks * 7 * DAY), offset_s) == there
    assert is_open(windows, Instant(now + offset_s * SECOND), 0) == there


@given(some_windows, instants, offsets, st.integers(0, 10**12))
def test_a_clock_that_went_back_finds_what_was_true_then(
    windows: list[Window], now: Instant, offset_s: int, back_us: int
) -> None:
    earlier = Instant(max(0, now - back_us))
    before = is_open(windows, earlier, offset_s)
    is_open(windows, now, offset_s)
    assert is_open(windows, earlier, offset_s) == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00:00", 0),
        ("08:30", 510),
        ("23:59", 1439),
        ("24:00", 0),
        *((text, None) for text in ("24:01", "8:30", "08:60", "-1:00", "08:30\n", "", "٠٨:٣٠", 830, None, [])),
    ],
)
def test_times_of_the_day_are_read_strictly(text: object, expected: int | None) -> None:
    assert minute_of(text) == expected


def test_heat_pauses_at_the_pools_limit_and_goes_on_only_when_it_is_gone() -> None:
    temperatures = [84, 85, 85.5, 84, 81, 80.1, 80, 84, 85, 86]
    hot = [False, False, True, True, True, True, False, False, False, True]
    assert _heat(NodeRules(), temperatures) == hot


def test_the_settings_have_the_limits_of_the_pool() -> None:
    settings = NodesSettings()
    assert HeatLimits(settings.pause_above_c, settings.resume_at_c) == POOL


def test_an_owner_may_be_stricter_about_heat_than_the_pool_and_never_laxer() -> None:
    assert heat_limits(NodeRules(temperature_limit_c=70), POOL) == HeatLimits(70, 65)
    assert heat_limits(NodeRules(temperature_limit_c=100), POOL) == POOL
    assert _heat(NodeRules(temperature_limit_c=70), [70, 71, 66, 65]) == [False, True, True, False]


def test_a_sensor_that_falls_silent_leaves_a_hot_device_hot_and_a_cool_one_cool() -> None:
    assert _heat(NodeRules(), [90, None, None, 80, None]) == [True, True, True, False, False]
    assert _heat(NodeRules(), [None, 60]) == [False, False]


@given(st.lists(st.one_of(st.none(), st.floats(-50, 200)), max_size=40), st.integers(30, 120))
def test_a_node_is_hot_exactly_from_above_the_one_limit_down_to_the_other(
    temperatures: list[float | None], owner_limit: int
) -> None:
    limits = heat_limits(NodeRules(temperature_limit_c=owner_limit), POOL)
    assert limits.pause_above_c <= POOL.pause_above_c
    for hot, temperature in zip(
        _heat(NodeRules(temperature_limit_c=owner_limit), temperatures), temperatures, strict=True
    ):
        if temperature is not None and temperature > limits.pause_above_c:
            assert hot
        if temperature is not None and temperature <= limits.resume_at_c:
            assert not hot


def test_power_above_the_owners_limit_pauses_until_it_is_a_tenth_below() -> None:
    rules = NodeRules(power_limit_w=300)
    senses: Senses | None = None
    found = []
    for power in (300, 301, 280, 271, None, 270, 290):
        senses = sense(senses, MachineReading(60, power, 0), rules, POOL, at(0, 0))
        found.append(senses.hungry)
    assert found == [False, True, True, True, True, False, False]
    assert not sense(senses, MachineReading(60, 5_000, 0), NodeRules(), POOL, at(0, 0)).hungry, "no limit, no pause"


def _heat(rules: NodeRules, temperatures: list[float | None] | list[float]) -> list[bool]:
    senses: Senses | None = None
    found = []
    for second, temperature in enumerate(temperatures):
        senses = sense(senses, MachineReading(temperature, None, 0), rules, POOL, Instant(second * SECOND))
        found.append(senses.hot)
    return found


IDLE = NodeRules(only_when_idle=IdleRule(below_pct=10, for_s=300))


def _idle_for(steps: list[tuple[int, float | None]], rules: NodeRules = IDLE) -> bool:
    """Whether a node may work after readings of others' use, each so many seconds after the one before."""
    senses: Senses | None = None
    now = at(0, 12)
    for after_s, others_pct in steps:
        now = Instant(now + after_s * SECOND)
        senses = sense(senses, MachineReading(60, 100, others_pct), rules, POOL, now)
    assert senses
    return not list(objections(rules, senses, POOL, now, 0))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(0, 0)], False),
        ([(0, 5)] + [(30, 5)] * 10, True),
        ([(0, 5)] + [(30, 5)] * 9, False),
        ([(0, 5)] + [(30, 5)] * 9 + [(30, 10)], False),
        ([(0, 5)] + [(30, 5)] * 9 + [(30, 10)] + [(30, 0)] * 9, False),
        ([(0, 5)] + [(30, 5)] * 10 + [(30, None)], False),
        ([(0, 5), (400, 5)], False),
        ([(0, 5)] + [(30, 5)] * 10 + [(-3_600, 5)], False),
        ([(0, 5)] + [(30, 5)] * 10 + [(-3_600, 5)] + [(30, 5)] * 10, True),
        ([(0, 5)] + [(30, 5)] * 3 + [(86_400, 5)], False),
    ],
    ids=[
        "just begun",
        "long enough",
        "nearly long enough",
        "used again",
        "used in between",
        "not to be told",
        "nobody looked meanwhile",
        "the clock went back",
        "the clock went back, and time went on",
        "the clock jumped ahead",
    ],
)
def test_a_machine_is_idle_when_others_were_seen_to_leave_it_alone_for_long_enough(
    steps: list[tuple[int, float | None]], expected: bool
) -> None:
    assert _idle_for(steps) is expected


@given(st.lists(st.tuples(st.integers(-(10**9), 10**9), st.one_of(st.none(), st.floats(0, 100))), min_size=1))
def test_whatever_the_clock_does_being_idle_never_counts_time_that_nobody_saw(
    steps: list[tuple[int, float | None]],
) -> None:
    senses: Senses | None = None
    now, seen_us = at(0, 0), 0
    for step_us, others_pct in steps:
        now = Instant(now + step_us)
        seen_us += step_us if 0 <= step_us <= UNSEEN_US else 0
        senses = sense(senses, MachineReading(None, None, others_pct), IDLE, POOL, now)
        assert senses.idle_since is None or 0 <= now - senses.idle_since <= seen_us


def test_every_no_explains_itself() -> None:
    rules = NodeRules(
        windows=(NIGHT,),
        only_when_idle=IdleRule(10, 300),
        power_limit_w=250,
        temperature_limit_c=70,
        work=WorkMode.PAUSE,
    )
    now = at(0, 12)
    senses = sense(None, MachineReading(91, 320, 44), rules, POOL, now)
    found = list(objections(rules, senses, POOL, now, 3600))
    assert {reason.why: reason.sentence for reason in found} == {
        NoWorkCause.TOO_HOT: "The hottest device is 91 °C; work goes on at 65 °C, after it was above 70 °C. "
        "Look at its fans and the air around it.",
        NoWorkCause.TOO_MUCH_POWER: "A device draws 320 W; work goes on at 225 W, after it was above your limit "
        "of 250 W.",
        NoWorkCause.PAUSED: "Its owner has paused this node: resume it when it may work again.",
        NoWorkCause.OUTSIDE_WINDOW: "This node works only 22:00–08:00, by its own clock, next on Monday at 22:00.",
        NoWorkCause.NOT_IDLE: "Others use 44 % of this machine, and it works only when others have used less than 10 % "
        "of it "
        "for 300 s.",
    }
    assert [reason.until for reason in found if reason.why is NoWorkCause.OUTSIDE_WINDOW] == [at(0, 21)]


def test_drain_is_no_pause_and_windows_of_single_days_are_named() -> None:
    rules = NodeRules(windows=(WEEKEND_NIGHT, Window(0, 60, (2,))), work=WorkMode.DRAIN)
    draining, outside = objections(rules, None, POOL, at(0, 12), 0)
    assert (draining.why, draining.in_hand) == (NoWorkCause.DRAINING, BegunWork.FINISH)
    assert "Saturday, Sunday 22:00–08:00 and Wednesday 00:00–01:00" in outside.sentence
    assert outside.sentence.endswith("next on Wednesday at 00:00.")
    assert outside.in_hand is BegunWork.FINISH


def test_a_sentence_about_waiting_says_how_long() -> None:
    senses = sense(None, COOL, IDLE, POOL, at(0, 0))
    later = Instant(at(0, 0) + 100 * SECOND)
    [reason] = objections(IDLE, senses, POOL, later, 0)
    assert "for 200 s more" in reason.sentence
    assert reason.until == at(0, 0, 5)
    [unknown] = objections(IDLE, sense(None, MachineReading(1, 1, None), IDLE, POOL, later), POOL, later, 0)
    assert "cannot be told" in unknown.sentence


def test_no_price_is_below_the_minimum() -> None:
    assert NodeRules().asked_uc is None
    assert NodeRules(price_uc=5).asked_uc == 5
    assert NodeRules(price_uc=5, minimum_price_uc=3).asked_uc == 5
    assert NodeRules(price_uc=2, minimum_price_uc=3).asked_uc == 3
    assert NodeRules(minimum_price_uc=3).asked_uc == 3


def test_every_reason_says_what_becomes_of_work_in_hand() -> None:
    assert set(IN_HAND) == set(NoWorkCause)
