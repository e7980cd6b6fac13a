"""Processes that begin at once: a server has imported the program, and forks for each of them.

They are as real as any others, to be signalled, killed and waited for. Only loading is left out, which costs a command
a second of a processor; tests that start `tidemill` itself have it.
"""

import asyncio
import os
import runpy
import signal
import sys
from collections.abc import Callable, Mapping
from io import FileIO, TextIOWrapper
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile

NOTHING = os.open(os.devnull, os.O_RDWR)
"""A stream that says nothing and keeps nothing."""

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "tests.worlds.forks",
        "tests.worlds.agents.busy_agent",
        "tests.worlds.agents.cheating_agent",
        "tests.worlds.agents.spool_writer",
        "tidemill.agent.doctor",
        "tidemill.agent.startup",
        "tidemill.serving.logs",
        "tidemill.cli.agent.agent",
        "tidemill.cli.main",
        "tidemill.cli.operations.pool",
        "tidemill.control.process",
    ]
)


class Forked:
    """A process, with what is asked of one."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self.pid = process.pid
        self._process = process

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._process.sentinel, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        return self.wait_here()

    def wait_here(self, within_s: float | None = None) -> int:
        """As `wait`, where nothing else goes on. It is killed when its time is over."""
        self._process.join(within_s)
        if self.returncode is None:
            self.kill()
            raise AssertionError(f"process {self.pid} did not end within {within_s:g} s")
        return self.returncode


class Waited:
    """A forked process as `subprocess` shows one, for tests in which nothing else goes on while they wait."""

    def __init__(self, forked: Forked) -> None:
        self.pid = forked.pid
        self.send_signal, self.terminate, self.kill = forked.send_signal, forked.terminate, forked.kill
        self._forked = forked

    def poll(self) -> int | None:
        return self._forked.returncode

    def wait(self, within_s: float | None = None) -> int:
        return self._forked.wait_here(within_s)


def fork(
    act: Callable[..., object],
    *arguments: object,
    streams: tuple[int, int, int],
    environment: Mapping[str, str] | None = None,
) -> Forked:
    """Do something of a module in a process of its own, with these files as its standard streams."""
    passed = [Connection(os.dup(stream)) for stream in streams]
    process = _CONTEXT.Process(target=_begin, args=(passed, dict(environment or os.environ), act, arguments))
    process.start()
    for connection in passed:
        connection.close()
    return Forked(process)


def tidemill(*arguments: str) -> None:
    """What the command does once it is loaded."""
    from tests.worlds.pools.walk import WALK, follow
    from tidemill.cli.__main__ import main

    if WALK in os.environ:
        follow(Path(os.environ[WALK]))

    sys.argv = ["tidemill", *arguments]
    main()


def module(name: str, *arguments: str, said: int) -> Forked:
    """A program of the tests, as `python -m` would run it, which says what it does in this file."""
    return fork(_as_main, name, *arguments, streams=(NOTHING, said, 2))


def begun(*arguments: str, environment: Mapping[str, str], said: int) -> Waited:
    """A command that goes on, and says everything in one file."""
    return Waited(fork(tidemill, *arguments, streams=(NOTHING, said, said), environment=environment))


def ended(*arguments: str, stdin: str, environment: Mapping[str, str], within_s: float) -> "CompletedProcess[str]":
    """A command, to its end."""
    with TemporaryFile("w+") as typed, TemporaryFile("w+") as out, TemporaryFile("w+") as said:
        typed.write(stdin)
        typed.seek(0)
        streams = (typed.fileno(), out.fileno(), said.fileno())
        process = fork(tidemill, *arguments, streams=streams, environment=environment)
        code = process.wait_here(within_s)
        out.seek(0)
        said.seek(0)
        return CompletedProcess(arguments, code, out.read(), said.read())


def _as_main(name: str, *arguments: str) -> None:
    sys.argv = [name, *arguments]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _begin(
    streams: list[Connection], environment: dict[str, str], act: Callable[..., object], arguments: tuple[object, ...]
) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream.fileno(), number)
        stream.close()
    sys.stdin = TextIOWrapper(FileIO(0), "utf-8")
    os.environ.clear()
    os.environ.update(environment)
    act(*arguments)
