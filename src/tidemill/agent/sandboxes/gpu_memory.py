"""How much memory of the GPUs some processes take, as NVIDIA's driver counts it.

No driver holds a program to an amount, so it is watched: a run that takes more than it may is ended at the next look.
Other makers' drivers are not asked: there it is said that this memory is not watched.
"""

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import pynvml  # type: ignore[import-untyped]

FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError)


class GpuMemory:
    """Use `watched_gpu_memory`. Begun once and kept: beginning takes longer than looking."""

    def used_bytes(self, pids: Collection[int]) -> int:
        """Of all devices together. A device that does not answer counts nothing."""
        wanted, total = set(pids), 0
        for index in range(pynvml.nvmlDeviceGetCount()):
            with suppress(*FAILURES):
                device = pynvml.nvmlDeviceGetHandleByIndex(index)
                total += sum(int(one.usedGpuMemory or 0) for one in _programs(device) if one.pid in wanted)
        return total


def watched_gpu_memory() -> GpuMemory | None:
    """The watch, or None where there is no NVIDIA driver that tells which program takes how much."""
    try:
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            _programs(pynvml.nvmlDeviceGetHandleByIndex(index))
    except FAILURES:
        return None
    return GpuMemory()


def _programs(device: Any) -> list[Any]:
    computing = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    return [*computing, *pynvml.nvmlDeviceGetGraphicsRunningProcesses(device)]
