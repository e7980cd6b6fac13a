"""One run from its start to its end, whatever it runs in: its words passed on, its end decided and enforced.

The first of these decides: the program ends, the deadline passes, it is stopped from outside, or the watch finds that
it took more than it may. A deadline and a cancellation ask first and insist after a moment; everything else ends at
once.
"""

import asyncio
from abc import abstractmethod
from pathlib import Path
from typing import Any, Protocol

from tidemill.agent.sandboxes.disk import surely_little_disk, too_much_disk
from tidemill.agent.sandboxes.gpu_memory import GpuMemory
from tidemill.agent.sandboxes.interface import Stream, Told
from tidemill.core.jobs.sandboxes import Ending, Order, Outcome

GRACE_S = 2.0
WATCH_S = 0.2
POLITE = (Ending.DEADLINE, Ending.CANCELLED)


class Running(Protocol):
    """What a sandbox knows of the processes of a run. `exited` is done when the program has ended."""

    exited: asyncio.Future[Any]

    @abstractmethod
    def processes(self) -> list[int]: ...

    @abstractmethod
    def ran_out_of_memory(self) -> bool: ...

    @abstractmethod
    async def end(self, ending: Ending) -> None:
        """Make sure that all of it has ended, and that everything it printed was heard."""

    @abstractmethod
    def outcome(self, ending: Ending) -> Outcome:
        """How the program ended, for this reason."""


class Life:
    """What is decided about one run, before and while its processes are there."""

    def __init__(self, order: Order, told: Told, gpu_memory: GpuMemory | None = None) -> None:
        self.order, self.told, self._gpu_memory = order, told, gpu_memory
        self._stopped: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._printed_bytes = 0

    def stop(self, ending: Ending) -> None:
        """End it for this reason, unless there was one before."""
        if not self._stopped.done():
            self._stopped.set_result(ending)

    async def last(self, work: Path, running: Running) -> Outcome:
        """Wait for the end of a running program, or bring it about."""
        watching = asyncio.create_task(self._watch(work, running))
        try:
            ending = await self._reason(running.exited)
            await running.end(ending)
        finally:
            watching.cancel()
        return running.outcome(await self._second_look(ending, work, running))

    def hear(self, stream: Stream, chunk: bytes) -> None:
        """Pass on what may still be printed; the rest is dropped."""
        room = self.order.limits.output_bytes - self._printed_bytes
        self._printed_bytes += len(chunk)
        if len(chunk) > room:
            self.stop(Ending.OUTPUT)
        if room > 0:
            self.told.heard(stream, chunk[:room])

    async def _reason(self, exited: asyncio.Future[Any]) -> Ending:
        """Why it ends: by itself, or what was found first."""
        either: set[asyncio.Future[Any]] = {exited, self._stopped}
        await asyncio.wait(either, timeout=self.order.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._stopped.done():
            return self._stopped.result()
        return Ending.DONE if exited.done() else Ending.DEADLINE

    async def _watch(self, work: Path, running: Running) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            if found := await asyncio.to_thread(self._too_much, work, running):
                self.stop(found)

    def _too_much(self, work: Path, running: Running) -> Ending | None:
        limits, pids = self.order.limits, running.processes()
        if running.ran_out_of_memory():
            return Ending.MEMORY
        watched = self._gpu_memory
        if limits.gpu_memory_bytes is not None and watched and watched.used_bytes(pids) > limits.gpu_memory_bytes:
            return Ending.GPU_MEMORY
        return Ending.DISK if too_much_disk(work, pids, limits) else None

    async def _second_look(self, ending: Ending, work: Path, running: Running) -> Ending:
        """A program that ended by itself may have been quicker than the watch."""
        if ending is not Ending.DONE:
            return ending
        if self._stopped.done():
            return self._stopped.result()
        if running.ran_out_of_memory():
            return Ending.MEMORY
        if surely_little_disk(work, self.order.limits):  # most runs leave little, and a thread takes its time
            return ending
        return Ending.DISK if await asyncio.to_thread(too_much_disk, work, [], self.order.limits) else ending
