"""The clock's judgement of samples."""

from datetime import datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from tidemill.core.clock import (
    SECOND,
    ClockRules,
    ClockState,
    Instant,
    Observation,
    Sample,
    as_datetime,
    as_instant,
    first_state,
    observe,
)

RULES = ClockRules(step_us=SECOND, settle_us=10 * SECOND, uncertainty_us=SECOND // 2)
START = 1_800_000_000 * SECOND


def sample(at_us: int, *, ahead_us: int = 0, took_us: int = 1000) -> Sample:
    """A sample taken at a monotonic time, of a database that runs `ahead_us` before START + monotonic."""
    middle = at_us + took_us // 2
    return Sample(Instant(START + middle + ahead_us), at_us, at_us + took_us)


def run(*samples: Sample) -> tuple[ClockState, list[Observation]]:
    state, seen = first_state(samples[0]), []
    for one in samples[1:]:
        state, observation = observe(state, one, RULES)
        seen.append(observation)
    return state, seen


def test_small_differences_are_followed() -> None:
    state, seen = run(sample(0), sample(5 * SECOND, ahead_us=3000))
    assert seen == [Observation.STEADY]
    assert state.at(6 * SECOND) == START + 6 * SECOND + 3000


def test_a_step_is_an_alarm_and_changes_nothing_until_it_has_settled() -> None:
    hour = 3600 * SECOND
    state, seen = run(sample(0), sample(5 * SECOND, ahead_us=hour), sample(10 * SECOND, ahead_us=hour))
    assert seen == [Observation.STEPPED, Observation.UNSETTLED]
    assert not state.trusted
    assert abs(state.at(10 * SECOND) - (START + 10 * SECOND)) < 2000


def test_a_step_that_holds_is_adopted() -> None:
    back = -3600 * SECOND
    steps = [sample(at * SECOND, ahead_us=back) for at in (5, 10, 15)]
    state, seen = run(sample(0), *steps)
    assert seen == [Observation.STEPPED, Observation.UNSETTLED, Observation.ADOPTED]
    assert state.trusted
    assert abs(state.at(15 * SECOND) - (START + 15 * SECOND + back)) < 2000


def test_a_step_that_goes_away_is_forgotten() -> None:
    state, seen = run(sample(0), sample(5 * SECOND, ahead_us=60 * SECOND), sample(10 * SECOND))
    assert seen == [Observation.STEPPED, Observation.RETURNED]
    assert state.trusted


def test_a_clock_that_keeps_jumping_is_never_adopted() -> None:
    jumps = [sample(at * SECOND, ahead_us=at * 60 * SECOND) for at in range(5, 65, 5)]
    state, seen = run(sample(0), *jumps)
    assert set(seen) == {Observation.STEPPED}
    assert not state.trusted


def test_a_sample_that_took_too_long_is_not_used() -> None:
    state, seen = run(sample(0), sample(5 * SECOND, ahead_us=60 * SECOND, took_us=3 * SECOND))
    assert seen == [Observation.VAGUE]
    assert state.trusted


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(-(10**8), 10**8), st.integers(0, 2 * 10**6)), max_size=30))
def test_while_the_clock_is_not_trusted_its_time_never_jumps(steps: list[tuple[int, int, int]]) -> None:
    state, at_us = first_state(sample(0)), 0
    for gap_us, ahead_us, took_us in steps:
        at_us += gap_us + took_us
        before = state.offset_us
        state, observation = observe(state, sample(at_us, ahead_us=ahead_us, took_us=took_us), RULES)
        if observation in (Observation.VAGUE, Observation.STEPPED, Observation.UNSETTLED):
            assert state.offset_us == before
        if observation is Observation.STEADY:
            assert abs(state.offset_us - before) <= RULES.step_us + took_us


def test_instants_are_written_in_utc_to_the_microsecond() -> None:
    assert as_datetime(Instant(1_700_000_000_123_456)).isoformat() == "2023-11-14T22:13:20.123456+00:00"


@given(st.integers(-(10**15), 10**17))
def test_an_instant_is_read_as_it_was_written_in_any_zone(at: int) -> None:
    written = as_datetime(Instant(at)).astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert as_instant(datetime.fromisoformat(written.isoformat())) == at
