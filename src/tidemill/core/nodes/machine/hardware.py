"""What a machine is and how it is now, as its agent reports it; and which of these claims are impossible.

Every value is a claim of its node. It is bounded when it is read, compared with the catalogue and with itself here, and
tested by a challenge later. A device whose driver fails is `failing`, with the driver's words; it may have no name.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from typing import Annotated

from tidemill.core.bounded_json import Malformed, Most, Text, Whole, json_bytes, read_json
from tidemill.core.nodes.machine.gpu_names import memory_fits, recognised, types_named
from tidemill.core.nodes.machine.gpu_types import NVIDIA, GpuType
from tidemill.core.refusals import Refusal

FACTS_MAX_BYTES = 64 * 1024
DEVICES_MAX = 64
LINKS_MAX = 256
"""Every pair of 23 devices; the largest machines that are sold have 16."""

WORDS_MAX = 300
"""The most characters kept of a driver's words."""

LINK_TOLERANCE_PCT = 10
"""Drivers report the raw rate of a link, data sheets the usable part of it."""

Name = Annotated[str, Text(100)]
Words = Annotated[str, Text(WORDS_MAX)]
Percent = Annotated[int, Whole(0, 100)]
Mib = Annotated[int, Whole(0, 2**31)]
DiskMib = Annotated[int, Whole(0, 2**53)]
Watts = Annotated[int, Whole(0, 100_000)]
Degrees = Annotated[int, Whole(-100, 300)]
Count = Annotated[int, Whole(0, 2**53)]
CoreCount = Annotated[int, Whole(1, 65_536)]
Index = Annotated[int, Whole(0, DEVICES_MAX - 1)]
Rate = Annotated[int, Whole(0, 10**15)]


class DeviceKind(Enum):
    NVIDIA = "nvidia"
    AMD = "amd"
    CPU = "cpu"


class LinkKind(Enum):
    """How devices talk to each other without the machine's bus."""

    NVLINK = "nvlink"
    XGMI = "xgmi"


@dataclass(frozen=True)
class Pcie:
    """The fastest connection that the device and its slot can have."""

    generation: Annotated[int, Whole(1, 20)]
    width: Annotated[int, Whole(1, 64)]


@dataclass(frozen=True)
class Device:
    """One GPU, or the CPU where there is none. `failing` has the driver's words about what it could not do."""

    index: Index
    kind: DeviceKind
    name: Name
    uuid: Name
    memory_mib: Mib
    driver: Name
    cuda: Name | None = None
    power_limit_w: Watts | None = None
    ecc: bool | None = None
    pcie: Pcie | None = None
    failing: Words | None = None

    @property
    def gpu_type(self) -> GpuType | None:
        """The catalogue's model; None for a CPU and for what the catalogue does not know."""
        return None if self.kind is DeviceKind.CPU else recognised(self.name, self.memory_mib)


@dataclass(frozen=True)
class DeviceLink:
    """So many links between two devices, and what they carry together, both ways added up."""

    one: Index
    other: Index
    kind: LinkKind
    count: Annotated[int, Whole(1, 64)]
    generation: Annotated[int, Whole(1, 20)] | None = None
    gb_per_s: Annotated[int, Whole(0, 100_000)] | None = None


@dataclass(frozen=True)
class EngineVersion:
    """A program that can run containers or sandboxes, and its version where it tells one."""

    name: Name
    version: Name = ""


@dataclass(frozen=True)
class Network:
    """What no driver knows: measured by others, or set by the owner. None means unknown."""

    down_bps: Rate | None = None
    up_bps: Rate | None = None
    latency_ms: Annotated[int, Whole(0, 3_600_000)] | None = None
    region: Name | None = None


@dataclass(frozen=True)
class Machine:
    """The facts that seldom change: the body of the link's `Facts`, kind `machine`."""

    system: Name
    kernel: Name
    architecture: Name
    cpu: Name
    cores: CoreCount
    memory_mib: Mib
    disk_mib: DiskMib
    devices: Annotated[tuple[Device, ...], Most(DEVICES_MAX)]
    links: Annotated[tuple[DeviceLink, ...], Most(LINKS_MAX)] = ()
    engines: Annotated[tuple[EngineVersion, ...], Most(10)] = ()
    network: Network = Network()


@dataclass(frozen=True)
class DeviceState:
    """The state of one device now. Of a failing one nothing else need be known."""

    index: Index
    utilisation_pct: Percent = 0
    memory_used_mib: Mib = 0
    temperature_c: Degrees | None = None
    power_w: Watts | None = None
    ecc_corrected: Count | None = None
    ecc_uncorrected: Count | None = None
    failing: Words | None = None


@dataclass(frozen=True)
class MachineState:
    """The state of the machine now."""

    cpu_pct: Percent
    memory_used_mib: Mib
    disk_free_mib: DiskMib
    devices: Annotated[tuple[DeviceState, ...], Most(DEVICES_MAX)]


class HardwareRefusal(Refusal):
    FACTS_MALFORMED = "These facts about a machine cannot be read: run the agent's version that the pool asks for."
    DEVICES_DISORDERED = "Devices are numbered from 0 in their order: run the agent's version that the pool asks for."
    DEVICE_TWICE = "Two devices have one UUID: let the agent detect the hardware again."
    DEVICE_INCOMPLETE = "A device that works has a name, a UUID, a driver and memory: run `tidemill agent doctor`."
    DEVICE_MAKER_WRONG = "A device is of another maker than its driver: let the agent detect the hardware again."
    DEVICE_MEMORY_IMPLAUSIBLE = "A device cannot have that much memory: check the card and its driver."
    LINK_IMPLAUSIBLE = "Devices cannot be linked that way: let the agent detect the hardware again."


@dataclass(frozen=True)
class HardwareObjection:
    """Why a claim is refused: the refusal, and the figures that do not fit."""

    refusal: HardwareRefusal
    figures: str

    @property
    def sentence(self) -> str:
        return f"{self.figures} {self.refusal.sentence}"


def facts_of(machine: Machine) -> bytes:
    """The machine as the link carries it."""
    return json_bytes(machine)


def machine_of(body: bytes) -> Machine | HardwareObjection:
    """The inverse. Whether such a machine is possible is another question: `objections`."""
    read = read_json(Machine, body, FACTS_MAX_BYTES)
    return HardwareObjection(HardwareRefusal.FACTS_MALFORMED, read.sentence) if isinstance(read, Malformed) else read


def objections(machine: Machine) -> tuple[HardwareObjection, ...]:
    """Every impossible claim about a machine, each with its figures."""
    return (*_about_order(machine), *_about_devices(machine), *_about_links(machine))


def _about_order(machine: Machine) -> Iterator[HardwareObjection]:
    numbers = [device.index for device in machine.devices]
    if numbers != list(range(len(numbers))):
        yield HardwareObjection(HardwareRefusal.DEVICES_DISORDERED, f"The devices are numbered {_listed(numbers)}.")
    for first, second in combinations(machine.devices, 2):
        if first.uuid and first.uuid == second.uuid:
            yield HardwareObjection(
                HardwareRefusal.DEVICE_TWICE, f"Devices {first.index} and {second.index} are both {first.uuid}."
            )


def _about_devices(machine: Machine) -> Iterator[HardwareObjection]:
    for device in machine.devices:
        if device.failing is None and not (device.name and device.uuid and device.driver and device.memory_mib):
            yield HardwareObjection(
                HardwareRefusal.DEVICE_INCOMPLETE, f"Of device {device.index} something is missing."
            )
        if device.kind is DeviceKind.CPU:
            yield from _about_cpu(device, machine)
        elif device.gpu_type is not None:
            yield from _about_model(device, device.gpu_type)


def _about_cpu(device: Device, machine: Machine) -> Iterator[HardwareObjection]:
    if device.memory_mib > machine.memory_mib:
        figures = f"The CPU claims {device.memory_mib:,} MiB of memory, the machine has {machine.memory_mib:,} MiB."
        yield HardwareObjection(HardwareRefusal.DEVICE_MEMORY_IMPLAUSIBLE, figures)


def _about_model(device: Device, model: GpuType) -> Iterator[HardwareObjection]:
    maker = DeviceKind.NVIDIA if any(model is gpu_type for gpu_type in NVIDIA) else DeviceKind.AMD
    if device.kind is not maker:
        figures = f"Device {device.index}, {model.name}, is by {maker.value}, its driver by {device.kind.value}."
        yield HardwareObjection(HardwareRefusal.DEVICE_MAKER_WRONG, figures)
    if device.memory_mib and not memory_fits(model, device.memory_mib, ecc=device.ecc is True):
        sizes = " or ".join(f"{gpu.memory_mib:,} MiB" for gpu in types_named(device.name))
        figures = f"Device {device.index}, {model.name}, has {sizes} of memory and claims {device.memory_mib:,} MiB."
        yield HardwareObjection(HardwareRefusal.DEVICE_MEMORY_IMPLAUSIBLE, figures)


def _about_links(machine: Machine) -> Iterator[HardwareObjection]:
    pairs: set[tuple[int, int]] = set()
    for link in machine.links:
        pair = (link.one, link.other)
        if not link.one < link.other < len(machine.devices):
            figures = f"A link joins devices {link.one} and {link.other} of {len(machine.devices)}."
            yield HardwareObjection(HardwareRefusal.LINK_IMPLAUSIBLE, figures)
        elif pair in pairs:
            yield HardwareObjection(
                HardwareRefusal.LINK_IMPLAUSIBLE, f"Devices {link.one} and {link.other} are linked twice."
            )
        else:
            for index in pair:
                yield from _about_end(link, machine.devices[index])
        pairs.add(pair)


def _about_end(link: DeviceLink, device: Device) -> Iterator[HardwareObjection]:
    maker = DeviceKind.NVIDIA if link.kind is LinkKind.NVLINK else DeviceKind.AMD
    if device.kind is not maker:
        figures = f"Device {device.index} is by {device.kind.value} and claims a link of the kind {link.kind.value}."
        yield HardwareObjection(HardwareRefusal.LINK_IMPLAUSIBLE, figures)
    elif maker is DeviceKind.NVIDIA and device.gpu_type is not None:
        most_gb_per_s = device.gpu_type.nvlink.gb_per_s if device.gpu_type.nvlink else 0
        claimed_gb_per_s = link.gb_per_s or 0
        if not most_gb_per_s or claimed_gb_per_s * 100 > most_gb_per_s * (100 + LINK_TOLERANCE_PCT):
            figures = f"Device {device.index}, {device.gpu_type.name}, has {most_gb_per_s:g} GB/s of NVLink"
            yield HardwareObjection(
                HardwareRefusal.LINK_IMPLAUSIBLE, f"{figures} and claims {claimed_gb_per_s:,} GB/s."
            )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
