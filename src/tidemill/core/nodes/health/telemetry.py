"""How a machine was at a moment, as the pool keeps it. Every value is its node's claim, bounded where it came in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemill.core.clock import DAY, SECOND, Instant

PAST_MAX_US = 30 * DAY
"""What a node tells later of how it was before that is worth nothing to anybody."""

PAST_EVERY_US = 30 * SECOND
"""Of what a node tells later so much is kept and no more, whatever it tells: agents keep half as much themselves."""


@dataclass(frozen=True, slots=True)
class DeviceBeat:
    """How one device was. None where it does not say."""

    utilisation_pct: int
    memory_used_mib: int
    temperature_c: int | None
    power_w: int | None


@dataclass(frozen=True, slots=True)
class Beat:
    """How the machine was, with its devices in the order of their numbers."""

    cpu_pct: int
    memory_used_mib: int
    disk_free_mib: int
    round_trip_ms: int | None
    devices: tuple[DeviceBeat, ...]


@dataclass(frozen=True, slots=True)
class PastBeat:
    """How the machine was at an instant when nobody could be told, by its own clock."""

    at: Instant
    beat: Beat


def spaced(past: Iterable[PastBeat], told_until: Instant | None, now: Instant) -> Iterator[PastBeat]:
    """Past beats that can be kept, in their order: none of the future, of long ago, or from before one told already."""
    earliest = now - PAST_MAX_US if told_until is None else max(now - PAST_MAX_US, told_until + PAST_EVERY_US)
    for one in past:
        if earliest <= one.at <= now:
            yield one
            earliest = one.at + PAST_EVERY_US


def hottest_c(beat: Beat) -> int | None:
    return max((device.temperature_c for device in beat.devices if device.temperature_c is not None), default=None)


def hungriest_w(beat: Beat) -> int | None:
    return max((device.power_w for device in beat.devices if device.power_w is not None), default=None)


def busiest_pct(beat: Beat) -> int | None:
    return max((device.utilisation_pct for device in beat.devices), default=None)
