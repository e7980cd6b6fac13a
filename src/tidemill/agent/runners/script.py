"""A customer's Python program, in the agent's own Python with its libraries, alone and without a network."""

from collections.abc import Mapping
from pathlib import Path

from tidemill.agent.runners.interface import ResultFiles, Runner
from tidemill.agent.runners.results import any_files
from tidemill.agent.runners.run_specifications import checked_work, specify_program_run
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import script
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import RunSpecification


class ScriptRunner(Runner):
    kind = script.KIND

    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        return specify_program_run(task, name, inputs, python, "script")

    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        [output] = self.kind.outputs(checked_work(task))
        return any_files(work, output.most_bytes, task.limits.work_entries)
