"""Specifies the runs of our own programs: what each finds in its sandbox, whatever its kind.

The environment is the same on every machine: no user's settings, one language, one time zone, a fixed seed for Python's
hashes, and as many threads as the run has processors. Inputs lie in /inputs, by their names.
"""

import json
from collections.abc import Mapping
from math import ceil
from pathlib import Path, PurePosixPath
from typing import Any

from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.bounded_json import json_bytes
from tidemill.core.jobs.kinds import work_of
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import Mount, RunSpecification

INPUTS = PurePosixPath("/inputs")
SAME_EVERYWHERE = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def specify_program_run(
    task: Task,
    name: str,
    inputs: Mapping[str, Path],
    python: PythonRuntime,
    program: str,
    more: Mapping[str, object] | None = None,
) -> RunSpecification:
    """The run of one of our programs. `more` is passed to it beside the work and the inputs."""
    paths = {task_input.name: str(INPUTS / task_input.name) for task_input in task.inputs}
    parameters = {"work": json.loads(json_bytes(checked_work(task))), "inputs": paths, **(more or {})}
    argument = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"))
    command = python.module(f"tidemill.agent.inside.{program}", argument, more=environment(task))
    return RunSpecification(name, command, task.limits, (*python.mounts, *input_mounts(task, inputs)))


def environment(task: Task) -> dict[str, str]:
    return {**SAME_EVERYWHERE, **dict.fromkeys(THREADS, str(ceil(task.limits.cpu_share)))}


def input_mounts(task: Task, inputs: Mapping[str, Path]) -> tuple[Mount, ...]:
    return tuple(Mount(PurePosixPath(inputs[task_input.name]), INPUTS / task_input.name) for task_input in task.inputs)


def checked_work(task: Task) -> Any:
    """The work of a task that was accepted."""
    work = work_of(task)
    assert not isinstance(work, TaskObjection), "only a task that fits its kind is accepted"
    return work
