"""NVIDIA's GPUs through NVML.

Without the driver there are none. A driver that does not work is reported as one failing device with the driver's
words, since nobody can tell how many there are. Every detection starts NVML anew, to see GPUs that went or came.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pynvml  # type: ignore[import-untyped]

from tidemill.agent.machine.driver import DetectedDevices, failing_device
from tidemill.agent.machine.driver_calls import DeviceReader, complaint, within, words
from tidemill.core.nodes.machine.hardware import (
    DEVICES_MAX,
    Device,
    DeviceKind,
    DeviceLink,
    DeviceState,
    LinkKind,
    Pcie,
)

FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError, UnicodeDecodeError)

ABSENT = {pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, pynvml.NVML_ERROR_DRIVER_NOT_LOADED}

SHRUGS = {
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NO_PERMISSION,
    pynvml.NVML_ERROR_INVALID_ARGUMENT,
    pynvml.NVML_ERROR_NOT_FOUND,
    pynvml.NVML_ERROR_NO_DATA,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    pynvml.NVML_ERROR_DEPRECATED,
}
"""Errors by which a driver says that this GPU, or the driver itself, does not have a value."""

GENERATIONS = {
    pynvml.NVML_NVLINK_VERSION_1_0: 1,
    pynvml.NVML_NVLINK_VERSION_2_0: 2,
    pynvml.NVML_NVLINK_VERSION_2_2: 2,
    pynvml.NVML_NVLINK_VERSION_3_0: 3,
    pynvml.NVML_NVLINK_VERSION_3_1: 3,
    pynvml.NVML_NVLINK_VERSION_4_0: 4,
    pynvml.NVML_NVLINK_VERSION_5_0: 5,
}

SWITCH = "switch"
"""The end of a link that leads to a switch, and so to every device with a link to it."""


class Nvidia:
    """The driver's devices. One thread at a time."""

    kind = DeviceKind.NVIDIA
    name = "The NVIDIA driver"

    def __init__(self) -> None:
        self._begun = False
        self._handles: list[Any] = []
        self._devices: list[Device] = []

    def detect(self) -> DetectedDevices:
        """Every device, and the links between them."""
        self._handles, self._devices = [], []
        try:
            self._begin()
            count = min(pynvml.nvmlDeviceGetCount(), DEVICES_MAX)
        except FAILURES as error:
            return self._not_begun(error)
        for index in range(count):
            self._add(index)
        return DetectedDevices(tuple(self._devices), tuple(_links(self._devices, self._handles)))

    def states(self) -> Sequence[DeviceState]:
        """How each device of the last detection is."""
        return [_state(device, handle) for device, handle in zip(self._devices, self._handles, strict=True)]

    def _begin(self) -> None:
        if self._begun:
            self._begun = False
            with suppress(*FAILURES):  # its state is lost either way
                pynvml.nvmlShutdown()
        pynvml.nvmlInit()
        self._begun = True

    def _not_begun(self, error: Exception) -> DetectedDevices:
        if isinstance(error, pynvml.NVMLError) and error.value in ABSENT:
            return DetectedDevices()
        self._devices, self._handles = [failing_device(self.kind, complaint(error))], [None]
        return DetectedDevices(tuple(self._devices))

    def _add(self, index: int) -> None:
        readings = _readings()
        handle = readings.must(None, pynvml.nvmlDeviceGetHandleByIndex, index)
        self._handles.append(handle)
        self._devices.append(_device(index, handle, readings))


def _device(index: int, handle: Any, readings: DeviceReader) -> Device:
    name = readings.must("", pynvml.nvmlDeviceGetName, handle)
    uuid = readings.must("", pynvml.nvmlDeviceGetUUID, handle)
    memory = readings.must(None, pynvml.nvmlDeviceGetMemoryInfo, handle)
    limit_mw = readings.may(None, pynvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    ecc = readings.may(None, pynvml.nvmlDeviceGetEccMode, handle)
    pcie = _pcie(handle, readings)
    driver = readings.must("", pynvml.nvmlSystemGetDriverVersion)
    cuda = readings.may(None, pynvml.nvmlSystemGetCudaDriverVersion)
    return Device(
        index=index,
        kind=DeviceKind.NVIDIA,
        name=words(name)[:100],
        uuid=words(uuid)[:100],
        memory_mib=0 if memory is None else _mib(memory.total),
        driver=words(driver)[:100],
        cuda=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
        power_limit_w=_watts(limit_mw),
        ecc=None if ecc is None else ecc[0] == pynvml.NVML_FEATURE_ENABLED,
        pcie=pcie,
        failing=readings.failing,
    )


def _pcie(handle: Any, readings: DeviceReader) -> Pcie | None:
    generation = readings.may(None, pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle)
    width = readings.may(None, pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle)
    return Pcie(within(1, generation, 20), within(1, width, 64)) if generation and width else None


def _state(device: Device, handle: Any) -> DeviceState:
    if handle is None:
        return DeviceState(device.index, failing=device.failing)
    readings = _readings()
    memory = readings.must(None, pynvml.nvmlDeviceGetMemoryInfo, handle)
    utilisation = readings.may(None, pynvml.nvmlDeviceGetUtilizationRates, handle)
    temperature_c = _temperature(handle, readings)
    power_mw = readings.may(None, pynvml.nvmlDeviceGetPowerUsage, handle)
    corrected, uncorrected = (_ecc_errors(handle, readings, kind) if device.ecc else None for kind in _ECC_KINDS)
    return DeviceState(
        index=device.index,
        utilisation_pct=0 if utilisation is None else within(0, utilisation.gpu, 100),
        memory_used_mib=0 if memory is None else min(_mib(memory.used), device.memory_mib),
        temperature_c=None if temperature_c is None else within(-100, temperature_c, 300),
        power_w=_watts(power_mw),
        ecc_corrected=corrected,
        ecc_uncorrected=uncorrected,
        failing=readings.failing or device.failing,
    )


def _temperature(handle: Any, readings: DeviceReader) -> int | None:
    """Newer drivers have another function for this than older ones."""
    newer = readings.may(None, pynvml.nvmlDeviceGetTemperatureV, handle, pynvml.NVML_TEMPERATURE_GPU)
    if newer is not None:
        return int(newer)
    older: int | None = readings.may(None, pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU)
    return older


_ECC_KINDS = (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)


def _ecc_errors(handle: Any, readings: DeviceReader, kind: int) -> int | None:
    """Errors since the driver was loaded."""
    errors = readings.may(None, pynvml.nvmlDeviceGetTotalEccErrors, handle, kind, pynvml.NVML_VOLATILE_ECC)
    return None if errors is None else within(0, errors, 2**53)


def _links(devices: Sequence[Device], handles: Sequence[Any]) -> Iterator[DeviceLink]:
    """For each pair of working devices, the links between them, or from both to a switch."""
    working = [device for device in devices if device.failing is None]
    buses = {_bus(handles[device.index]): device.index for device in working}
    ends = {device.index: Counter(_ends(handles[device.index], buses)) for device in working}
    for position, device in enumerate(working):
        for peer in working[position + 1 :]:
            direct = ends[device.index][peer.index]
            count = direct or min(ends[device.index][SWITCH], ends[peer.index][SWITCH])
            if count:
                yield _link(device, peer.index, handles[device.index], count)


def _ends(handle: Any, buses: dict[str, int]) -> Iterator[int | str]:
    """Where each active link of a device leads: to a device of ours, or to a switch."""
    for number in range(pynvml.NVML_NVLINK_MAX_LINKS):
        readings = _readings()
        if readings.may(0, pynvml.nvmlDeviceGetNvLinkState, handle, number) != pynvml.NVML_FEATURE_ENABLED:
            continue
        kind = readings.may(None, pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, number)
        remote = readings.may(None, pynvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, number)
        if kind == pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            yield SWITCH
        elif remote is not None and (bus := _bus_text(remote)) in buses:
            yield buses[bus]


def _link(device: Device, peer_index: int, handle: Any, count: int) -> DeviceLink:
    readings = _readings()
    version = readings.may(None, pynvml.nvmlDeviceGetNvLinkVersion, handle, 0)
    # Take a known device's generation from its data sheet: drivers have counted versions in more than one way.
    generation = (
        gpu_type.nvlink.generation if (gpu_type := device.gpu_type) and gpu_type.nvlink else GENERATIONS.get(version)
    )
    each_way_mb_per_s = _speed(handle, readings)
    gb_per_s = None if each_way_mb_per_s is None else round(2 * count * each_way_mb_per_s / 1000)
    return DeviceLink(device.index, peer_index, LinkKind.NVLINK, count, generation, gb_per_s)


def _speed(handle: Any, readings: DeviceReader) -> int | None:
    """What one link carries one way, if the driver tells."""
    values = readings.may(None, pynvml.nvmlDeviceGetFieldValues, handle, [pynvml.NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON])
    if values is None or values[0].nvmlReturn != pynvml.NVML_SUCCESS or not values[0].value.uiVal:
        return None
    return within(1, values[0].value.uiVal, 1_000_000)


def _bus(handle: Any) -> str:
    """A device's address on the bus. "" if it does not tell; no link leads there."""
    pci = _readings().may(None, pynvml.nvmlDeviceGetPciInfo, handle)
    return "" if pci is None else _bus_text(pci)


def _bus_text(pci: Any) -> str:
    return f"{pci.domain:08x}:{pci.bus:02x}:{pci.device:02x}"


def _readings() -> DeviceReader:
    return DeviceReader(FAILURES, lambda error: isinstance(error, pynvml.NVMLError) and error.value in SHRUGS)


def _mib(size_bytes: int) -> int:
    return within(0, size_bytes // 2**20, 2**31)


def _watts(milliwatts: int | None) -> int | None:
    return None if milliwatts is None else within(0, milliwatts / 1000, 100_000)
