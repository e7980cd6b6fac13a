"""One run from its start to its end: limits before its first instruction, its words passed on, its end enforced.

The first of these decides: the program ends, the deadline passes, it is stopped from outside, or the watch finds that
it took more than it may. A deadline and a cancellation ask first and insist after a moment; everything else ends at
once. Ending the first process of the namespace ends all of it, and nothing inside can prevent that.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tidemill.agent.sandboxes import held
from tidemill.agent.sandboxes.cgroups import Groups
from tidemill.agent.sandboxes.disk import too_much_disk
from tidemill.agent.sandboxes.interface import SandboxFault, Stream, Told
from tidemill.core.sandboxes import Ending, Order, Outcome, outcome

START_S = 20.0
GRACE_S = 2.0
WATCH_S = 0.2
CHUNK_BYTES = 65536
POLITE = (Ending.DEADLINE, Ending.CANCELLED)


class Life:
    """What is decided about one run, before and while its process is there."""

    def __init__(self, order: Order, told: Told, groups: Groups) -> None:
        self.order, self.told, self.groups = order, told, groups
        self._stopped: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._printed_bytes = 0
        self.introduced = False

    def stop(self, ending: Ending) -> None:
        """End it for this reason, unless there was one before."""
        if not self._stopped.done():
            self._stopped.set_result(ending)

    async def live(self, work: Path, front: Sequence[str], options: Sequence[str], calls: bytes | None) -> Outcome:
        """From the first process to the last."""
        try:
            self.groups.make(self.order.limits)
            running = _Running(self, held.start(self.order, front, options, calls))
        except OSError as fault:
            raise SandboxFault(f"A run could not be started on this machine: {fault}.") from fault
        try:
            await running.let_go()
            watching = asyncio.create_task(self._watch(work, running))
            try:
                ending = await self._reason(running.exited)
                await running.end(ending)
            finally:
                watching.cancel()
            return outcome(await self._second_look(ending, work), running.status())
        finally:
            running.close()

    def hear(self, stream: Stream, chunk: bytes) -> None:
        """Pass on what may still be printed; the rest is dropped."""
        room = self.order.limits.output_bytes - self._printed_bytes
        self._printed_bytes += len(chunk)
        if len(chunk) > room:
            self.stop(Ending.OUTPUT)
        if room > 0:
            self.told.heard(stream, chunk[:room])

    async def _reason(self, exited: asyncio.Future[None]) -> Ending:
        """Why it ends: by itself, or what was found first."""
        either: set[asyncio.Future[None] | asyncio.Future[Ending]] = {exited, self._stopped}
        await asyncio.wait(either, timeout=self.order.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._stopped.done():
            return self._stopped.result()
        return Ending.DONE if exited.done() else Ending.DEADLINE

    async def _watch(self, work: Path, running: "_Running") -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            if self.groups.ran_out_of_memory():
                self.stop(Ending.MEMORY)
            if await asyncio.to_thread(lambda: too_much_disk(work, running.processes(), self.order.limits)):
                self.stop(Ending.DISK)

    async def _second_look(self, ending: Ending, work: Path) -> Ending:
        """A program that ended by itself may have been quicker than the watch."""
        if ending is not Ending.DONE:
            return ending
        if self._stopped.done():
            return self._stopped.result()
        if self.groups.ran_out_of_memory():
            return Ending.MEMORY
        return Ending.DISK if await asyncio.to_thread(too_much_disk, work, [], self.order.limits) else ending


class _Running:
    """The processes of a run, and every descriptor that must be closed in the end."""

    def __init__(self, life: Life, process: held.Held) -> None:
        self._life, self._held = life, process
        self._loop = asyncio.get_running_loop()
        self._open = {process.gate}
        self._first: int | None = None
        self._first_descriptor: int | None = None
        self._said = bytearray()
        self._introduced: asyncio.Future[int] = self._loop.create_future()
        self._outer = os.pidfd_open(process.process.pid)
        self._open.add(self._outer)
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._outer, self._left)
        self._silent = [self._pour(process.status, self._note), *self._streams()]

    async def let_go(self) -> None:
        """Put it under its limits and open the gate.

        It is moved into its groups while it makes its namespaces; a first process that was made before is moved after.
        """
        moving = self._loop.run_in_executor(None, self._move)
        either: set[asyncio.Future[int] | asyncio.Future[None]] = {self._introduced, self.exited}
        await asyncio.wait(either, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        await moving
        if self._introduced.done():
            self._life.introduced = True
            with contextlib.suppress(ProcessLookupError):  # it failed to make its namespaces, and said why
                self._bind(self._introduced.result())
        else:
            self.kill()

    def processes(self) -> list[int]:
        return [] if self._first is None else held.descendants(self._first)

    async def end(self, ending: Ending) -> None:
        """Make sure that all of it has ended, and that everything it printed was heard."""
        if ending in POLITE and self._first is not None:
            held.terminate(self._first)
            await asyncio.wait({self.exited}, timeout=GRACE_S)
        self.kill()
        await self.exited
        await asyncio.wait(self._silent, timeout=GRACE_S)

    def status(self) -> int | None:
        """How the program ended; None when it never began."""
        lines = [json.loads(line) for line in self._said.splitlines()]
        return next((line["exit-code"] for line in lines if "exit-code" in line), None)

    def kill(self) -> None:
        """The first process of the namespace, and with it all others; the one outside sees that and ends."""
        with contextlib.suppress(ProcessLookupError):
            if self._first_descriptor is not None:
                signal.pidfd_send_signal(self._first_descriptor, signal.SIGKILL)
            else:
                self._held.process.kill()

    def close(self) -> None:
        self.kill()
        with self._held.process:  # waits, and closes its pipes
            pass
        for descriptor in self._open:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _bind(self, first: int) -> None:
        self._first_descriptor = os.pidfd_open(first)
        self._open.add(self._first_descriptor)
        self._first = first
        self._life.groups.add(first)
        held.offer_to_the_kernel(first)
        if os.geteuid() != 0:
            held.limit_processes(first, self._life.order.limits)
        os.write(self._held.gate, b".")

    def _move(self) -> None:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # the run may be over before it is moved
            self._life.groups.add(self._held.process.pid)

    def _streams(self) -> list[asyncio.Future[None]]:
        pipes = {Stream.OUTPUT: self._held.process.stdout, Stream.ERRORS: self._held.process.stderr}
        hear = self._life.hear
        return [self._pour(os.dup(pipe.fileno()), partial(hear, stream)) for stream, pipe in pipes.items() if pipe]

    def _pour(self, descriptor: int, each: Callable[[bytes], None]) -> asyncio.Future[None]:
        """Pass on what comes from a pipe; the answer is done at its end."""
        done: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._open.add(descriptor)

        def ready() -> None:
            with contextlib.suppress(BlockingIOError):
                if chunk := os.read(descriptor, CHUNK_BYTES):
                    each(chunk)
                else:
                    self._loop.remove_reader(descriptor)
                    done.set_result(None)

        self._loop.add_reader(descriptor, ready)
        return done

    def _note(self, chunk: bytes) -> None:
        """Bubblewrap's own words: first which process it started, last how that ended."""
        self._said += chunk
        if not self._introduced.done() and b"\n" in self._said:
            self._introduced.set_result(json.loads(self._said.partition(b"\n")[0])["child-pid"])

    def _left(self) -> None:
        self._loop.remove_reader(self._outer)
        if not self.exited.done():
            self.exited.set_result(None)
