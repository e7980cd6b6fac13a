"""Silence counts only while we listen; alerts do not flicker; a node tells only so much."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.nodes.health.alerts import (
    LASTS_US,
    AlertKind,
    AlertLimits,
    AlertSubject,
    is_alarming,
    of_beat,
    of_machine,
)
from tidemill.core.nodes.health.silence import (
    HealthRules,
    ListeningState,
    NodesToHear,
    fell_deaf,
    hears_again,
    listen,
    silent_below_us,
)
from tidemill.core.nodes.health.telemetry import PAST_MAX_US, Beat, DeviceBeat, PastBeat, spaced
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine
from tidemill.core.nodes.reports import EVENT_EVERY_US, EVENTS_SAVED, events_allowed

NOW = Instant(1_800_000_000 * SECOND)
RULES = HealthRules(tick_us=5 * SECOND, beat_us=30 * SECOND, offline_after_us=300 * SECOND)
LIMITS = AlertLimits(hot_above_c=85, cool_at_c=80, slow_above_ms=10_000, disk_low_mib=10_000)
BEAT = Beat(10, 100, 50_000, 20, (DeviceBeat(0, 0, 40, 50), DeviceBeat(0, 0, 50, 50)))
HOT, SLOW, DISK = AlertSubject(AlertKind.HOT, 0), AlertSubject(AlertKind.SLOW_LINK), AlertSubject(AlertKind.LOW_DISK)


def after(seconds: float) -> Instant:
    return Instant(int(NOW + seconds * SECOND))


def heard(seconds: float, nodes: int = 10, owners: int = 3) -> NodesToHear:
    return NodesToHear(nodes, owners, after(seconds))


def run(state: ListeningState, ears: NodesToHear, first_s: int, last_s: int) -> ListeningState:
    """Tick every five seconds."""
    for second in range(first_s, last_s + 1, 5):
        state = listen(state, ears, RULES, after(second))
    return state


def test_the_first_tick_counts_nothing_and_the_next_what_passed() -> None:
    first = listen(ListeningState(0), heard(0), RULES, NOW)
    assert first.listened_us == 0
    assert listen(first, heard(0), RULES, after(5)).listened_us == 5 * SECOND


def test_our_own_outage_adds_nothing() -> None:
    before = run(ListeningState(0), heard(0), 0, 60)
    assert listen(before, heard(65), RULES, after(70)).listened_us == before.listened_us + 10 * SECOND
    back = listen(before, heard(655), RULES, after(660))
    assert back.listened_us == before.listened_us
    assert back.since == after(660)


def test_a_clock_that_went_back_adds_nothing_and_is_followed() -> None:
    before = run(ListeningState(0), heard(0), 0, 60)
    back = listen(before, heard(0), RULES, after(-1000))
    assert back.listened_us == before.listened_us
    assert listen(back, heard(0), RULES, after(-995)).listened_us == before.listened_us + 5 * SECOND


@pytest.mark.parametrize(("nodes", "owners"), [(2, 2), (5, 1), (5_000, 400)])
def test_when_nobody_of_many_is_heard_we_are_the_deaf_ones(nodes: int, owners: int) -> None:
    silent = heard(0, nodes, owners)
    listening = run(ListeningState(0), silent, 0, 90)
    assert listening.listened_us == 90 * SECOND
    deaf = run(listening, silent, 95, 3600)
    assert deaf.listened_us == 90 * SECOND
    assert silent_below_us(deaf, RULES) < 0, "nobody is blamed"
    assert fell_deaf(listening, deaf)
    assert deaf.deaf_since == after(95)
    again = listen(deaf, heard(3603, nodes, owners), RULES, after(3605))
    assert hears_again(deaf, again)
    assert again.listened_us == 95 * SECOND


@pytest.mark.parametrize(("nodes", "owners"), [(1, 1), (4, 1)])
def test_a_few_nodes_of_one_owner_may_all_be_gone(nodes: int, owners: int) -> None:
    listening = run(ListeningState(0), heard(0, nodes, owners), 0, 400)
    assert silent_below_us(listening, RULES) > 0
    assert listening.deaf_since is None


def test_after_an_outage_nothing_counts_until_one_is_heard_and_that_is_no_news_at_once() -> None:
    before = run(ListeningState(0), heard(60), 0, 60)
    back = run(before, heard(60), 660, 700)
    assert back.listened_us == before.listened_us
    assert back.deaf_since is None
    calling = listen(back, heard(702), RULES, after(705))
    assert calling.listened_us == before.listened_us + 5 * SECOND


@given(st.lists(st.integers(0, 100), max_size=40))
def test_however_many_tick_time_counts_once(steps: list[int]) -> None:
    state, at = listen(ListeningState(0), heard(0, 1, 1), RULES, NOW), NOW
    for step in steps:
        at = Instant(at + step * SECOND // 10)
        state = listen(state, heard(0, 1, 1), RULES, at)
    assert state.listened_us == at - NOW


def test_alerts_have_two_bounds() -> None:
    hot = replace(BEAT, devices=(DeviceBeat(0, 0, 86, 50), BEAT.devices[1]))
    assert is_alarming(hot, LIMITS)
    assert [alert.about for alert in of_beat({}, hot, LIMITS, NOW).raised] == [HOT]
    warm = replace(BEAT, devices=(DeviceBeat(0, 0, 81, 50), BEAT.devices[1]))
    assert not is_alarming(warm, LIMITS)
    open_ = {HOT: NOW}
    assert of_beat(open_, hot, LIMITS, NOW).raised == ()
    assert of_beat(open_, warm, LIMITS, Instant(NOW + LASTS_US)).cleared == ()
    assert of_beat(open_, BEAT, LIMITS, Instant(NOW + LASTS_US)).cleared == (HOT,)
    assert of_beat(open_, BEAT, LIMITS, Instant(NOW + LASTS_US - 1)).cleared == ()


@pytest.mark.parametrize(
    ("about", "bad", "better", "good"),
    [
        (SLOW, replace(BEAT, round_trip_ms=10_001), replace(BEAT, round_trip_ms=9_000), BEAT),
        (SLOW, replace(BEAT, round_trip_ms=10_001), replace(BEAT, round_trip_ms=None), BEAT),
        (DISK, replace(BEAT, disk_free_mib=9_999), replace(BEAT, disk_free_mib=12_000), BEAT),
    ],
)
def test_the_others_have_them_too(about: AlertSubject, bad: Beat, better: Beat, good: Beat) -> None:
    late = Instant(NOW + LASTS_US)
    assert [alert.about for alert in of_beat({}, bad, LIMITS, NOW).raised] == [about]
    assert of_beat({about: NOW}, better, LIMITS, late).cleared == ()
    assert of_beat({about: NOW}, good, LIMITS, late).cleared == (about,)


def test_a_silent_sensor_clears_nothing_and_a_device_that_is_gone_does() -> None:
    late = Instant(NOW + LASTS_US)
    silent = replace(BEAT, devices=(DeviceBeat(0, 0, None, None),))
    assert of_beat({HOT: NOW}, silent, LIMITS, late).cleared == ()
    assert of_beat({HOT: NOW}, replace(BEAT, devices=()), LIMITS, late).cleared == (HOT,)


def test_a_beat_says_nothing_about_what_it_does_not_tell() -> None:
    others = {AlertSubject(AlertKind.OFFLINE): NOW, AlertSubject(AlertKind.FAILING_DEVICE, 0): NOW}
    assert of_beat(others, BEAT, LIMITS, Instant(NOW + LASTS_US)).cleared == ()


def test_a_failing_device_is_raised_with_the_drivers_words() -> None:
    device = Device(1, DeviceKind.NVIDIA, "", "", 0, "", failing="Xid 79: fell off the bus.")
    machine = Machine("Linux", "6", "x86_64", "cpu", 8, 1000, 1000, (replace(device, index=0, failing=None), device))
    (alert,) = of_machine(machine)
    assert alert.about == AlertSubject(AlertKind.FAILING_DEVICE, 1)
    assert alert.sentence.startswith("Device 1 is failing: Xid 79")


def test_a_node_makes_only_so_many_events_by_itself() -> None:
    told, until = events_allowed(1_000, None, NOW)
    assert told == EVENTS_SAVED
    assert events_allowed(1, until, NOW) == (0, until)
    assert events_allowed(1, until, Instant(NOW + EVENT_EVERY_US - 1))[0] == 0
    assert events_allowed(5, until, Instant(NOW + EVENT_EVERY_US))[0] == 1
    assert events_allowed(1_000, until, Instant(NOW + DAY))[0] == EVENTS_SAVED, (
        "what is saved up does not grow for ever"
    )


@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 300)), max_size=60))
def test_over_any_time_a_node_stays_within_its_share(batches: list[tuple[int, int]]) -> None:
    at, until, total = NOW, None, 0
    for wanted, pause_s in batches:
        told, until = events_allowed(wanted, until, at)
        total += told
        assert total <= EVENTS_SAVED + (at - NOW) // EVENT_EVERY_US + 1
        at = Instant(at + pause_s * SECOND)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (NOW, True),
        (NOW + 1, False),
        (NOW - PAST_MAX_US, True),
        (NOW - PAST_MAX_US - 1, False),
        (0, False),
        (2**53, False),
    ],
)
def test_the_past_is_neither_ahead_nor_too_long_ago(at: int, expected: bool) -> None:
    past = PastBeat(Instant(at), BEAT)
    assert list(spaced([past], None, NOW)) == ([past] if expected else [])
