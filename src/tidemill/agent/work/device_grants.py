"""How an attempt is given the devices that are its own, and sees no others.

In bubblewrap a device is the files by which its driver is reached; an engine is told its name. The driver says which
file belongs to which device: numbers that tools show may be in another order.
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
    """Whether a device can be given to a task. Others are seen and told, and get no work."""
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
    found = (dict(_LINE.findall(text)) for text in texts)
    return {one["GPU UUID"]: one["Device Minor"] for one in found if len(one) == 2}
