"""A customer's image, in an engine. Nothing of ours is in it: its command is started as it is, in /work."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tidemill.agent.runners.interface import ResultFiles, Runner
from tidemill.agent.runners.results import any_files
from tidemill.agent.runners.run_specifications import checked_work, input_mounts
from tidemill.agent.sandboxes.bubblewrap.runtime import PythonRuntime
from tidemill.core.jobs.kinds import container
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Task
from tidemill.core.jobs.sandboxes import Command, Image, RunGrants, RunSpecification
from tidemill.core.nodes.machine.hardware import Machine

ENGINES = {"docker", "podman"}
MISSING = "There is no engine for images on this machine: install Podman or Docker, and start the agent again."


class ContainerRunner(Runner):
    kind = container.KIND

    def specify_run(self, task: Task, name: str, inputs: Mapping[str, Path], python: PythonRuntime) -> RunSpecification:
        """An image that comes as an input goes to the engine, and is hidden from the command."""
        work = checked_work(task)
        mounts = tuple(mount for mount in input_mounts(task, inputs) if work.image or mount.target.name != "image")
        return RunSpecification(
            name,
            Command(work.command, {variable.name: variable.value for variable in work.environment}),
            task.limits,
            mounts,
            RunGrants(),
            Image(work.image) if work.image else Image(tarball=PurePosixPath(inputs["image"])),
        )

    def check(self, task: Task, work: Path) -> ResultFiles | TaskObjection:
        [output] = self.kind.outputs(checked_work(task))
        return any_files(work, output.most_bytes, task.limits.work_entries)

    def why_not(self, machine: Machine) -> str | None:
        return None if ENGINES & {engine.name for engine in machine.engines} else MISSING
