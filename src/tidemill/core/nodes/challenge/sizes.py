"""How much of each device is challenged: nearly all memory of a GPU, little of a desktop's, a second or two of speed.

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
    PAGES_DRAWN,
    ROWS_DRAWN,
    ChallengeInstruction,
    DeviceDraw,
    DevicePair,
    DeviceTask,
)
from tidemill.core.nodes.challenge.tasks import PAGE_WORDS, PAGES_IN_MIB, MemoryTask, SpeedTask
from tidemill.core.nodes.machine.hardware import DEVICES_MAX, LINKS_MAX, Device, DeviceKind, Machine, Mib, Name
from tidemill.core.settings.sections.challenge import ChallengeSettings

SPEED_MAX = 10**18
OperationRate = Annotated[int, Whole(0, SPEED_MAX)]
"""Operations a second; a multiplication and its addition are two."""

_FIRST_GUESS = {DeviceKind.CPU: 20 * 10**9, DeviceKind.NVIDIA: 10**12, DeviceKind.AMD: 10**12}
"""The assumed speed of a device that is in no catalogue and was never measured."""

_SIDES = ((2 * 10**13, 8192), (10**12, 4096), (10**9, 1024), (0, 256))
"""The larger the matrices, the less time goes into drawing them; the smaller, the cheaper they are to check."""

_WIDTH = {DeviceKind.CPU: 1024, DeviceKind.NVIDIA: 4096, DeviceKind.AMD: 4096}
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
class ChallengePlan:
    """A node's challenge: its sound devices, and the pairs of them that claim to be linked."""

    devices: Annotated[tuple[ChallengedDevice, ...], Most(DEVICES_MAX)]
    pairs: Annotated[tuple[DevicePair, ...], Most(LINKS_MAX)] = ()

    @property
    def tasks(self) -> Mapping[int, DeviceTask]:
        return {device.task.index: device.task for device in self.devices}


def plan_challenge(
    machine: Machine, earlier: Mapping[int, int], seed: bytes, settings: ChallengeSettings
) -> ChallengePlan:
    """The challenge of a machine. `earlier` are measured speeds by device; failing devices are not challenged."""
    sound = [device for device in machine.devices if device.failing is None and device.memory_mib > 0]
    numbers = {device.index for device in sound}
    pairs = tuple(DevicePair(link.one, link.other) for link in machine.links if {link.one, link.other} <= numbers)
    return ChallengePlan(
        tuple(_asked_device(device, earlier.get(device.index, 0), seed, settings) for device in sound), pairs
    )


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


def challenge_mib(device: Device, settings: ChallengeSettings) -> int:
    if device.kind is DeviceKind.CPU:
        return max(1, min(settings.cpu_memory_mib, device.memory_mib // 4))
    return max(1, int(device.memory_mib * settings.memory_share))


def _asked_device(device: Device, earlier: int, seed: bytes, settings: ChallengeSettings) -> ChallengedDevice:
    catalogue = int(device.gpu_type.fp32_tflops * 10**12) if device.gpu_type else 0
    speed = catalogue or earlier or _FIRST_GUESS[device.kind]
    task = DeviceTask(
        device.index,
        _speed_task(speed, settings.speed_s, _seed(seed, "speed", device.index)),
        _memory_task(device, catalogue, settings, _seed(seed, "memory", device.index)),
    )
    nvlink = device.gpu_type.nvlink if device.gpu_type else None
    return ChallengedDevice(
        device.name, device.memory_mib, catalogue, earlier, int(nvlink.gb_per_s) if nvlink else 0, task
    )


def _speed_task(speed: int, target_s: float, seed: int) -> SpeedTask:
    side = next(side for least, side in _SIDES if speed >= least)
    products = round(speed * target_s / (2 * side**3))
    return SpeedTask(seed, side, min(max(1, products), 1_000_000))


def _memory_task(device: Device, catalogue: int, settings: ChallengeSettings, seed: int) -> MemoryTask:
    pages = challenge_mib(device, settings) * PAGES_IN_MIB
    width = min(_WIDTH[device.kind], max(1, pages // 64))
    return MemoryTask(seed, max(2, pages // width), width, _rounds(device, catalogue, pages, settings.open_s))


def _rounds(device: Device, catalogue: int, pages: int, open_s: float) -> int:
    """As many as make a GPU too slow to refill its memory while it should open it. A CPU's time is its owner's."""
    if device.kind is DeviceKind.CPU:
        return 1
    operations = _SLOWER * open_s * (catalogue or _UNKNOWN_GPU)
    return min(max(1, int(operations / (_OPERATIONS_A_ROUND * pages * PAGE_WORDS))), 2**20)


def _seed(seed: bytes, purpose: str, index: int) -> int:
    hashed = hashlib.sha256(seed + f"{purpose} of {index}".encode()).digest()
    return int.from_bytes(hashed[:8], "little") >> 1
