"""What every driver answers about its devices, whoever made them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tidemill.core.nodes.machine.hardware import Device, DeviceKind, DeviceLink, DeviceState


@dataclass(frozen=True)
class DetectedDevices:
    """What a detection found. Devices are numbered within their driver, from 0."""

    devices: tuple[Device, ...] = ()
    links: tuple[DeviceLink, ...] = ()


class Driver(Protocol):
    """One maker's devices. Both calls may hang; neither raises the driver's own errors."""

    @property
    def kind(self) -> DeviceKind: ...

    @property
    def name(self) -> str: ...

    def detect(self) -> DetectedDevices:
        """Every device there is now."""
        ...

    def states(self) -> Sequence[DeviceState]:
        """How each device of the last detection is."""
        ...


def failing_device(kind: DeviceKind, failure: str) -> Device:
    """One device that stands for all devices of a driver which does not work."""
    return Device(index=0, kind=kind, name="", uuid="", memory_mib=0, driver="", failing=failure)
