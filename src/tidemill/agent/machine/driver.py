"""What a driver's devices look like from outside, whichever maker's they are."""

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
    """One maker's devices. Both questions may hang, and neither raises what the driver raises."""

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


def failing_device(kind: DeviceKind, said: str) -> Device:
    """Stands for all devices of a driver that tells nothing about them."""
    return Device(index=0, kind=kind, name="", uuid="", memory_mib=0, driver="", failing=said)
