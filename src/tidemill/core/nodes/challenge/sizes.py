"""How much of a node is challenged: nearly all memory of a GPU, a share of the machine's, a second or two of speed.

The machine itself is challenged as its CPU where that is its device, else beside its GPUs: as many products as all the
cores that it claims do in a second or two, and a fixed share of the memory that it claims. So whoever claims more has
more to show: the memory of a machine that fills an eighth of its claim counts as all of it, and nobody can claim more
than eight times what they can fill. Much more than an eighth would be in an owner's way.

Seeds and draws are hashes of random bytes that the caller brings, so the pool keeps only those bytes.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

from tidemill.core.bounded_json import Most, Whole
from tidemill.core.merkle import drawn_places
from tidemill.core.nodes.challenge.messages import (
    CHALLENGED_MAX,
    HOST,
    PAGES_DRAWN,
    ROWS_DRAWN,
    ChallengedIndex,
    ChallengeInstruction,
    DeviceDraw,
    DevicePair,
    DeviceTask,
)
from tidemill.core.nodes.challenge.tasks import PAGE_WORDS, PAGES_IN_MIB, MemoryTask, SpeedTask
from tidemill.core.nodes.machine.hardware import LINKS_MAX, CoreCount, Device, DeviceKind, Machine, Mib, Name
from tidemill.core.settings.sections.challenge import ChallengeSettings

SPEED_MAX = 10**18
OperationRate = Annotated[int, Whole(0, SPEED_MAX)]
"""Operations a second; a multiplication and its addition are two."""

_FIRST_GUESS = {DeviceKind.CPU: 20 * 10**9, DeviceKind.NVIDIA: 10**12, DeviceKind.AMD: 10**12}
"""The assumed speed of a device, or of each core, that is in no catalogue and was never measured."""

_SIDES = ((2 * 10**13, 8192), (10**12, 4096), (10**9, 1024), (0, 256))
"""The larger the matrices, the less time goes into drawing them; the smaller, the cheaper they are to check."""

_WIDTH = {DeviceKind.CPU: 1024, DeviceKind.NVIDIA: 4096, DeviceKind.AMD: 4096}
_WIDTH_MAX = 2**16
_WIDTH_OF_CORE = 128
"""Cores fill a step together, so each must find enough to do in it."""

_PRODUCTS_MAX = 1_000_000
_SLOWER = 2
"""Filling a GPU's memory anew takes at least so many times as long as there is for opening."""

_OPERATIONS_A_ROUND = 16
"""A round of a word, in the floating-point operations that a GPU could do meanwhile: eight integer instructions, on
cards that do as many of those in a second as multiplications with an addition, which data sheets count twice."""

_UNKNOWN_GPU = 5 * 10**12


@dataclass(frozen=True)
class ChallengedDevice:
    """What a device claimed when it was challenged, what the catalogue says of it, and its task. Zero means unknown."""

    name: Name
    memory_mib: Mib
    catalogue_ops_per_s: OperationRate
    earlier_ops_per_s: OperationRate
    nvlink_gb_per_s: Annotated[int, Whole(0, 100_000)]
    task: DeviceTask


@dataclass(frozen=True)
class ChallengedMachine:
    """What a machine claimed of itself when it was challenged, and under which number it shows that."""

    index: ChallengedIndex
    cores: CoreCount
    memory_mib: Mib


@dataclass(frozen=True)
class ChallengePlan:
    """A node's challenge: its sound devices, the pairs of them that claim to be linked, and the machine itself.

    Where the machine is no device, it stands last in `devices` under the number `HOST`.
    """

    devices: Annotated[tuple[ChallengedDevice, ...], Most(CHALLENGED_MAX)]
    machine: ChallengedMachine
    pairs: Annotated[tuple[DevicePair, ...], Most(LINKS_MAX)] = ()

    @property
    def tasks(self) -> Mapping[int, DeviceTask]:
        return {device.task.index: device.task for device in self.devices}


def plan_challenge(
    machine: Machine, earlier: Mapping[int, int], seed: bytes, settings: ChallengeSettings
) -> ChallengePlan:
    """The challenge of a machine. `earlier` are measured speeds by device; failing devices are not challenged, and a
    machine without any other is not either."""
    sound = [device for device in machine.devices if device.failing is None and device.memory_mib > 0]
    numbers = {device.index for device in sound}
    pairs = tuple(DevicePair(link.one, link.other) for link in machine.links if {link.one, link.other} <= numbers)
    asked = [_asked_device(device, machine, earlier.get(device.index, 0), seed, settings) for device in sound]
    index = next((device.index for device in sound if device.kind is DeviceKind.CPU), HOST)
    if asked and index == HOST:
        asked.append(_asked_host(machine, seed, settings))
    return ChallengePlan(tuple(asked), ChallengedMachine(index, machine.cores, machine.memory_mib), pairs)


def ask_instruction(challenge_id: UUID, plan: ChallengePlan, keep_s: int) -> ChallengeInstruction:
    return ChallengeInstruction(
        challenge_id.hex, keep_s, tasks=tuple(device.task for device in plan.devices), pairs=plan.pairs
    )


def draw_instruction(challenge_id: UUID, plan: ChallengePlan, draw: bytes, keep_s: int) -> ChallengeInstruction:
    return ChallengeInstruction(challenge_id.hex, keep_s, draws=draws(plan, draw))


def draws(plan: ChallengePlan, draw: bytes) -> tuple[DeviceDraw, ...]:
    """What every device must show."""
    return tuple(device_draw(device.task, draw) for device in plan.devices)


def device_draw(task: DeviceTask, draw: bytes) -> DeviceDraw:
    pages = drawn_places(draw, f"pages of {task.index}", task.memory.pages, PAGES_DRAWN)
    rows = drawn_places(draw, f"rows of {task.index}", task.speed.rows, ROWS_DRAWN)
    return DeviceDraw(task.index, tuple(pages), tuple(rows))


def _asked_device(
    device: Device, machine: Machine, earlier: int, seed: bytes, settings: ChallengeSettings
) -> ChallengedDevice:
    catalogue = int(device.gpu_type.fp32_tflops * 10**12) if device.gpu_type else 0
    if device.kind is DeviceKind.CPU:
        task = _machine_task(machine, device.index, earlier, seed, settings)
    else:
        task = DeviceTask(
            device.index,
            _speed_task(
                catalogue or earlier or _FIRST_GUESS[device.kind], 1, settings, _seed(seed, "speed", device.index)
            ),
            _gpu_memory_task(device, catalogue, settings, _seed(seed, "memory", device.index)),
        )
    nvlink = device.gpu_type.nvlink if device.gpu_type else None
    return ChallengedDevice(
        device.name, device.memory_mib, catalogue, earlier, int(nvlink.gb_per_s) if nvlink else 0, task
    )


def _asked_host(machine: Machine, seed: bytes, settings: ChallengeSettings) -> ChallengedDevice:
    """The machine around its GPUs. Its speed is measured for its cores alone, so no earlier one is asked for."""
    return ChallengedDevice(machine.cpu, machine.memory_mib, 0, 0, 0, _machine_task(machine, HOST, 0, seed, settings))


def _machine_task(machine: Machine, index: int, earlier: int, seed: bytes, settings: ChallengeSettings) -> DeviceTask:
    """What all cores do at once: the same number of products for each that is claimed, and a share of the memory."""
    of_core = earlier // machine.cores or _FIRST_GUESS[DeviceKind.CPU]
    mib = max(1, int(machine.memory_mib * settings.machine_memory_share))
    width = min(_WIDTH_MAX, max(_WIDTH[DeviceKind.CPU], _WIDTH_OF_CORE * machine.cores))
    return DeviceTask(
        index,
        _speed_task(of_core, machine.cores, settings, _seed(seed, "speed", index)),
        _memory_task(mib * PAGES_IN_MIB, width, 1, _seed(seed, "memory", index)),
    )


def _speed_task(speed: int, cores: int, settings: ChallengeSettings, seed: int) -> SpeedTask:
    """As many products for each core, or for a GPU as if it were one, as it does in the time that is set."""
    operations = speed * settings.speed_s
    side = next((side for least, side in _SIDES if speed >= least and operations >= 2 * side**3), _SIDES[-1][1])
    products = max(1, round(operations / (2 * side**3)))
    return SpeedTask(seed, side, min(products * cores, _PRODUCTS_MAX))


def _gpu_memory_task(device: Device, catalogue: int, settings: ChallengeSettings, seed: int) -> MemoryTask:
    pages = max(1, int(device.memory_mib * settings.memory_share)) * PAGES_IN_MIB
    return _memory_task(pages, _WIDTH[device.kind], _rounds(catalogue, pages, settings.open_s), seed)


def _memory_task(pages: int, width_max: int, rounds: int, seed: int) -> MemoryTask:
    width = min(width_max, max(1, pages // 64))
    return MemoryTask(seed, max(2, pages // width), width, rounds)


def _rounds(catalogue: int, pages: int, open_s: float) -> int:
    """As many as make a GPU too slow to refill its memory while it should open it. A CPU's time is its owner's."""
    operations = _SLOWER * open_s * (catalogue or _UNKNOWN_GPU)
    return min(max(1, int(operations / (_OPERATIONS_A_ROUND * pages * PAGE_WORDS))), 2**20)


def _seed(seed: bytes, purpose: str, index: int) -> int:
    hashed = hashlib.sha256(seed + f"{purpose} of {index}".encode()).digest()
    return int.from_bytes(hashed[:8], "little") >> 1
