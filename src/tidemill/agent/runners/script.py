"""A customer's Python program, in the agent's own Python with its libraries, alone and without a network."""

from collections.abc import Mapping
from pathlib import Path

from tidemill.agent.runners.interface import Result, Runner
from tidemill.agent.runners.orders import checked_work, program_order
from tidemill.agent.runners.results import any_files
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import script
from tidemill.core.jobs.kinds.kind import Objection
from tidemill.core.jobs.kinds.task import Task
from tidemill.core.jobs.sandboxes import Order


class ScriptRunner(Runner):
    kind = script.KIND

    def order(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> Order:
        return program_order(task, name, inputs, python, "script")

    def check(self, task: Task, work: Path) -> Result | Objection:
        [output] = self.kind.outputs(checked_work(task))
        return any_files(work, output.most_bytes, task.limits.work_entries)
