"""What every runner does: it turns a task into a run of a sandbox, and looks at what the run left behind.

A runner holds nothing and decides nothing about the machine: which devices a run gets, where and when it runs, is the
agent's. Tasks that reach it were read and found to fit their kind.
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
    """The files of a result, by their paths below `out`, in order; and what they hold together."""

    files: tuple[PurePosixPath, ...]
    size_bytes: int


class Runner(Protocol):
    kind: TaskKind[Any]

    @abstractmethod
    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        """The run that carries the task out, under this name, with its inputs where they lie on this machine."""

    @abstractmethod
    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        """The result in a work directory, if it is of the kind's form and size. What is in it was made by the task."""

    def why_not(self, machine: Machine) -> str | None:
        """Why no task of this kind can be done on this machine, and what to do about it; None if they can."""
        return None

    def declines(self, task: Task) -> str | None:
        """Why this task cannot be done here though others of its kind can; None if it can."""
        return None
