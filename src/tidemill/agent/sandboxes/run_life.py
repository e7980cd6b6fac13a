"""One run from its start to its end, in any sandbox: passes its output on, and decides and enforces its end.

The first of these decides: the program ends, the deadline passes, it is stopped from outside, or the watch finds that
it took more than it may. After a deadline or a cancellation the program is asked to end and killed a moment later;
otherwise it is killed at once.
"""

import asyncio
from abc import abstractmethod
from pathlib import Path
from typing import Any, Protocol

from tidemill.agent.sandboxes import disk
from tidemill.agent.sandboxes.gpu_memory import GpuMemory
from tidemill.agent.sandboxes.interface import OutputStream, RunListener
from tidemill.core.jobs.sandboxes import RunEnding, RunOutcome, RunSpecification

GRACE_S = 2.0
POLITE = (RunEnding.DEADLINE, RunEnding.CANCELLED)


class RunProcesses(Protocol):
    """The processes of a run, as its sandbox knows them. `exited` is done when the program has ended."""

    exited: asyncio.Future[Any]

    @abstractmethod
    def processes(self) -> list[int]: ...

    @abstractmethod
    def ran_out_of_memory(self) -> bool: ...

    @abstractmethod
    async def end(self, ending: RunEnding) -> None:
        """End all processes, and wait until all output has been heard."""

    @abstractmethod
    def outcome(self, ending: RunEnding) -> RunOutcome:
        """The outcome of a program that ended for this reason."""


class RunLife:
    """Decides about one run, before and while it has processes."""

    def __init__(
        self, specification: RunSpecification, listener: RunListener, gpu_memory: GpuMemory | None = None
    ) -> None:
        self.specification, self.listener, self._gpu_memory = specification, listener, gpu_memory
        self._stopped: asyncio.Future[RunEnding] = asyncio.get_running_loop().create_future()
        self._printed_bytes = 0

    def stop(self, ending: RunEnding) -> None:
        """End the run for this reason, unless it already has one."""
        if not self._stopped.done():
            self._stopped.set_result(ending)

    async def until_end(self, work: Path, running: RunProcesses) -> RunOutcome:
        """Wait for the end of a running program, or bring it about."""
        watching = asyncio.create_task(self._watch(work, running))
        try:
            ending = await self._reason(running.exited)
            await running.end(ending)
        finally:
            watching.cancel()
        return running.outcome(await self._second_look(ending, work, running))

    def hear(self, stream: OutputStream, chunk: bytes) -> None:
        """Pass output on, up to the limit; drop the rest."""
        room = self.specification.limits.output_bytes - self._printed_bytes
        self._printed_bytes += len(chunk)
        if len(chunk) > room:
            self.stop(RunEnding.OUTPUT)
        if room > 0:
            self.listener.heard(stream, chunk[:room])

    async def _reason(self, exited: asyncio.Future[Any]) -> RunEnding:
        """Why the run ends: by itself, or for the first reason found."""
        either: set[asyncio.Future[Any]] = {exited, self._stopped}
        await asyncio.wait(either, timeout=self.specification.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._stopped.done():
            return self._stopped.result()
        return RunEnding.DONE if exited.done() else RunEnding.DEADLINE

    async def _watch(self, work: Path, running: RunProcesses) -> None:
        """Glance at the disk often, and look at everything when it is time."""
        loop = asyncio.get_running_loop()
        look, looked_at_s = disk.before_start(work, self.specification.limits), loop.time()
        while True:
            await asyncio.sleep(disk.GLANCE_S)
            if look.is_outdated(disk.free_bytes(work), loop.time() - looked_at_s):
                look, ending = await asyncio.to_thread(self._look, work, running)
                looked_at_s = loop.time()
                if ending is not None:
                    self.stop(ending)

    def _look(self, work: Path, running: RunProcesses) -> tuple[disk.DiskLook, RunEnding | None]:
        limits, pids, watched = self.specification.limits, running.processes(), self._gpu_memory
        look = disk.look_at_disk(work, pids, limits)
        if running.ran_out_of_memory():
            return look, RunEnding.MEMORY
        if limits.gpu_memory_bytes is not None and watched and watched.used_bytes(pids) > limits.gpu_memory_bytes:
            return look, RunEnding.GPU_MEMORY
        return look, RunEnding.DISK if look.is_too_much else None

    async def _second_look(self, ending: RunEnding, work: Path, running: RunProcesses) -> RunEnding:
        """Check again: a program that ended by itself may have been quicker than the watch."""
        if ending is not RunEnding.DONE:
            return ending
        if self._stopped.done():
            return self._stopped.result()
        if running.ran_out_of_memory():
            return RunEnding.MEMORY
        limits = self.specification.limits
        if disk.surely_little_disk(work, limits):  # so do most runs, and this is quicker than a thread is to start
            return ending
        look = await asyncio.to_thread(disk.look_at_disk, work, [], limits)
        return RunEnding.DISK if look.is_too_much else ending
