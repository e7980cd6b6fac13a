"""The processes of a run in bubblewrap, from the gate to the last of them.

Ending the first process of the namespace ends all of it, and nothing inside can prevent that.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tidemill.agent.sandboxes.bubblewrap import gate
from tidemill.agent.sandboxes.exits import second_process, wait_status
from tidemill.agent.sandboxes.interface import OutputStream
from tidemill.agent.sandboxes.run_life import GRACE_S, POLITE, RunLife, RunProcesses
from tidemill.core.jobs.sandboxes import RunEnding, RunOutcome, outcome, outcome_of_wait

START_S = 20.0
CHUNK_BYTES = 65536
LOOKS_S = (0.001, 0.005, 0.02, 0.1, 0.5)
"""When to look for the program itself: bubblewrap starts it a moment after the gate opens."""


class BubblewrapProcesses(RunProcesses):
    """The processes of a run, and every descriptor that must be closed in the end."""

    def __init__(self, life: RunLife, process: gate.ProcessAtGate) -> None:
        self._life, self._at_gate = life, process
        self._loop = asyncio.get_running_loop()
        self._open = {process.gate}
        self._first: int | None = None
        self._first_descriptor: int | None = None
        self._program_descriptor: int | None = None
        self._looks: list[asyncio.TimerHandle] = []
        self._status_text = bytearray()
        self._killed = False
        self._introduced: asyncio.Future[int] = self._loop.create_future()
        self.exited = process.seat.exited
        hear = life.hear
        self._stream_ends = [
            self._read_all(process.status, self._note_status),
            self._read_all(process.output, partial(hear, OutputStream.OUTPUT)),
            self._read_all(process.errors, partial(hear, OutputStream.ERRORS)),
        ]

    async def let_go(self) -> None:
        """Wait for the namespace's first process, set the remaining limits, and open the gate."""
        either: set[asyncio.Future[Any]] = {self._introduced, self.exited}
        await asyncio.wait(either, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        if self._introduced.done():
            with contextlib.suppress(ProcessLookupError):  # it could not make its namespaces, and said why
                self._bind(self._introduced.result())
        else:
            self.kill()

    def processes(self) -> list[int]:
        return [] if self._first is None else gate.descendants(self._first)

    def ran_out_of_memory(self) -> bool:
        return self._at_gate.seat.groups.ran_out_of_memory()

    async def end(self, ending: RunEnding) -> None:
        if ending in POLITE and self._first is not None and not self.exited.done():
            gate.terminate(self._first)
            await asyncio.wait({self.exited}, timeout=GRACE_S)
        self.kill()
        await _wait_all([self.exited])
        await _wait_all(self._stream_ends, GRACE_S)
        if self._status() is None:
            await _wait_all([self._at_gate.seat.waited], GRACE_S)

    def outcome(self, ending: RunEnding) -> RunOutcome:
        """The program's own status if the kernel tells it, else the one that bubblewrap reports."""
        status = self._status()
        if ending is RunEnding.DONE and self._ended_from_outside():
            return RunOutcome(RunEnding.KILLED, signal=signal.SIGKILL)
        kernel_status = None if self._program_descriptor is None else wait_status(self._program_descriptor)
        return (
            outcome(ending, status)
            if status is None or kernel_status is None
            else outcome_of_wait(ending, kernel_status)
        )

    def kill(self) -> None:
        """Kill the first process of the namespace, and with it all others. The one outside sees that and ends."""
        if self.exited.done():
            return
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            if self._first_descriptor is not None:
                signal.pidfd_send_signal(self._first_descriptor, signal.SIGKILL)
            else:
                self._at_gate.seat.kill()

    def close(self) -> None:
        self.kill()
        for look in self._looks:
            look.cancel()
        for descriptor in self._open:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)

    def _status(self) -> int | None:
        lines = [json.loads(line) for line in self._status_text.splitlines()]
        return next((line["exit-code"] for line in lines if "exit-code" in line), None)

    def _ended_from_outside(self) -> bool:
        """Whether somebody outside ended one of the sandbox's own processes, which no task can do."""
        if self._killed:
            return False
        waited, first = self._at_gate.seat.waited, self._first_descriptor
        outer = waited.result() if waited.done() else 0
        return os.WIFSIGNALED(outer) or os.WIFSIGNALED((first and wait_status(first)) or 0)

    def _bind(self, first: int) -> None:
        self._first_descriptor = os.pidfd_open(first)
        self._open.add(self._first_descriptor)
        self._first = first
        gate.prefer_for_oom_kill(first)
        if os.geteuid() != 0:
            gate.limit_processes(first, self._life.specification.limits)
        os.write(self._at_gate.gate, b".")
        self._looks = [self._loop.call_later(after_s, self._look, first) for after_s in LOOKS_S]

    def _look(self, first: int) -> None:
        if self._program_descriptor is None and (descriptor := second_process(first)) is not None:
            self._program_descriptor = descriptor
            self._open.add(descriptor)

    def _read_all(self, descriptor: int, each: Callable[[bytes], None]) -> asyncio.Future[None]:
        """Pass on what comes from a pipe. The returned future is done at the pipe's end."""
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

    def _note_status(self, chunk: bytes) -> None:
        """Note what bubblewrap reports: first which process it started, last how that ended."""
        self._status_text += chunk
        if not self._introduced.done() and b"\n" in self._status_text:
            self._introduced.set_result(json.loads(self._status_text.partition(b"\n")[0])["child-pid"])


async def _wait_all(awaited: Sequence[asyncio.Future[Any]], within_s: float | None = None) -> None:
    """Wait for all futures. Mostly all are done; then skip the loop, which takes time."""
    if pending := [future for future in awaited if not future.done()]:
        await asyncio.wait(pending, timeout=within_s)
