"""What every runner does: it turns a task into a run of a sandbox, and checks the result of the run.

A runner keeps no state and decides nothing about the machine: the agent decides where and when a run takes place, and
on which devices. Tasks that reach a runner were read, and fit their kind.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds.kind import TaskKind, TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import RunSpecification
from tidemill.core.nodes.machine.hardware import Machine

OUT = "out"
"""The directory in a run's work directory whose files are the result."""


@dataclass(frozen=True)
class ResultFiles:
    """The files of a result, by their paths below `out`, in order; and their total size."""

    files: tuple[PurePosixPath, ...]
    size_bytes: int


class Runner(Protocol):
    kind: TaskKind[Any]

    @abstractmethod
    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        """The run that carries the task out, under this name. `inputs` are paths on this machine."""

    @abstractmethod
    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        """The result in a work directory, if it has the kind's form and size. The task made it: trust nothing in it."""

    def why_not(self, machine: Machine) -> str | None:
        """Why this machine can do no task of this kind, and what to do about it; None if it can."""
        return None

    def declines(self, task: Task) -> str | None:
        """Why this machine cannot do this task, though it can do others of its kind; None if it can."""
        return None
