"""One device at work on a challenge: it multiplies, fills its memory, and shows parts of both.

A CPU works with numpy and all its cores at once, a GPU with CuPy, which its owner installs to fit the driver; the same
code runs on both. Every method blocks: call it in a thread.
"""

import contextlib
import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from threading import Event
from time import perf_counter
from typing import Any

import numpy as np
import psutil

from tidemill.core.merkle import MerkleTree, leaf_hash
from tidemill.core.nodes.challenge.memory import ancestors, filling
from tidemill.core.nodes.challenge.messages import LEAF_BYTES, ChallengePart
from tidemill.core.nodes.challenge.multiplication import digests, shown_row
from tidemill.core.nodes.challenge.tasks import DIGESTS_IN_LEAF, PAGE_BYTES, PAGE_WORDS, MemoryTask, SpeedTask
from tidemill.core.nodes.machine.hardware import Device, DeviceKind

_COPIED_BYTES = 256 * 2**20
_COPIES = 8
_PAGES_AT_ONCE = 4096
_DIGEST_BYTES = 8
_AHEAD = 64
"""So many products wait for each core: a pool may ask for a million of them."""

_MATRICES = 8
"""A product takes memory for its two factors, itself, and what its digests are made of."""

_NO_CUPY = "This agent has no CuPy, without which it cannot use a GPU: install the CuPy package that fits the driver."
_STOPPED = "The challenge was stopped before it was done."


class DeviceUnable(Exception):
    """A device cannot do its part of a challenge; the text says why, and what to do."""


TROUBLE = (DeviceUnable, MemoryError, RuntimeError, OSError, ImportError, ValueError)
"""What devices and their libraries raise. Running out of a GPU's memory is a MemoryError too."""


@dataclass
class Bench:
    """One device at work on one challenge, a CPU with so many cores. It keeps its results until it has shown the drawn
    ones."""

    device: Device
    ordinal: int
    stopped: Event
    cores: int = 1
    digests: bytes = b""
    pages: Any = None
    trees: dict[ChallengePart, MerkleTree] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.xp = _array_module(self.device)

    def multiply(self, task: SpeedTask) -> bytes:
        """Compute the products; returns the commitment to their rows' digests."""
        self._check_room(task.rows * _DIGEST_BYTES + (self.cores * _MATRICES * 4 * task.side**2 if self.on_cpu else 0))
        with self._chosen(), self._all_cores() as each:
            digests_found = []
            for product in digests(task, self.xp, each):
                digests_found.append(_on_host(product).tobytes())
                self._check_stopped()
        self.digests = b"".join(digests_found)
        leaves = memoryview(self.digests)
        hashes = [leaf_hash(leaves[at : at + LEAF_BYTES]) for at in range(0, len(leaves), LEAF_BYTES)]
        return self._commit(ChallengePart.SPEED, MerkleTree(hashes))

    def fill(self, task: MemoryTask) -> bytes:
        """Fill the memory and keep it; returns the commitment to its pages."""
        self._check_room(task.pages * PAGE_BYTES if self.on_cpu else 0)
        with self._chosen(), self._all_cores() as each:
            pages = self.xp.empty((task.pages, PAGE_WORDS), dtype=self.xp.uint64)
            for _ in filling(task, pages, self.xp, self.cores, each):
                self._check_stopped()
            hashes = []
            for some in each(lambda first: _leaf_hashes(pages, first), range(0, task.pages, _PAGES_AT_ONCE)):
                hashes.append(some)
                self._check_stopped()
        self.pages = pages
        return self._commit(ChallengePart.MEMORY, MerkleTree(hashes))

    def shown_page(self, task: MemoryTask, number: int) -> bytes:
        """A page and the pages it was made of, each with its path in the tree."""
        with self._chosen():
            above = self._page(number - task.width) if number >= task.width else None
            numbers = [number, *(ancestors(task, number, above) if above is not None else ())]
            tree = self.trees[ChallengePart.MEMORY]
            return b"".join(self._page(at).tobytes() + tree.path(at) for at in numbers)

    def shown_row(self, task: SpeedTask, number: int) -> bytes:
        """A row, the leaf that holds its digest, and the leaf's path in the tree."""
        leaf = number // DIGESTS_IN_LEAF
        leaf_bytes = self.digests[leaf * LEAF_BYTES : (leaf + 1) * LEAF_BYTES]
        with self._chosen():
            return shown_row(task, number, self.xp) + leaf_bytes + self.trees[ChallengePart.SPEED].path(leaf)

    def copied_mb_per_s(self, other: "Bench") -> int:
        """How fast bytes go from this device to another one."""
        with self._chosen():
            source = self.xp.zeros(_COPIED_BYTES, dtype=self.xp.uint8)
        with other._chosen():
            target = self.xp.empty_like(source)
            target[...] = source  # the first copy also sets the connection up
            self.xp.cuda.Device().synchronize()
            began = perf_counter()
            for _ in range(_COPIES):
                target[...] = source
            self.xp.cuda.Device().synchronize()
            return int(_COPIES * _COPIED_BYTES / (perf_counter() - began) / 10**6)

    @property
    def on_cpu(self) -> bool:
        return self.device.kind is DeviceKind.CPU

    def _chosen(self) -> contextlib.AbstractContextManager[Any]:
        if self.on_cpu:
            return contextlib.nullcontext()
        chosen: contextlib.AbstractContextManager[Any] = self.xp.cuda.Device(self.ordinal)
        return chosen

    @contextlib.contextmanager
    def _all_cores(self) -> Iterator[Callable[..., Iterable[Any]]]:
        """Gives what is called as `map` is and has all cores work on the items, of which few wait at a time."""
        if self.cores == 1:
            yield map
            return
        hands = ThreadPoolExecutor(self.cores, thread_name_prefix="core")

        def each(function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
            rest = iter(items)
            while some := list(islice(rest, _AHEAD * self.cores)):
                yield from hands.map(function, some)

        try:
            yield each
        finally:
            hands.shutdown(cancel_futures=True)

    def _commit(self, part: ChallengePart, tree: MerkleTree) -> bytes:
        self.trees[part] = tree
        return tree.root

    def _page(self, number: int) -> Any:
        return _on_host(self.pages[number])

    def _check_stopped(self) -> None:
        if self.stopped.is_set():
            raise DeviceUnable(_STOPPED)

    def _check_room(self, wanted_bytes: int) -> None:
        """Take at most half of the machine's free memory: its owner has other uses for it."""
        wanted_mib, free_mib = wanted_bytes // 2**20, psutil.virtual_memory().available // 2**20
        if wanted_mib * 2 > free_mib:
            raise DeviceUnable(f"{wanted_mib:,} MiB of memory are asked for and {free_mib:,} MiB are free: free some.")


def _array_module(device: Device) -> Any:
    """numpy for a CPU, CuPy for a GPU."""
    if device.kind is DeviceKind.CPU:
        return np
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as the driver numbers devices
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceUnable(_NO_CUPY) from error


def _leaf_hashes(pages: Any, first: int) -> bytes:
    view = memoryview(_on_host(pages[first : first + _PAGES_AT_ONCE])).cast("B")
    return b"".join([leaf_hash(view[at : at + PAGE_BYTES]) for at in range(0, len(view), PAGE_BYTES)])


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
