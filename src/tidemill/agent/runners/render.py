"""Tiles of pictures, by our own tracer of light."""

from collections.abc import Mapping
from pathlib import Path

from tidemill.agent.runners.interface import Result, Runner
from tidemill.agent.runners.orders import checked_work, program_order
from tidemill.agent.runners.results import begins_with, one_file
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import render
from tidemill.core.jobs.kinds.kind import Objection
from tidemill.core.jobs.kinds.task import Task
from tidemill.core.jobs.sandboxes import Order
from tidemill.core.pictures import png_header


class RenderRunner(Runner):
    kind = render.KIND

    def order(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> Order:
        return program_order(task, name, inputs, python, "render")

    def check(self, task: Task, work: Path) -> Result | Objection:
        asked = checked_work(task)
        [output] = self.kind.outputs(asked)
        return one_file(work, output, begins_with(png_header(asked.part.width, asked.part.height)))
