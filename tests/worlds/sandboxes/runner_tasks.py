"""Tasks as nodes get them, and what becomes of them in a real sandbox."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.worlds.sandboxes.sandbox_cell import Cell
from tidemill.agent.runners import OUT, RUNNERS, ResultFiles, Runner
from tidemill.agent.sandboxes.bubblewrap.runtime import python_runtime
from tidemill.agent.sandboxes.interface import OutputStream, RunListener
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.jobs.kinds import KINDS
from tidemill.core.jobs.kinds.kind import TaskKind, TaskObjection
from tidemill.core.jobs.kinds.needs import limits_of
from tidemill.core.jobs.kinds.task_body import Input, Task, read_task, task_bytes
from tidemill.core.jobs.sandboxes import RunEnding, RunOutcome
from tidemill.core.settings.sections.work import ContainersSettings


@dataclass
class Done:
    """How a run ended, what it said, what its runner thought of the result, and the result itself."""

    outcome: RunOutcome = field(default_factory=lambda: RunOutcome(RunEnding.NOT_STARTED))
    checked: ResultFiles | TaskObjection | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    said: dict[OutputStream, bytearray] = field(default_factory=dict)

    @property
    def errors(self) -> str:
        return self.said[OutputStream.ERRORS].decode(errors="replace")

    @property
    def out(self) -> str:
        return self.said[OutputStream.OUTPUT].decode(errors="replace")


def task_of(
    kind: str,
    parameters: Mapping[str, object],
    files: Mapping[str, Path] | None = None,
    kinds: Mapping[str, TaskKind[Any]] = KINDS,
) -> Task:
    """A task with the limits that its kind asks for, as it comes out of an offer."""
    work = kinds[kind].read(parameters)
    assert not isinstance(work, TaskObjection), work.sentence
    inputs = tuple(
        Input(name, Digest(sha256(path.read_bytes()).hexdigest()), path.stat().st_size)
        for name, path in (files or {}).items()
    )
    task = read_task(
        task_bytes(Task(kind, parameters, limits_of(kinds[kind].needs(work), 120, ContainersSettings()), inputs))
    )
    assert isinstance(task, Task), task
    return task


async def run(
    cell: Cell, task: Task, files: Mapping[str, Path] | None = None, runners: Mapping[str, Runner] = RUNNERS
) -> Done:
    """Carry a task out in the sandbox."""
    cell.runs += 1
    runner, said = runners[task.kind], {stream: bytearray() for stream in OutputStream}
    done = Done(said=said)

    async def collected(work: Path) -> None:
        done.checked = runner.check(task, work)
        if isinstance(done.checked, ResultFiles):
            done.files = {str(path): (work / OUT / path).read_bytes() for path in done.checked.files}

    order = runner.specify_run(task, f"{cell.token}-{cell.runs}", files or {}, python_runtime())
    told = RunListener(lambda stream, chunk: said[stream].extend(chunk), collected=collected)
    done.outcome = await cell.sandbox.run(order, told)
    return done
