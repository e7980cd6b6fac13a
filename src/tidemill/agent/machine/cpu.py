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
"""Files with a container's limit, for both versions of control groups."""

SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")
"""Names of processors' sensors on different machines. The first that exists is used."""


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
    """How busy the processor was since the last call, whichever thread calls."""

    def __init__(self) -> None:
        self._total_s, self._idle_s = _processor_times_s()
        self._percent = 0

    def percent(self) -> int:
        total_s, idle_s = _processor_times_s()
        passed_s = total_s - self._total_s
        if passed_s > 0:
            self._percent = within(0, 100 * (1 - (idle_s - self._idle_s) / passed_s), 100)
            self._total_s, self._idle_s = total_s, idle_s
        return self._percent


def cpu_model() -> str:
    """The processor's name, or its architecture if it has none."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() in ("model name", "hardware") and (model_name := words(value)):
                return model_name[:100]
    return words(platform.processor() or platform.machine())[:100] or "unknown"


def cores() -> int:
    """The processors that we may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_mib() -> int:
    """The machine's memory, or as much of it as we may use."""
    return within(0, min([psutil.virtual_memory().total, *_limits()]) // 2**20, 2**31)


def memory_used_mib() -> int:
    """The memory that is not available."""
    memory = psutil.virtual_memory()
    return within(0, (memory.total - memory.available) // 2**20, memory_mib())


def temperature_c() -> int | None:
    """The processor's highest temperature, if the machine tells it."""
    if not hasattr(psutil, "sensors_temperatures"):
        return None
    sensors = psutil.sensors_temperatures()
    readings = next((sensors[name] for name in SENSORS if sensors.get(name)), None)
    return None if readings is None else within(-100, max(reading.current for reading in readings), 300)


def _processor_times_s() -> tuple[float, float]:
    """Processor time since the machine was started: in total, and idle."""
    times = psutil.cpu_times()._asdict()
    guests_s = times.get("guest", 0.0) + times.get("guest_nice", 0.0)  # also counted among the users'
    return sum(times.values()) - guests_s, times["idle"] + times.get("iowait", 0.0)


def _limits() -> Iterator[int]:
    for file in MEMORY_LIMITS:
        with suppress(OSError, ValueError):  # without a limit there is no file, or a word in it
            yield int(file.read_text("ascii"))
