"""Which GPU of the catalogue a driver's name means. Pure, and the same on a node and in the pool.

Names differ by driver and by year ("GeForce RTX 3090", "NVIDIA GeForce RTX 3090"), so the comparison ignores makers and
families, and everything else must match: an "RTX 3080 Laptop GPU" is not an RTX 3080. A model that is not in the
catalogue is unknown, and welcome.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from tidemill.core.nodes.machine.gpu_types import AMD, NVIDIA, GpuType, MemoryKind

CATALOGUE: tuple[GpuType, ...] = NVIDIA + AMD

MEMORY_TOLERANCE_PCT = 3
"""A driver keeps some memory for itself, and may or may not say so."""

_UNSAID = {"nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "graphics", "oam", "mcm"}
_IN_BRACKETS = re.compile(r"\[([^\[\]]+)\]\s*$")


def types_named(name: str) -> tuple[GpuType, ...]:
    """The models a driver may mean by this name, by memory, smallest first; none if it is unknown."""
    return _BY_KEY.get(key(name), ())


def models_called(name: str) -> frozenset[str]:
    """The names of the models that somebody means by a name: those that are called so, else those whose names begin so,
    as `A100` means all of its line. None if it is unknown."""
    exactly = frozenset(gpu.name for gpu in types_named(name))
    begins = f"{key(name)} "
    return exactly or frozenset(
        gpu.name for gpu in CATALOGUE if f"{key(gpu.name)} ".startswith(begins) and begins.strip()
    )


def recognised(name: str, memory_mib: int) -> GpuType | None:
    """The model with this name whose memory is nearest to the reported one; None if the name is unknown."""
    return min(types_named(name), key=lambda gpu: abs(gpu.memory_mib - memory_mib), default=None)


def memory_fits(gpu: GpuType, memory_mib: int, *, ecc: bool) -> bool:
    """Whether a device of this model can have so much memory."""
    least_mib = gpu.memory_mib * 15 // 16 if ecc and gpu.memory is MemoryKind.GDDR else gpu.memory_mib
    return least_mib * (100 - MEMORY_TOLERANCE_PCT) <= memory_mib * 100 <= gpu.memory_mib * (100 + MEMORY_TOLERANCE_PCT)


def key(name: str) -> str:
    """The part of a name that is compared. Device lists write the name people know in brackets, at the end."""
    bracketed = _IN_BRACKETS.search(name)
    words = re.findall(r"[a-z0-9]+", (bracketed[1] if bracketed else name).lower())
    return " ".join(word for word in words if word not in _UNSAID)


def _by_key(catalogue: Iterable[GpuType]) -> Mapping[str, tuple[GpuType, ...]]:
    gpus_by_key: dict[str, list[GpuType]] = defaultdict(list)
    for gpu in sorted(catalogue, key=lambda gpu: gpu.memory_mib):
        for name_key in {key(name) for name in (gpu.name, *gpu.also)}:
            gpus_by_key[name_key].append(gpu)
    return {name_key: tuple(gpus) for name_key, gpus in gpus_by_key.items()}


_BY_KEY = _by_key(CATALOGUE)
