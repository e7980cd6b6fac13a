"""The CPU: a device where there is no GPU, and part of every machine."""

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from tidemill.agent.machine.driver import DetectedDevices
from tidemill.agent.machine.driver_calls import within, words
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, DeviceState

MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container's limit stands, by the version of control groups."""

SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")
"""Sensors of processors, by what they are called on different machines; the first that is there tells."""


class Cpu:
    """The processor as the machine's only device."""

    kind = DeviceKind.CPU
    name = "The machine"

    def __init__(self) -> None:
        self._busy = CpuUsage()

    def detect(self) -> DetectedDevices:
        kernel = words(f"{platform.system()} {platform.release()}")[:100]
        return DetectedDevices((Device(0, DeviceKind.CPU, cpu_model(), "CPU-0", memory_mib(), kernel),))

    def states(self) -> Sequence[DeviceState]:
        return [DeviceState(0, self._busy.percent(), memory_used_mib(), temperature_c())]


class CpuUsage:
    """How busy the processor is, counted from one question to the next, whichever thread asks."""

    def __init__(self) -> None:
        self._total_s, self._idle_s = _spent()
        self._percent = 0

    def percent(self) -> int:
        total_s, idle_s = _spent()
        passed_s = total_s - self._total_s
        if passed_s > 0:
            self._percent = within(0, 100 * (1 - (idle_s - self._idle_s) / passed_s), 100)
            self._total_s, self._idle_s = total_s, idle_s
        return self._percent


def cpu_model() -> str:
    """The processor's name; of one that does not tell it, the architecture."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() in ("model name", "hardware") and (said := words(value)):
                return said[:100]
    return words(platform.processor() or platform.machine())[:100] or "unknown"


def cores() -> int:
    """The processors that we may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_mib() -> int:
    """The memory there is, or as much of it as we may use."""
    return within(0, min([psutil.virtual_memory().total, *_limits()]) // 2**20, 2**31)


def memory_used_mib() -> int:
    """The memory that is not to be had."""
    memory = psutil.virtual_memory()
    return within(0, (memory.total - memory.available) // 2**20, memory_mib())


def temperature_c() -> int | None:
    """The hottest place of the processor, where the machine tells."""
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    sensors = psutil.sensors_temperatures()
    found = next((sensors[name] for name in SENSORS if sensors.get(name)), None)
    return None if found is None else within(-100, max(place.current for place in found), 300)


def _spent() -> tuple[float, float]:
    """Processor time since the machine was started: all of it, and what was idle."""
    times = psutil.cpu_times()._asdict()
    guests_s = times.get("guest", 0.0) + times.get("guest_nice", 0.0)  # counted among the users' as well
    return sum(times.values()) - guests_s, times["idle"] + times.get("iowait", 0.0)


def _limits() -> Iterator[int]:
    for file in MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # without a limit there is no file, or a word in it
            yield int(file.read_text("ascii"))
