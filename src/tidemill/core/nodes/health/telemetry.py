"""The state of a machine at a moment, as the pool keeps it. Every value is its node's claim, bounded on arrival."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemill.core.clock import DAY, SECOND, Instant

PAST_MAX_US = 30 * DAY
"""Late reports about times before this are worthless."""

PAST_EVERY_US = 30 * SECOND
"""Late reports are kept at this spacing and no closer, whatever a node sends: agents keep half as many themselves."""


@dataclass(frozen=True, slots=True)
class DeviceBeat:
    """The state of one device. None where it does not say."""

    utilisation_pct: int
    memory_used_mib: int
    temperature_c: int | None
    power_w: int | None


@dataclass(frozen=True, slots=True)
class Beat:
    """The state of the machine, with its devices in the order of their numbers."""

    cpu_pct: int
    memory_used_mib: int
    disk_free_mib: int
    round_trip_ms: int | None
    devices: tuple[DeviceBeat, ...]


@dataclass(frozen=True, slots=True)
class PastBeat:
    """The state of the machine at an instant when it had no link, by its own clock."""

    at: Instant
    beat: Beat


def spaced(past: Iterable[PastBeat], told_until: Instant | None, now: Instant) -> Iterator[PastBeat]:
    """Past beats to keep, in order: none of the future, of long ago, or from before one already received."""
    earliest = now - PAST_MAX_US if told_until is None else max(now - PAST_MAX_US, told_until + PAST_EVERY_US)
    for beat in past:
        if earliest <= beat.at <= now:
            yield beat
            earliest = beat.at + PAST_EVERY_US


def hottest_c(beat: Beat) -> int | None:
    return max((device.temperature_c for device in beat.devices if device.temperature_c is not None), default=None)


def hungriest_w(beat: Beat) -> int | None:
    return max((device.power_w for device in beat.devices if device.power_w is not None), default=None)


def busiest_pct(beat: Beat) -> int | None:
    return max((device.utilisation_pct for device in beat.devices), default=None)
