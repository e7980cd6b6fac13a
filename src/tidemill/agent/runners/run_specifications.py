"""Orders for programs of ours: what every one of them finds in its sandbox, whatever its kind.

The environment is the same each time and on every machine: no user's settings, one language, one zone of time, a fixed
seed for Python's hashes, and as many threads as the run has processors. Inputs lie in /inputs, by their names.
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
    """The run of one of our programs; `more` is what it is told beside the work and its inputs."""
    places = {one.name: str(INPUTS / one.name) for one in task.inputs}
    told = {"work": json.loads(json_bytes(checked_work(task))), "inputs": places, **(more or {})}
    argument = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    command = python.module(f"tidemill.agent.inside.{program}", argument, more=environment(task))
    return RunSpecification(name, command, task.limits, (*python.mounts, *input_mounts(task, inputs)))


def environment(task: Task) -> dict[str, str]:
    return {**SAME_EVERYWHERE, **dict.fromkeys(THREADS, str(ceil(task.limits.cpu_share)))}


def input_mounts(task: Task, inputs: Mapping[str, Path]) -> tuple[Mount, ...]:
    return tuple(Mount(PurePosixPath(inputs[one.name]), INPUTS / one.name) for one in task.inputs)


def checked_work(task: Task) -> Any:
    """The work of a task that was accepted."""
    work = work_of(task)
    assert not isinstance(work, TaskObjection), "only a task that fits its kind is accepted"
    return work
