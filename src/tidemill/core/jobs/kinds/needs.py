"""What a task needs of a machine, as its kind estimates it; and the limits of its run that follow.

Estimates serve quotes and placement. The limits of a run are higher, so that an honest estimate that is a little low
does not end the run.
"""

from dataclasses import dataclass
from math import ceil

from tidemill.core.jobs.sandboxes import MIB, RunLimits
from tidemill.core.settings.sections.work import ContainersSettings

ROOM = 1.25
"""How much more than its estimate a run may take."""

LITTLE_BYTES = 64 * MIB


@dataclass(frozen=True)
class Needs:
    """What a task takes.

    `devices` is how many GPUs it wants; with none it runs on `cores` processor cores. `operations` serve to estimate
    time from a device's speed: the multiplications and additions of a large matrix product that takes about the same
    time, within a factor of three. `seconds` is the run time that the customer states where nobody can count
    operations, else zero. GPU memory is per device. Shared memory is None where the pool decides.
    """

    memory_mib: int
    disk_mib: int
    operations: float
    devices: int = 0
    gpu_memory_mib: int = 0
    shared_memory_mib: int | None = 64
    cores: int = 1
    seconds: int = 0


def limits_of(needs: Needs, seconds: float, containers: ContainersSettings) -> RunLimits:
    """The most that a run with these needs may take, for so many seconds."""
    usual_mib, asked_mib = containers.shared_memory_mib, needs.shared_memory_mib
    disk_bytes = ceil(needs.disk_mib * ROOM) * MIB + LITTLE_BYTES
    return RunLimits(
        seconds=seconds,
        memory_bytes=ceil(needs.memory_mib * ROOM) * MIB,
        shared_memory_bytes=max(1, usual_mib if asked_mib is None else asked_mib) * MIB,
        disk_bytes=disk_bytes,
        file_bytes=disk_bytes,
        cpu_share=float(needs.cores),
        pids=64 + 16 * needs.cores,
        gpu_memory_bytes=needs.devices * ceil(needs.gpu_memory_mib * ROOM) * MIB or None,
    )
