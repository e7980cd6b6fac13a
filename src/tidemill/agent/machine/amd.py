"""AMD's GPUs through AMD SMI, where it can be imported.

Its binding raises a KeyError on import when its library is missing, and another error when the two do not fit. Then we
report no AMD devices. It answers "N/A" for values that a GPU does not have.
"""

import contextlib
import importlib
import io
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

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

SHRUGS = ("NOT_SUPPORTED", "NOT_YET_IMPLEMENTED", "NO_PERM", "NO_DATA", "FILE_NOT_FOUND", "NOT_FOUND", "INVAL")
"""Errors by which the library says that this GPU, or the library itself, does not have a value."""

ABSENT = ("DRIVER_NOT_LOADED", "FAIL_LOAD_MODULE", "NO_DRV")


class Amd:
    """The driver's devices. One thread at a time."""

    kind = DeviceKind.AMD
    name = "The AMD driver"

    def __init__(self) -> None:
        self._smi: ModuleType | None = None
        self._begun = False
        self._handles: list[Any] = []
        self._devices: list[Device] = []

    def detect(self) -> DetectedDevices:
        """Every device, and the links between them."""
        self._handles, self._devices = [], []
        smi = self._smi or _binding()
        if smi is None:
            return DetectedDevices()
        self._smi = smi
        try:
            self._handles = self._begin(smi)[:DEVICES_MAX]
            self._devices = [_device(smi, index, handle) for index, handle in enumerate(self._handles)]
            return DetectedDevices(tuple(self._devices), tuple(_links(smi, self._devices, self._handles)))
        except _failures(smi) as error:
            return self._not_begun(smi, error)

    def states(self) -> Sequence[DeviceState]:
        """How each device of the last detection is."""
        smi = self._smi
        if smi is None:
            return []
        return [_state(smi, device, handle) for device, handle in zip(self._devices, self._handles, strict=True)]

    def _begin(self, smi: ModuleType) -> list[Any]:
        if self._begun:
            self._begun = False
            with contextlib.suppress(*_failures(smi)):  # its state is lost either way
                smi.amdsmi_shut_down()
        smi.amdsmi_init()
        self._begun = True
        return list(smi.amdsmi_get_processor_handles())

    def _not_begun(self, smi: ModuleType, error: Exception) -> DetectedDevices:
        if _code(smi, error) in ABSENT:
            return DetectedDevices()
        self._devices, self._handles = [failing_device(self.kind, complaint(error))], [None]
        return DetectedDevices(tuple(self._devices))


def _device(smi: ModuleType, index: int, handle: Any) -> Device:
    readings = _readings(smi)
    chip = readings.must({}, smi.amdsmi_get_gpu_asic_info, handle)
    uuid = readings.must("", smi.amdsmi_get_gpu_device_uuid, handle)
    memory = readings.must({}, smi.amdsmi_get_gpu_vram_usage, handle)
    driver = readings.must({}, smi.amdsmi_get_gpu_driver_info, handle)
    power = readings.may({}, smi.amdsmi_get_power_info, handle)
    errors = readings.may(None, smi.amdsmi_get_gpu_total_ecc_count, handle)
    return Device(
        index=index,
        kind=DeviceKind.AMD,
        name=words(str(chip.get("market_name", "")))[:100],
        uuid=words(uuid)[:100],
        memory_mib=_number(memory.get("vram_total"), 2**31) or 0,
        driver=words(str(driver.get("driver_version", "")))[:100],
        power_limit_w=_number(power.get("power_limit"), 100_000),
        ecc=None if errors is None else True,
        pcie=_pcie(readings.may({}, smi.amdsmi_get_pcie_info, handle)),
        failing=readings.failing,
    )


def _state(smi: ModuleType, device: Device, handle: Any) -> DeviceState:
    if handle is None:
        return DeviceState(device.index, failing=device.failing)
    try:
        return _read_state(smi, device, handle)
    except _failures(smi) as error:
        return DeviceState(device.index, failing=complaint(error))


def _read_state(smi: ModuleType, device: Device, handle: Any) -> DeviceState:
    readings = _readings(smi)
    memory = readings.must({}, smi.amdsmi_get_gpu_vram_usage, handle)
    activity = readings.may({}, smi.amdsmi_get_gpu_activity, handle)
    temperature_c = _temperature(smi, handle, readings)
    power = readings.may({}, smi.amdsmi_get_power_info, handle)
    errors = readings.may({}, smi.amdsmi_get_gpu_total_ecc_count, handle) if device.ecc else {}
    return DeviceState(
        index=device.index,
        utilisation_pct=_number(activity.get("gfx_activity"), 100) or 0,
        memory_used_mib=_number(memory.get("vram_used"), device.memory_mib) or 0,
        temperature_c=temperature_c,
        power_w=_power(power),
        ecc_corrected=_number(errors.get("correctable_count"), 2**53),
        ecc_uncorrected=_number(errors.get("uncorrectable_count"), 2**53),
        failing=readings.failing or device.failing,
    )


def _temperature(smi: ModuleType, handle: Any, readings: DeviceReader) -> int | None:
    """The hot spot, which consumer and data-centre cards call by the same name; else the edge."""
    for sensor in (smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureType.EDGE):
        metric = smi.AmdSmiTemperatureMetric.CURRENT
        reading = readings.may(None, smi.amdsmi_get_temp_metric, handle, sensor, metric)
        if isinstance(reading, int):
            return within(-100, reading, 300)
    return None


def _power(power: dict[str, Any]) -> int | None:
    """GPUs differ in which of these they tell. A missing one is 0 or not a number."""
    named = ("current_socket_power", "average_socket_power", "socket_power")
    return next((watts for name in named if (watts := _number(power.get(name), 100_000))), None)


def _pcie(answer: dict[str, Any]) -> Pcie | None:
    fixed = answer.get("pcie_static", {})
    generation = _number(fixed.get("pcie_interface_version"), 20)
    width = _number(fixed.get("max_pcie_width"), 64)
    return Pcie(generation, width) if generation and width else None


def _links(smi: ModuleType, devices: Sequence[Device], handles: Sequence[Any]) -> Iterator[DeviceLink]:
    """Pairs of working devices that are one step from each other on the fabric."""
    working = [device.index for device in devices if device.failing is None]
    for position, first in enumerate(working):
        for second in working[position + 1 :]:
            link = _readings(smi).may({}, smi.amdsmi_topo_get_link_type, handles[first], handles[second])
            if link.get("type") == smi.AmdSmiLinkType.AMDSMI_LINK_TYPE_XGMI and link.get("hops") == 1:
                yield DeviceLink(first, second, LinkKind.XGMI, 1)


def _binding() -> ModuleType | None:
    """The binding, if its library is there. It prints what it misses; drop that."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module("amdsmi")
    except (ImportError, KeyError, OSError, AttributeError):
        return None


def _failures(smi: ModuleType) -> tuple[type[Exception], ...]:
    """What calls may raise. Bindings of other versions lack functions, or answer in another shape."""
    return (smi.AmdSmiException, ValueError, KeyError, AttributeError, TypeError)


def _readings(smi: ModuleType) -> DeviceReader:
    return DeviceReader(_failures(smi), lambda error: _code(smi, error) in SHRUGS)


def _code(smi: ModuleType, error: Exception) -> str:
    """The status without its prefix; "" for other errors."""
    if not isinstance(error, smi.AmdSmiLibraryException):
        return ""
    return str(error.get_error_info(detailed=False)).strip().removeprefix("AMDSMI_STATUS_")


def _number(value: Any, most: int) -> int | None:
    """A number from the driver; None for "N/A" and for the numbers that stand for it."""
    return within(0, value, most) if isinstance(value, int) and value < 2**32 - 1 else None
