"""What an owner should attend to at a node: raised when a limit is crossed, cleared once it is over for good.

Each alert has two bounds and a least duration, so that a node cannot raise and clear it with every beat. A value that a
machine no longer reports changes nothing; alerts of a device that is gone are cleared. Pure: the caller brings the open
alerts, the report, the limits and the time.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.health.telemetry import Beat
from tidemill.core.nodes.machine.hardware import Machine

WHOLE_NODE = -1
LASTS_US = 300 * SECOND
"""How long an alert stays at least."""


class AlertKind(StrEnum):
    OFFLINE = "offline"
    HOT = "hot"
    FAILING_DEVICE = "failing_device"
    SLOW_LINK = "slow_link"
    LOW_DISK = "low_disk"
    DEVICE_CLAIMED_TWICE = "device_claimed_twice"


class AlertSubject(NamedTuple):
    """Which alert: there is one of its kind for each device, or one for the node."""

    kind: AlertKind
    device: int = WHOLE_NODE


@dataclass(frozen=True)
class Alert:
    about: AlertSubject
    sentence: str


@dataclass(frozen=True)
class AlertLimits:
    """Above the first bound of heat an alert is raised, and at the second it is cleared; likewise for the others."""

    hot_above_c: float
    cool_at_c: float
    slow_above_ms: float
    disk_low_mib: int

    @property
    def quick_at_ms(self) -> float:
        return self.slow_above_ms / 2

    @property
    def disk_enough_mib(self) -> int:
        return self.disk_low_mib + self.disk_low_mib // 4


@dataclass(frozen=True)
class AlertChanges:
    """The alerts to raise and to clear."""

    raised: tuple[Alert, ...]
    cleared: tuple[AlertSubject, ...]


_OF_BEATS = {AlertKind.HOT, AlertKind.SLOW_LINK, AlertKind.LOW_DISK}


def is_alarming(beat: Beat, limits: AlertLimits) -> bool:
    """Whether a beat raises anything. Most beats do not, and then nobody need look at open alerts."""
    return any(True for _ in _alarms(beat, limits))


def of_beat(open_: Mapping[AlertSubject, Instant], beat: Beat, limits: AlertLimits, now: Instant) -> AlertChanges:
    """What a beat raises and clears; `open_` says since when each alert is open."""
    raised = tuple(alert for alert in _alarms(beat, limits) if alert.about not in open_)
    old = [about for about, since in open_.items() if about.kind in _OF_BEATS and now - since >= LASTS_US]
    return AlertChanges(raised, tuple(about for about in sorted(old) if _is_over(about, beat, limits)))


def of_machine(machine: Machine) -> tuple[Alert, ...]:
    """The alerts that a machine's own report about its devices raises. They end when it says so, if old enough."""
    return tuple(
        Alert(
            AlertSubject(AlertKind.FAILING_DEVICE, device.index),
            f"{device.name or f'Device {device.index}'} is failing: {device.failing} Look at its driver and the card.",
        )
        for device in machine.devices
        if device.failing is not None
    )


def offline(silent_s: int) -> Alert:
    return Alert(
        AlertSubject(AlertKind.OFFLINE),
        f"Nothing was heard of this node for {silent_s} s of our listening: run `tidemill agent doctor` on it.",
    )


def claimed_twice(device: int, uuid: str) -> Alert:
    return Alert(
        AlertSubject(AlertKind.DEVICE_CLAIMED_TWICE, device),
        f"Another node of the pool also claims device {device}, {uuid}: remove the node that does not have it.",
    )


def _alarms(beat: Beat, limits: AlertLimits) -> Iterator[Alert]:
    for index, device in enumerate(beat.devices):
        if device.temperature_c is not None and device.temperature_c > limits.hot_above_c:
            figures = f"Device {index} is {device.temperature_c} °C and should stay at {limits.hot_above_c:g} °C"
            yield Alert(AlertSubject(AlertKind.HOT, index), f"{figures}: look at its fans and the air around it.")
    if beat.round_trip_ms is not None and beat.round_trip_ms > limits.slow_above_ms:
        figures = f"A message to this node and back takes {beat.round_trip_ms:,} ms"
        yield Alert(AlertSubject(AlertKind.SLOW_LINK), f"{figures}: look at its network.")
    if beat.disk_free_mib < limits.disk_low_mib:
        figures = f"Of the disk {beat.disk_free_mib:,} MiB are free and {limits.disk_low_mib:,} MiB are needed"
        yield Alert(AlertSubject(AlertKind.LOW_DISK), f"{figures}: free some space.")


def _is_over(about: AlertSubject, beat: Beat, limits: AlertLimits) -> bool:
    if about.kind is AlertKind.SLOW_LINK:
        return beat.round_trip_ms is not None and beat.round_trip_ms <= limits.quick_at_ms
    if about.kind is AlertKind.LOW_DISK:
        return beat.disk_free_mib >= limits.disk_enough_mib
    if about.device >= len(beat.devices):
        return True
    temperature_c = beat.devices[about.device].temperature_c
    return temperature_c is not None and temperature_c <= limits.cool_at_c
