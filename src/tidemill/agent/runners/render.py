"""Tiles of pictures, by our own tracer of light."""

from collections.abc import Mapping
from pathlib import Path

from tidemill.agent.runners.interface import ResultFiles, Runner
from tidemill.agent.runners.results import begins_with, one_file
from tidemill.agent.runners.run_specifications import checked_work, specify_program_run
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import render
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import RunSpecification
from tidemill.core.pictures import png_header


class RenderRunner(Runner):
    kind = render.KIND

    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        return specify_program_run(task, name, inputs, python, "render")

    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        picture = checked_work(task)
        [output] = self.kind.outputs(picture)
        return one_file(work, output, begins_with(png_header(picture.part.width, picture.part.height)))
