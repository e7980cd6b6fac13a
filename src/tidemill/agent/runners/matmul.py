"""Matrix products: numpy on the processors, CuPy or torch on a GPU."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tidemill.agent.inside.multipliers import MISSING
from tidemill.agent.runners.interface import ResultFiles, Runner
from tidemill.agent.runners.results import begins_with, one_file
from tidemill.agent.runners.run_specifications import checked_work, specify_program_run
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import matmul
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import RunSpecification
from tidemill.core.matrices.npy import MatrixLayout, header_of
from tidemill.core.matrices.products import RESULTS


class MatmulRunner(Runner):
    kind = matmul.KIND

    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        return specify_program_run(task, name, inputs, python, "matmul")

    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        """Check the header only. Any entry may be infinite or NaN: a customer's matrices may lead there."""
        product = checked_work(task)
        [output] = self.kind.outputs(product)
        return one_file(
            work, output, begins_with(header_of(MatrixLayout(RESULTS[product.element], product.m, product.n)))
        )

    def declines(self, task: Task) -> str | None:
        """The owner must install a library for GPUs."""
        has_library = any(find_spec(name) is not None for name in ("cupy", "torch"))
        return MISSING if checked_work(task).devices and not has_library else None
