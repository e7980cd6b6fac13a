"""How much GPU memory some processes take, as NVIDIA's driver counts it.

No driver limits a program's memory, so it is watched: a run that takes more than it may is ended at the next look.
Other makers' drivers are not asked; on their machines the sandbox says that it does not enforce this.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import pynvml  # type: ignore[import-untyped]

FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError)


class GpuMemory:
    """Use `watched_gpu_memory`. NVML is started once and kept: starting takes longer than looking."""

    def used_bytes(self, pids: Collection[int]) -> int:
        """The memory on all devices together. A device that does not answer counts as 0."""
        wanted_pids, total = set(pids), 0
        for index in range(pynvml.nvmlDeviceGetCount()):
            with suppress(*FAILURES):
                device = pynvml.nvmlDeviceGetHandleByIndex(index)
                total += sum(
                    int(process.usedGpuMemory or 0) for process in _processes(device) if process.pid in wanted_pids
                )
        return total


def watched_gpu_memory() -> GpuMemory | None:
    """The watch; None if there is no NVIDIA driver that tells how much each process takes."""
    try:
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            _processes(pynvml.nvmlDeviceGetHandleByIndex(index))
    except FAILURES:
        return None
    return GpuMemory()


def _processes(device: Any) -> list[Any]:
    computing = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    return [*computing, *pynvml.nvmlDeviceGetGraphicsRunningProcesses(device)]
