"""Which accepted attempts a node starts now, and which assignments it cannot meet. Pure.

A device runs one attempt at a time; attempts on the CPU share its cores; memory and disk are never promised twice. The
attempt that waits longest goes first, and a step of priority is worth a minute of waiting, so none waits for ever. A
small attempt may start before a large one that does not fit yet, but only until the large one has waited long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.core.refusals import Refusal

WAITING_MAX = 256
PRIORITY_US = 60 * SECOND
OVERTAKEN_US = 30 * SECOND
"""An attempt that has waited so long is no longer overtaken."""


class QueueRefusal(Refusal):
    QUEUE_FULL = "So many attempts wait on this machine that it takes no more: offer it again later."
    DEADLINE_IMPOSSIBLE = "The deadline has passed, or comes before anything could be done: offer it with more time."
    TOO_FEW_DEVICES = "This machine has not that many working devices with that much memory."
    TOO_FEW_CORES = "This machine has not that many processor cores."
    TOO_LITTLE_MEMORY = "This machine has not that much memory for tasks."
    TOO_LITTLE_DISK = "This machine has not that much free disk space for tasks."
    RUNNER_MISSING = "No runner for this kind of task is installed on this machine."
    READER_UNFIT = "The result would be sealed to a key that everybody can open: give a real public key."
    TASK_UNNAMED = "The offer does not say which task it is of: offer it with the task's id."


@dataclass(frozen=True)
class MachineRoom:
    """What a machine has for work. `devices` are the working ones, by index, with their memory in MiB."""

    cores: float
    memory_mib: int
    disk_mib: int
    devices: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class MachineShare:
    """What one attempt takes while it runs. Without devices it runs on the CPU."""

    cores: float
    memory_mib: int
    disk_mib: int
    devices: int = 0
    gpu_memory_mib: int = 0


@dataclass(frozen=True)
class QueuedAttempt:
    """An attempt that was accepted and has not begun."""

    attempt_id: UUID
    share: MachineShare
    priority: int
    since: Instant
    deadline_at: Instant


@dataclass(frozen=True)
class AttemptStart:
    """An attempt, and the devices that it owns until it ends."""

    attempt_id: UUID
    share: MachineShare
    devices: tuple[int, ...]


def objection(share: MachineShare, room: MachineRoom, *, waiting: int, left_us: int) -> QueueRefusal | None:
    """Why this machine could not run an attempt even when idle, or has too much to do."""
    fitting = [memory for memory in room.devices.values() if memory >= share.gpu_memory_mib]
    causes = {
        QueueRefusal.QUEUE_FULL: waiting >= WAITING_MAX,
        QueueRefusal.DEADLINE_IMPOSSIBLE: left_us <= 0,
        QueueRefusal.TOO_FEW_DEVICES: share.devices > len(fitting),
        QueueRefusal.TOO_FEW_CORES: share.cores > room.cores,
        QueueRefusal.TOO_LITTLE_MEMORY: share.memory_mib > room.memory_mib,
        QueueRefusal.TOO_LITTLE_DISK: share.disk_mib > room.disk_mib,
    }
    return next((refusal for refusal, holds in causes.items() if holds), None)


def starts(
    waiting: Sequence[QueuedAttempt], running: Sequence[AttemptStart], room: MachineRoom, now: Instant
) -> list[AttemptStart]:
    """The attempts that start now, in order."""
    free = room
    for start in running:
        free = _without(free, start)
    started = []
    for attempt in sorted(waiting, key=_turn):
        devices = _devices_for(attempt.share, free)
        if devices is not None:
            started.append(AttemptStart(attempt.attempt_id, attempt.share, devices))
            free = _without(free, started[-1])
        elif now - attempt.since >= OVERTAKEN_US:
            break
    return started


def overdue(waiting: Sequence[QueuedAttempt], now: Instant) -> list[UUID]:
    """Attempts whose deadline has passed while they waited."""
    return [attempt.attempt_id for attempt in waiting if attempt.deadline_at <= now]


def _turn(attempt: QueuedAttempt) -> tuple[int, int, bytes]:
    return (attempt.since - attempt.priority * PRIORITY_US, attempt.deadline_at, attempt.attempt_id.bytes)


def _devices_for(share: MachineShare, free: MachineRoom) -> tuple[int, ...] | None:
    """The smallest sufficient devices, so that larger ones stay free for larger needs; None if it does not fit."""
    if share.cores > free.cores or share.memory_mib > free.memory_mib or share.disk_mib > free.disk_mib:
        return None
    fitting = sorted((memory, index) for index, memory in free.devices.items() if memory >= share.gpu_memory_mib)
    return None if share.devices > len(fitting) else tuple(index for _, index in fitting[: share.devices])


def _without(free: MachineRoom, start: AttemptStart) -> MachineRoom:
    share = start.share
    return replace(
        free,
        cores=free.cores - share.cores,
        memory_mib=free.memory_mib - share.memory_mib,
        disk_mib=free.disk_mib - share.disk_mib,
        devices={index: memory for index, memory in free.devices.items() if index not in start.devices},
    )
