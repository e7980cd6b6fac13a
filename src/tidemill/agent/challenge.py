"""The prover: it does on this machine's devices what a challenge asks, and shows what is drawn.

All devices work at once, each in a thread of its own: first the multiplication, which is timed by the pool, then the
memory, which is kept until places were drawn from it. A newer challenge, or the time the pool names, ends an older one
and frees its memory. A device that cannot be used says why, and what to do about it.

A CPU works with numpy. A GPU needs CuPy, which its owner installs to fit the driver; the same code runs on both.
"""

import asyncio
import contextlib
import importlib
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import psutil
import structlog

from tidemill.core.bounded_json import Malformed
from tidemill.core.challenge.memory import ancestors, filling
from tidemill.core.challenge.merkle import Tree, leaf_hash
from tidemill.core.challenge.messages import (
    CHALLENGE,
    LEAF_BYTES,
    Answer,
    DeviceDraw,
    DeviceTask,
    LinkRate,
    Order,
    Pair,
    Part,
    Step,
    answer_bytes,
    as_text,
    order_of,
)
from tidemill.core.challenge.multiplication import digests, shown_row
from tidemill.core.challenge.tasks import DIGESTS_IN_LEAF, PAGE_BYTES, PAGE_WORDS, MemoryTask, SpeedTask
from tidemill.core.hardware import DEVICES_MAX, Device, DeviceKind
from tidemill.wire.messages import Facts, Report

log = structlog.get_logger()

KIND = CHALLENGE

_COPIED_BYTES = 256 * 2**20
_COPIES = 8
_PAGES_AT_ONCE = 4096
_DIGEST_BYTES = 8
_MATRICES = 8
"""A product takes its two factors, itself, and what its digests are made of."""

_NO_CUPY = "This agent has no CuPy, without which it cannot use a GPU: install the CuPy package that fits the driver."
_STOPPED = "The challenge was stopped before it was done."

T = TypeVar("T")


class Unable(Exception):
    """A device cannot do what was asked; the text says why, and what to do."""


_TROUBLE = (Unable, MemoryError, RuntimeError, OSError, ImportError, ValueError)
"""What devices and their libraries raise. Running out of a GPU's memory is a MemoryError too."""


@dataclass
class Bench:
    """One device at work on one challenge, with what it has to keep until it has shown it."""

    device: Device
    ordinal: int
    stopped: Event
    digests: bytes = b""
    pages: Any = None
    trees: dict[Part, Tree] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.xp = array_module(self.device)

    def multiply(self, task: SpeedTask) -> bytes:
        """The products; answers the commitment to their rows' digests."""
        self._check_room(task.rows * _DIGEST_BYTES + (_MATRICES * 4 * task.side**2 if self.on_cpu else 0))
        with self._chosen():
            found = []
            for of_product in digests(task, self.xp):
                found.append(_on_host(of_product).tobytes())
                self._go_on()
        self.digests = b"".join(found)
        leaves = memoryview(self.digests)
        hashes = [leaf_hash(leaves[at : at + LEAF_BYTES]) for at in range(0, len(leaves), LEAF_BYTES)]
        return self._committed(Part.SPEED, Tree(hashes))

    def fill(self, task: MemoryTask) -> bytes:
        """Fill the memory and keep it; answers the commitment to its pages."""
        self._check_room(task.pages * PAGE_BYTES if self.on_cpu else 0)
        with self._chosen():
            pages = self.xp.empty((task.pages, PAGE_WORDS), dtype=self.xp.uint64)
            for _ in filling(task, pages, self.xp):
                self._go_on()
            hashes = []
            for first in range(0, task.pages, _PAGES_AT_ONCE):
                view = memoryview(_on_host(pages[first : first + _PAGES_AT_ONCE])).cast("B")
                hashes.append(
                    b"".join([leaf_hash(view[at : at + PAGE_BYTES]) for at in range(0, len(view), PAGE_BYTES)])
                )
                self._go_on()
        self.pages = pages
        return self._committed(Part.MEMORY, Tree(hashes))

    def shown_page(self, task: MemoryTask, place: int) -> bytes:
        """A page, what it was made of, and where each stands in the tree."""
        with self._chosen():
            above = self._page(place - task.width) if place >= task.width else None
            places = [place, *(ancestors(task, place, above) if above is not None else ())]
            tree = self.trees[Part.MEMORY]
            return b"".join(self._page(at).tobytes() + tree.path(at) for at in places)

    def shown_row(self, task: SpeedTask, place: int) -> bytes:
        """A row, the leaf that holds its digest, and where that stands in the tree."""
        leaf = place // DIGESTS_IN_LEAF
        kept = self.digests[leaf * LEAF_BYTES : (leaf + 1) * LEAF_BYTES]
        with self._chosen():
            return shown_row(task, place, self.xp) + kept + self.trees[Part.SPEED].path(leaf)

    def copied_mb_per_s(self, other: "Bench") -> int:
        """How fast bytes go from this device to another one."""
        with self._chosen():
            sent = self.xp.zeros(_COPIED_BYTES, dtype=self.xp.uint8)
        with other._chosen():
            received = self.xp.empty_like(sent)
            received[...] = sent  # the first one also opens the way
            self.xp.cuda.Device().synchronize()
            began = perf_counter()
            for _ in range(_COPIES):
                received[...] = sent
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

    def _committed(self, part: Part, tree: Tree) -> bytes:
        self.trees[part] = tree
        return tree.root

    def _page(self, place: int) -> Any:
        return _on_host(self.pages[place])

    def _go_on(self) -> None:
        if self.stopped.is_set():
            raise Unable(_STOPPED)

    def _check_room(self, wanted_bytes: int) -> None:
        """An owner's machine has other things to do: of its own memory at most half of what is free is taken."""
        wanted_mib, free_mib = wanted_bytes // 2**20, psutil.virtual_memory().available // 2**20
        if wanted_mib * 2 > free_mib:
            raise Unable(f"{wanted_mib:,} MiB of memory are asked for and {free_mib:,} MiB are free: free some.")


@dataclass
class _Work:
    """One challenge in hand."""

    tasks: dict[int, DeviceTask]
    benches: dict[int, Bench] = field(default_factory=dict)
    stopped: Event = field(default_factory=Event)
    drawn: bool = False


class Prover:
    """Takes the pool's orders about challenges, and reports what they ask for."""

    def __init__(self, devices: Callable[[], Sequence[Device]], report: Callable[[Report], Awaitable[bool]]) -> None:
        self._devices = devices
        self._report = report
        self._threads = ThreadPoolExecutor(DEVICES_MAX, thread_name_prefix="challenge")
        self._challenge = ""
        self._work: _Work | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def take(self, body: bytes) -> None:
        """Begin what an order asks for. One that comes twice is begun once."""
        order = order_of(body)
        if isinstance(order, Malformed):
            log.warning("order not understood", kind=KIND, cause=order.sentence)
        elif len({task.index for task in order.tasks}) < len(order.tasks):
            log.warning("order not understood", kind=KIND, cause="A device is asked for two things at once.")
        elif order.tasks and order.challenge != self._challenge:
            self._free()
            self._challenge = order.challenge
            self._work = _Work({task.index: task for task in order.tasks})
            self._start(self._prove(order, self._work))
        elif order.draws and order.challenge == self._challenge and self._work and not self._work.drawn:
            self._work.drawn = True
            self._start(self._show(order, self._work))

    async def close(self) -> None:
        """Stop, and free the memory."""
        self._free()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _free(self) -> None:
        if self._work:
            self._work.stopped.set()
            self._work = None

    async def _prove(self, order: Order, work: _Work) -> None:
        asyncio.get_running_loop().call_later(order.keep_s, self._free_if, work)
        await asyncio.gather(*(self._prove_device(order, work, task) for task in order.tasks))
        if rates := await self._link_rates(order.pairs, work):
            await self._say(Answer(order.challenge, rates[0].one, Step.LINKS, links=tuple(rates)))

    def _free_if(self, work: _Work) -> None:
        if self._work is work:
            self._free()

    async def _prove_device(self, order: Order, work: _Work, task: DeviceTask) -> None:
        try:
            bench = work.benches[task.index] = await self._in_thread(self._bench, work, task.index)
            root = await self._in_thread(bench.multiply, task.speed)
            await self._commit(order, task, Part.SPEED, root)
            root = await self._in_thread(bench.fill, task.memory)
            await self._commit(order, task, Part.MEMORY, root)
        except _TROUBLE as trouble:
            await self._cannot(order, work, task.index, trouble)

    async def _show(self, order: Order, work: _Work) -> None:
        await asyncio.gather(*(self._show_device(order, work, draw) for draw in order.draws))
        self._free_if(work)

    async def _show_device(self, order: Order, work: _Work, draw: DeviceDraw) -> None:
        task, bench = work.tasks.get(draw.index), work.benches.get(draw.index)
        if task is None or bench is None or Part.MEMORY not in bench.trees:
            return
        try:
            for place in draw.rows:
                await self._open(order, bench, Part.SPEED, place, bench.shown_row, task.speed)
            for place in draw.pages:
                await self._open(order, bench, Part.MEMORY, place, bench.shown_page, task.memory)
        except _TROUBLE as trouble:
            await self._cannot(order, work, draw.index, trouble)

    async def _open(
        self, order: Order, bench: Bench, part: Part, place: int, shown: Callable[[T, int], bytes], task: T
    ) -> None:
        content = as_text(await self._in_thread(shown, task, place))
        await self._say(Answer(order.challenge, bench.device.index, Step.OPENING, part, place, content))

    async def _commit(self, order: Order, task: DeviceTask, part: Part, root: bytes) -> None:
        await self._say(Answer(order.challenge, task.index, Step.COMMITMENT, part, shown=as_text(root)))

    async def _cannot(self, order: Order, work: _Work, index: int, trouble: Exception) -> None:
        log.warning("challenge impossible", device=index, cause=str(trouble))
        if not work.stopped.is_set():
            words = str(trouble) or type(trouble).__name__
            await self._say(Answer(order.challenge, index, Step.CANNOT, words=words))

    async def _link_rates(self, pairs: Sequence[Pair], work: _Work) -> list[LinkRate]:
        """One pair after the other, when nothing else is going on. What cannot be measured counts as no link."""
        rates = []
        for pair in pairs:
            one, other = work.benches.get(pair.one), work.benches.get(pair.other)
            if one and other and not work.stopped.is_set():
                with contextlib.suppress(*_TROUBLE):
                    rate = await self._in_thread(one.copied_mb_per_s, other)
                    rates.append(LinkRate(pair.one, pair.other, rate))
        return rates

    async def _say(self, answer: Answer) -> None:
        await self._report(Facts(KIND, answer_bytes(answer)))

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)

    def _bench(self, work: _Work, index: int) -> Bench:
        devices = self._devices()
        device = next((one for one in devices if one.index == index), None)
        if device is None:
            raise Unable(f"There is no device {index} any more: let the agent detect the hardware again.")
        ordinal = sum(one.kind is device.kind for one in devices[: devices.index(device)])
        return Bench(device, ordinal, work.stopped)


def array_module(device: Device) -> Any:
    """numpy for a CPU, CuPy for a GPU."""
    if device.kind is DeviceKind.CPU:
        return np
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # the order in which the driver counts devices
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise Unable(_NO_CUPY) from error


def _on_host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
