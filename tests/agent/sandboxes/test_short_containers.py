"""A container that is over before anybody has looked at it ends like any other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.worlds.sandboxes.engine_stand_in import EngineStandIn
from tidemill.agent.sandboxes.engine.api import EngineApi, EngineFault
from tidemill.agent.sandboxes.engine.sandbox import ContainerProcesses
from tidemill.agent.sandboxes.interface import RunListener
from tidemill.agent.sandboxes.run_life import RunLife
from tidemill.core.jobs.sandboxes import Command, RunEnding, RunLimits, RunSpecification

SHORT = RunSpecification("short", Command(("/usr/bin/true",)), RunLimits(seconds=10))


class HastyEngine(EngineStandIn):
    """Its container ends at once. Like Podman, it then fails to tell of it for a moment."""

    def __init__(self, silent_for: int) -> None:
        self.silent_for = silent_for

    async def answer(self, method: str, target: str) -> tuple[int, object]:
        if target.endswith("/wait"):
            return 200, {"StatusCode": 3}
        if target.endswith("/json"):
            self.silent_for -= 1
            if self.silent_for >= 0:
                return 500, {"message": "read /proc/8446/cgroup: no such process"}
            return 200, {"State": {"Pid": 0}}
        return 200, {}


@asynccontextmanager
async def opened_api(socket: Path) -> AsyncIterator[EngineApi]:
    api = EngineApi(socket)
    try:
        yield api
    finally:
        await api.close()


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def _run(engine: HastyEngine, socket: Path) -> int | None:
    life = RunLife(SHORT, RunListener(lambda _stream, _chunk: None), None)
    async with (
        engine.serving(socket),
        opened_api(socket) as api,
        ContainerProcesses(api, "short", life, _nothing()) as running,
    ):
        await running.exited
        return running.outcome(RunEnding.DONE).exit_code


async def test_a_container_that_ended_before_it_was_looked_at_has_its_exit_code(tmp_path: Path) -> None:
    assert await _run(HastyEngine(silent_for=3), tmp_path / "engine.sock") == 3


async def test_an_engine_that_never_tells_is_at_fault(tmp_path: Path) -> None:
    with pytest.raises(EngineFault, match="no such process"):
        await _run(HastyEngine(silent_for=1000), tmp_path / "engine.sock")
