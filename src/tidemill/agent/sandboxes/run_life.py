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
from tidemill.agent.sandboxes.interface import OutputStream, RunListener
from tidemill.core.jobs.sandboxes import RunEnding, RunOutcome, RunSpecification

GRACE_S = 2.0
WATCH_S = 0.2
POLITE = (RunEnding.DEADLINE, RunEnding.CANCELLED)


class RunProcesses(Protocol):
    """What a sandbox knows of the processes of a run. `exited` is done when the program has ended."""

    exited: asyncio.Future[Any]

    @abstractmethod
    def processes(self) -> list[int]: ...

    @abstractmethod
    def ran_out_of_memory(self) -> bool: ...

    @abstractmethod
    async def end(self, ending: RunEnding) -> None:
        """Make sure that all of it has ended, and that everything it printed was heard."""

    @abstractmethod
    def outcome(self, ending: RunEnding) -> RunOutcome:
        """How the program ended, for this reason."""


class RunLife:
    """What is decided about one run, before and while its processes are there."""

    def __init__(self, order: RunSpecification, told: RunListener, gpu_memory: GpuMemory | None = None) -> None:
        self.specification, self.listener, self._gpu_memory = order, told, gpu_memory
        self._stopped: asyncio.Future[RunEnding] = asyncio.get_running_loop().create_future()
        self._printed_bytes = 0

    def stop(self, ending: RunEnding) -> None:
        """End it for this reason, unless there was one before."""
        if not self._stopped.done():
            self._stopped.set_result(ending)

    async def last(self, work: Path, running: RunProcesses) -> RunOutcome:
        """Wait for the end of a running program, or bring it about."""
        watching = asyncio.create_task(self._watch(work, running))
        try:
            ending = await self._reason(running.exited)
            await running.end(ending)
        finally:
            watching.cancel()
        return running.outcome(await self._second_look(ending, work, running))

    def hear(self, stream: OutputStream, chunk: bytes) -> None:
        """Pass on what may still be printed; the rest is dropped."""
        room = self.specification.limits.output_bytes - self._printed_bytes
        self._printed_bytes += len(chunk)
        if len(chunk) > room:
            self.stop(RunEnding.OUTPUT)
        if room > 0:
            self.listener.heard(stream, chunk[:room])

    async def _reason(self, exited: asyncio.Future[Any]) -> RunEnding:
        """Why it ends: by itself, or what was found first."""
        either: set[asyncio.Future[Any]] = {exited, self._stopped}
        await asyncio.wait(either, timeout=self.specification.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._stopped.done():
            return self._stopped.result()
        return RunEnding.DONE if exited.done() else RunEnding.DEADLINE

    async def _watch(self, work: Path, running: RunProcesses) -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            if found := await asyncio.to_thread(self._too_much, work, running):
                self.stop(found)

    def _too_much(self, work: Path, running: RunProcesses) -> RunEnding | None:
        limits, pids = self.specification.limits, running.processes()
        if running.ran_out_of_memory():
            return RunEnding.MEMORY
        watched = self._gpu_memory
        if limits.gpu_memory_bytes is not None and watched and watched.used_bytes(pids) > limits.gpu_memory_bytes:
            return RunEnding.GPU_MEMORY
        return RunEnding.DISK if too_much_disk(work, pids, limits) else None

    async def _second_look(self, ending: RunEnding, work: Path, running: RunProcesses) -> RunEnding:
        """A program that ended by itself may have been quicker than the watch."""
        if ending is not RunEnding.DONE:
            return ending
        if self._stopped.done():
            return self._stopped.result()
        if running.ran_out_of_memory():
            return RunEnding.MEMORY
        if surely_little_disk(work, self.specification.limits):  # most runs leave little, and a thread takes its time
            return ending
        return RunEnding.DISK if await asyncio.to_thread(too_much_disk, work, [], self.specification.limits) else ending
