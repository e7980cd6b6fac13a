"""The time: the database's time, carried forward by a monotonic clock.

The database's clock is sampled now and then; between samples a process adds its own monotonic time. A sample that
disagrees with the prediction raises an alarm. Until the new time has proved stable, the process keeps the old one and
does not trust the clock: nobody loses a lease because somebody set a clock. Pure: samples come in, states go out.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import NewType, Protocol

Instant = NewType("Instant", int)
"""Microseconds since 1970-01-01 UTC."""

SECOND = 1_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def as_datetime(at: Instant) -> datetime:
    """An instant as people and JSON write it."""
    return _EPOCH + timedelta(microseconds=at)


def as_instant(at: datetime) -> Instant:
    """The instant of a time that says its zone."""
    return Instant((at - _EPOCH) // timedelta(microseconds=1))


class Clock(Protocol):
    """Whatever tells the time: the database's in production, a counter in tests and in the simulator."""

    def now(self) -> Instant: ...

    @property
    def trusted(self) -> bool: ...


@dataclass(frozen=True)
class Sample:
    """One reading of the database's clock, and the monotonic times between which it was taken."""

    database_at: Instant
    sent_us: int
    received_us: int

    @property
    def offset_us(self) -> int:
        return self.database_at - (self.sent_us + self.received_us) // 2

    @property
    def uncertainty_us(self) -> int:
        return (self.received_us - self.sent_us + 1) // 2


@dataclass(frozen=True)
class ClockRules:
    """A difference of `step_us` or more is a step, which must last for `settle_us`; vaguer samples are not used."""

    step_us: int
    settle_us: int
    uncertainty_us: int


@dataclass(frozen=True)
class ClockState:
    """The offset in use, and the one that may replace it."""

    offset_us: int
    candidate_us: int | None = None
    candidate_since_us: int = 0

    @property
    def trusted(self) -> bool:
        return self.candidate_us is None

    def at(self, monotonic_us: int) -> Instant:
        return Instant(monotonic_us + self.offset_us)


class Observation(Enum):
    """What a sample showed. Everything but STEADY is worth an operator's attention."""

    STEADY = "The clock agrees with the database."
    VAGUE = "The database took too long to tell the time; the sample was not used."
    STEPPED = "The database's clock jumped; its old time is kept until the new one has proved stable."
    UNSETTLED = "The database's clock is still settling."
    ADOPTED = "The database's new time has proved stable and is used from now on."
    RETURNED = "The database's clock went back to the time we had kept."


def first_state(sample: Sample) -> ClockState:
    """The state of a process that has just met its database."""
    return ClockState(offset_us=sample.offset_us)


def observe(state: ClockState, sample: Sample, rules: ClockRules) -> tuple[ClockState, Observation]:
    """Weigh one sample."""
    if sample.uncertainty_us > rules.uncertainty_us:
        return state, Observation.VAGUE
    tolerance_us = rules.step_us + sample.uncertainty_us
    if abs(sample.offset_us - state.offset_us) <= tolerance_us:
        return ClockState(sample.offset_us), Observation.STEADY if state.trusted else Observation.RETURNED
    if state.candidate_us is None or abs(sample.offset_us - state.candidate_us) > tolerance_us:
        waiting = replace(state, candidate_us=sample.offset_us, candidate_since_us=sample.received_us)
        return waiting, Observation.STEPPED
    if sample.received_us - state.candidate_since_us < rules.settle_us:
        return replace(state, candidate_us=sample.offset_us), Observation.UNSETTLED
    return ClockState(sample.offset_us), Observation.ADOPTED
