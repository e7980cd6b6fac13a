"""Checks in processes of their own: each with a limit of memory and of time, several at once, in customers' turns.

A check computes with what strangers made, and a large one takes as much memory as it likes. So a control process has
none of it: it passes descriptors of files, and reads a ruling. A process that takes too long is killed, one that does
not fit or dies is replaced, and the next check finds a good one. Processes begin when they are needed and stay, because
loading takes longer than most checks. They end with the control process, however that dies.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from threading import Lock
from typing import BinaryIO
from uuid import UUID

import structlog

from tidemill.control.trust.check_program import LENGTH_BYTES, READY, TOO_LARGE
from tidemill.control.trust.check_turns import CheckTurns
from tidemill.core.faults import Fault
from tidemill.core.settings.sections.trust import VerificationSettings
from tidemill.core.trust.checks.check_requests import ANSWER_MAX_BYTES, CheckRequest, read_answer, request_bytes
from tidemill.core.trust.checks.verdict import Verdict
from tidemill.host import bound_child

log = structlog.get_logger()

START_S = 60.0
TRIES = 2
"""A process may die of something else than its check: of an operator, or of another process's hunger for memory."""

_KEPT = ("PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
"""All that a check's process sees of our environment, besides what Python itself reads: no secret is among it."""


class CheckFailure(Enum):
    """Why there is no verdict. Nobody is blamed for it."""

    TOO_LARGE = "The check needed more memory than it may take, so nothing can be said of the result."
    TOO_LONG = "The check took longer than it may, so nothing can be said of the result."
    DIED = "The process that checked the result died twice, so nothing can be said of the result."


class CheckProcesses:
    """As many processes as may check at once. One that nobody uses waits for the next check."""

    def __init__(self, settings: VerificationSettings) -> None:
        self._settings = settings
        self._turns = CheckTurns(settings.checks_at_once)
        self._threads = ThreadPoolExecutor(settings.checks_at_once, thread_name_prefix="checks")
        self._idle: list[_CheckProcess] = []
        self._all: set[_CheckProcess] = set()

    async def check(
        self, customer_id: UUID, request: CheckRequest, files: Sequence[BinaryIO] = ()
    ) -> Verdict | CheckFailure:
        """The verdict, once it is this customer's turn."""
        asked = request_bytes(request)
        async with self._turns.turn(customer_id):
            for _ in range(TRIES):
                found = await self._ask(asked, files)
                if found is not CheckFailure.DIED:
                    break
            return found

    def close(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in list(self._all):
            self._end(process)

    async def _ask(self, asked: bytes, files: Sequence[BinaryIO]) -> Verdict | CheckFailure:
        process = self._ready()
        try:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(
                self._threads, process.ask, asked, [file.fileno() for file in files], self._settings.check_time_s
            )
        except asyncio.CancelledError:
            self._end(process)
            raise
        if isinstance(found, CheckFailure):
            log.warning("check ended without a verdict", why=found.name, pid=process.pid)
            self._end(process)
        else:
            self._idle.append(process)
        return found

    def _ready(self) -> "_CheckProcess":
        """An idle process that lives, or a new one. It is started in the thread of the loop, since a bound child dies
        with the thread that started it."""
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            self._end(process)
        process = _CheckProcess(self._settings.check_memory_mib)
        self._all.add(process)
        return process

    def _end(self, process: "_CheckProcess") -> None:
        self._all.discard(process)
        process.end()


class _CheckProcess:
    """One process, and our end of its socket."""

    def __init__(self, memory_mib: int) -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        processors = ",".join(map(str, sorted(os.sched_getaffinity(0)))) if sys.platform == "linux" else "0"
        command = (sys.executable, "-P", "-m", "tidemill.control.trust.check_program", str(memory_mib))
        try:
            with theirs:
                self._process = subprocess.Popen(
                    (sys.executable, "-I", "-S", bound_child.__file__, str(os.getpid()), processors, *command),
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    env=_environment(),
                    start_new_session=True,  # a Ctrl-C is for the pool, which ends it
                )
        except OSError as error:
            self._ours.close()
            raise Fault(f"No process can be started to check results: {error.strerror}.") from None
        self._has_loaded = False
        self._in_use = Lock()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, asked: bytes, descriptors: Sequence[int], within_s: float) -> Verdict | CheckFailure:
        """The verdict. Called in a thread; whoever started the process ends it if there is none."""
        try:
            with self._in_use:
                answer = self._answer(asked, descriptors, within_s)
        except TimeoutError:
            return CheckFailure.TOO_LONG
        except OSError:
            return CheckFailure.DIED
        if answer == TOO_LARGE:
            return CheckFailure.TOO_LARGE
        return read_answer(answer) or CheckFailure.DIED

    def end(self) -> None:
        """Kill it. A thread that still waits for its answer has then done so."""
        self._process.kill()
        self._process.wait()
        with self._in_use:
            self._ours.close()

    def _answer(self, asked: bytes, descriptors: Sequence[int], within_s: float) -> bytes:
        self._load()
        self._ours.settimeout(within_s)
        socket.send_fds(self._ours, [len(asked).to_bytes(LENGTH_BYTES, "big")], list(descriptors))
        self._ours.sendall(asked)
        length = int.from_bytes(self._receive(LENGTH_BYTES), "big")
        return self._receive(length) if length <= ANSWER_MAX_BYTES else b"no answer"

    def _load(self) -> None:
        if not self._has_loaded:
            self._ours.settimeout(START_S)
            self._has_loaded = self._receive(len(READY)) == READY

    def _receive(self, length: int) -> bytes:
        received = b""
        while len(received) < length:
            if not (part := self._ours.recv(length - len(received))):
                raise ConnectionResetError
            received += part
        return received


def _environment() -> dict[str, str]:
    """One thread for each process: several check at once, and a thread takes memory."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("PYTHON")}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
