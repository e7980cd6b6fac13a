"""The whole machine: every driver's devices in one list, and the machine around them.

Each driver is asked in a thread of its own, with a deadline. So a hanging driver costs only its own devices: they are
failing until it answers again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tidemill.agent.machine.amd import Amd
from tidemill.agent.machine.cpu import Cpu, CpuUsage, memory_used_mib
from tidemill.agent.machine.driver import DetectedDevices, Driver, failing_device
from tidemill.agent.machine.driver_calls import DriverThread, NotAnswering, complaint
from tidemill.agent.machine.nvidia import Nvidia
from tidemill.agent.machine.operating_system import disk_free_mib, host
from tidemill.core.nodes.machine.hardware import DEVICES_MAX, LINKS_MAX, DeviceState, Machine, MachineState
from tidemill.wire.messages import BeatMessage, DeviceBeatMessage


@dataclass(frozen=True)
class DriverPatience:
    """How long a driver may take. The first question wakes sleeping GPUs, which takes seconds for each."""

    detection_s: float = 60.0
    state_s: float = 5.0


PATIENCE = DriverPatience()


class _DriverInUse:
    """One driver, its last detection, and the thread it is asked on."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.detected = DetectedDevices()
        self._thread = DriverThread(driver.name)
        self._silent = False

    async def detect(self, within_s: float) -> None:
        try:
            self.detected = await self._thread.ask(self.driver.detect, within_s)
            self._silent = False
        except (NotAnswering, OSError) as failure:
            self.detected = self._as_failing(complaint(failure))
            self._silent = True

    async def states(self, within_s: float) -> Sequence[DeviceState]:
        """The states of the last detection's devices. If that was not answered, a late answer is not about them."""
        if self._silent:
            return [DeviceState(device.index, failing=device.failing) for device in self.detected.devices]
        try:
            return await self._thread.ask(self.driver.states, within_s)
        except (NotAnswering, OSError) as failure:
            return [DeviceState(device.index, failing=complaint(failure)) for device in self.detected.devices]

    def _as_failing(self, failure: str) -> DetectedDevices:
        """The devices as they were last known, now failing."""
        devices = self.detected.devices or (failing_device(self.driver.kind, failure),)
        return DetectedDevices(tuple(replace(device, failing=failure) for device in devices))


class Hardware:
    """Tells what the machine is (`machine`) and how it is (`state`). Ask for the machine first."""

    def __init__(self, home: Path, patience: DriverPatience = PATIENCE) -> None:
        self._home = home
        self._patience = patience
        self._host = DriverThread("The machine")
        self._gpus = [_DriverInUse(Nvidia()), _DriverInUse(Amd())]
        self._cpu = _DriverInUse(Cpu())
        self._busy = CpuUsage()
        self._parts: list[_DriverInUse] = []

    async def machine(self) -> Machine:
        """Detect everything anew. Raises NotAnswering if the machine itself, most likely its disk, does not answer."""
        within_s = self._patience.detection_s
        host_facts, _ = await asyncio.gather(
            self._host.ask(lambda: host(self._home), within_s),
            asyncio.gather(*(part.detect(within_s) for part in self._gpus)),
        )
        self._parts = [part for part in self._gpus if part.detected.devices]
        if not self._parts:
            await self._cpu.detect(within_s)
            self._parts = [self._cpu]
        return _joined(host_facts, [part.detected for part in self._parts])

    async def state(self) -> MachineState:
        """How everything is now, in the order of the last detection."""
        within_s = self._patience.state_s
        free_mib, answers = await asyncio.gather(
            self._free_mib(), asyncio.gather(*(part.states(within_s) for part in self._parts))
        )
        states = [state for states in answers for state in states][:DEVICES_MAX]
        numbered = tuple(replace(state, index=index) for index, state in enumerate(states))
        return MachineState(self._busy.percent(), memory_used_mib(), free_mib, numbered)

    async def _free_mib(self) -> int:
        """The free disk space; 0 if the disk does not answer."""
        try:
            return await self._host.ask(lambda: disk_free_mib(self._home), self._patience.state_s)
        except NotAnswering:
            return 0


def beat_of(state: MachineState, number: int, round_trip_ms: int | None) -> BeatMessage:
    """The state as a beat carries it. Which devices fail is in the machine's facts."""
    devices = [
        DeviceBeatMessage(device.utilisation_pct, device.memory_used_mib, device.temperature_c, device.power_w)
        for device in state.devices
    ]
    return BeatMessage(number, state.cpu_pct, state.memory_used_mib, state.disk_free_mib, round_trip_ms, devices)


def _joined(host_facts: Machine, detections: Sequence[DetectedDevices]) -> Machine:
    """One machine with the devices of all drivers, and their links, numbered through."""
    devices, links, first = [], [], 0
    for detection in detections:
        devices += [replace(device, index=first + device.index) for device in detection.devices]
        links += [replace(link, one=first + link.one, other=first + link.other) for link in detection.links]
        first += len(detection.devices)
    kept_links = [link for link in links if link.other < DEVICES_MAX]
    return replace(host_facts, devices=tuple(devices[:DEVICES_MAX]), links=tuple(kept_links[:LINKS_MAX]))
