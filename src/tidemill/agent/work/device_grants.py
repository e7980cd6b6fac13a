"""Gives an attempt its own devices, and hides all others.

Bubblewrap is given the device's files, an engine the device's name. The driver says which file belongs to which device:
the numbers that tools show may follow another order.
"""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tidemill.agent.sandboxes.interface import SandboxFault
from tidemill.core.jobs.sandboxes import Ability, Enforcement, RunGrants
from tidemill.core.nodes.machine.hardware import Device, DeviceKind

DRIVER = Path("/proc/driver/nvidia/gpus")
SHARED_FILES = ("/dev/nvidiactl", "/dev/nvidia-uvm")

_LINE = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)


def is_grantable(device: Device) -> bool:
    """Whether a device can be given to a task. Others are reported to the pool, but get no work."""
    return device.kind is DeviceKind.NVIDIA and device.failing is None


def grants_for(devices: Sequence[Device], network: bool, enforced: Enforcement, driver: Path = DRIVER) -> RunGrants:
    """What a run is given. A fault if the driver does not say where a device is."""
    if not devices:
        return RunGrants(network=network)
    if Ability.IMAGE in enforced.abilities:
        return RunGrants(network=network, gpus=tuple(device.uuid for device in devices))
    minors = _minors(driver)
    missing = [device.uuid for device in devices if device.uuid not in minors]
    if missing:
        raise SandboxFault(f"The driver does not say where device {missing[0]} is: look at {driver}.")
    files = (*SHARED_FILES, *(f"/dev/nvidia{minors[device.uuid]}" for device in devices))
    return RunGrants(network=network, devices=tuple(map(PurePosixPath, files)))


def _minors(driver: Path) -> dict[str, str]:
    """The number in the name of each device's file, by the device's UUID."""
    texts = (file.read_text(errors="replace") for file in sorted(driver.glob("*/information")))
    fields_of_devices = (dict(_LINE.findall(text)) for text in texts)
    return {fields["GPU UUID"]: fields["Device Minor"] for fields in fields_of_devices if len(fields) == 2}
