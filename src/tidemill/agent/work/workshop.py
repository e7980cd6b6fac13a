"""What this machine can carry out: its sandboxes, the kinds that it has runners for, its room and devices for tasks.

The agent learns at the start what does not work here and why, and tells the pool and the owner. So it declines, and
never begins, an attempt whose limits it could not enforce or whose kind it does not know. A sandbox that does not work
stops no agent: the agent keeps its link, and says why it takes no such work.
"""

import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol
from uuid import UUID

import structlog

from tidemill.agent.home.home import Home
from tidemill.agent.home.place import kept_place, prepare_place
from tidemill.agent.runners import RUNNERS, Runner, available
from tidemill.agent.sandboxes.bubblewrap.sandbox import open_bubblewrap
from tidemill.agent.sandboxes.engine.sandbox import SOCKETS, open_engine
from tidemill.agent.sandboxes.interface import Sandbox, SandboxFault
from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.faults import Fault
from tidemill.core.jobs.kinds import KINDS, work_of
from tidemill.core.jobs.kinds.kind import TaskObjection
from tidemill.core.jobs.kinds.task_body import Priority, Task, read_task
from tidemill.core.jobs.results import is_reader
from tidemill.core.jobs.sandboxes import MIB, Ability, Enforcement, RunGrants, SandboxRefusal, unmet
from tidemill.core.nodes.attempt_queue import MachineRoom, MachineShare, QueueRefusal
from tidemill.core.nodes.machine.abilities import NodeAbilities, abilities_bytes, missing_ability
from tidemill.core.nodes.machine.hardware import Device, DeviceKind, Machine
from tidemill.core.refusals import Refusal

log = structlog.get_logger()

SPARE_MEMORY_MIB = 512
SPARE_DISK_MIB = 1_024
"""Memory and disk space that tasks leave to the machine's owner."""

DRIVER = Path("/proc/driver/nvidia/gpus")
SHARED_FILES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
_LINE = re.compile(r"^(GPU UUID|Device Minor):\s*(\S+)", re.MULTILINE)

PRIORITIES: Mapping[Priority, int] = {Priority.LOW: -1, Priority.NORMAL: 0, Priority.HIGH: 1}


class Inputs(Protocol):
    """Artefacts on this machine's disk."""

    def use(self, digest: Digest, size_bytes: int) -> AbstractAsyncContextManager[Path]:
        """A checked file with the artefact, fetched if it is not here; a fault if it cannot be had."""
        ...


class Uploads(Protocol):
    """Sends artefacts to the pool."""

    async def upload(self, path: Path, purpose: Purpose, attempt_id: UUID, digest: Digest) -> UUID | Refusal:
        """Send a file to the pool, resuming an earlier try. A fault may pass, a refusal does not."""
        ...


@dataclass(frozen=True)
class FeasibleTask:
    """A task that this machine can carry out, with its runner, its sandbox and its share of the machine."""

    task: Task
    work: Any
    runner: Runner
    sandbox: Sandbox
    share: MachineShare


@dataclass(frozen=True)
class Workshop:
    """Everything that work is done with. `faults` says why some sandboxes do not work."""

    path: Path
    sandboxes: Sequence[Sandbox]
    faults: Sequence[str] = ()

    def feasible_task(self, body: bytes, task_id: bytes) -> FeasibleTask | str:
        """An assignment's task, if this machine knows its kind and has a fitting sandbox; else why not."""
        task = read_task(body)
        work = task if isinstance(task, TaskObjection) else work_of(task)
        if isinstance(task, TaskObjection) or isinstance(work, TaskObjection):
            return str(work.sentence)
        runner = RUNNERS.get(task.kind)
        if refusal := _refusal(task, task_id, runner):
            return refusal.sentence
        assert runner is not None
        if sentence := runner.declines(task):
            return sentence
        sandbox = choose(self.sandboxes, task.demands, KINDS[task.kind].in_image)
        if isinstance(sandbox, Refusal):
            return " ".join((sandbox.sentence, *self.faults, *reasons(self.sandboxes, task.demands)))
        return FeasibleTask(task, work, runner, sandbox, _share(task))

    def room(self, machine: Machine) -> MachineRoom:
        """What all tasks together may use."""
        free_mib = shutil.disk_usage(self.path).free // MIB
        return MachineRoom(
            cores=float(machine.cores),
            memory_mib=max(0, machine.memory_mib - SPARE_MEMORY_MIB),
            disk_mib=max(0, free_mib - SPARE_DISK_MIB),
            devices={device.index: device.memory_mib for device in machine.devices if is_grantable(device)},
        )

    def facts(self, machine: Machine) -> bytes:
        """What the pool is told: the body of `Facts` of the kind `sandbox`."""
        return abilities_bytes(self.carries(machine))

    def carries(self, machine: Machine) -> NodeAbilities:
        able = self._abilities()
        lacking = [ability for ability in Ability if ability not in able]
        explained = {
            ability: sandbox.enforced.why_not.get(ability) for sandbox in self.sandboxes for ability in lacking
        }
        sentences = {
            ability.name: " ".join(filter(None, (ability.value, explained.get(ability)))) for ability in lacking
        }
        kinds = self._kinds(machine)
        missing = {**{name: reason for name, reason in kinds.items() if reason is not None}, **sentences}
        return NodeAbilities(
            kinds=tuple(name for name, reason in kinds.items() if reason is None),
            abilities=tuple(sorted(ability.name for ability in able)),
            why_not=tuple(missing_ability(name, reason) for name, reason in missing.items()),
        )

    def _abilities(self) -> frozenset[Ability]:
        """What at least one sandbox here enforces."""
        return frozenset[Ability]().union(*(sandbox.enforced.abilities for sandbox in self.sandboxes))

    def _kinds(self, machine: Machine) -> dict[str, str | None]:
        """Each kind, and why it cannot be carried out here; None if it can."""
        lacking = available(machine).why_not
        choices = {name: choose(self.sandboxes, frozenset(), KINDS[name].in_image) for name in RUNNERS}
        unfit = {
            name: " ".join((choice.sentence, *self.faults))
            for name, choice in choices.items()
            if isinstance(choice, Refusal)
        }
        return {name: lacking.get(name) or unfit.get(name) for name in RUNNERS}


@asynccontextmanager
async def open_workshop(home: Home) -> AsyncIterator[Workshop]:
    """Open every sandbox that works, the quicker one first. Each removes what a killed agent left where it runs."""
    prepare_place(home.path)
    sandboxes: list[Sandbox] = []
    faults: list[str] = []
    engine = next((socket for socket in SOCKETS if socket.is_socket()), None)
    openings: list[Awaitable[Sandbox]] = [open_bubblewrap(home.runs)]
    openings += [open_engine(home.images, engine)] if engine else []
    for opening in openings:
        try:
            sandboxes.append(await opening)
        except Fault as fault:
            log.warning("sandbox not usable", cause=str(fault))
            faults.append(str(fault))
        except OSError as error:
            faults.append(f"Tasks cannot be run in {home.place} ({error.strerror}): look at who may write there.")
    try:
        with kept_place(home.path):
            yield Workshop(home.place, tuple(sandboxes), tuple(faults))
    finally:
        for sandbox in sandboxes:
            sandbox.close()


def choose(available: Sequence[Sandbox], demands: frozenset[Ability], needs_image: bool) -> Sandbox | SandboxRefusal:
    """The first sandbox that enforces every demand; one that runs images where the task brings its own."""
    if not available:
        return SandboxRefusal.NO_SANDBOX
    fitting = [sandbox for sandbox in available if not needs_image or Ability.IMAGE in sandbox.enforced.abilities]
    if not fitting:
        return SandboxRefusal.NO_IMAGES
    return next((sandbox for sandbox in fitting if demands <= sandbox.enforced.abilities), SandboxRefusal.DEMANDS_UNMET)


def reasons(available: Sequence[Sandbox], demands: frozenset[Ability]) -> tuple[str, ...]:
    """What each sandbox lacks for these demands, a sentence each, none twice."""
    return tuple(dict.fromkeys(sentence for sandbox in available for sentence in unmet(demands, sandbox.enforced)))


def is_grantable(device: Device) -> bool:
    """Whether a device can be given to a task. Others are reported to the pool, but get no work."""
    return device.kind is DeviceKind.NVIDIA and device.failing is None


def grants_for(devices: Sequence[Device], network: bool, enforced: Enforcement, driver: Path = DRIVER) -> RunGrants:
    """What a run is given: its own devices, and no others. A fault if the driver does not say where a device is.

    Bubblewrap is given the device's files, an engine the device's name. The driver says which file belongs to which
    device: the numbers that tools show may follow another order.
    """
    if not devices:
        return RunGrants(network=network)
    if Ability.IMAGE in enforced.abilities:
        return RunGrants(network=network, gpus=tuple(device.uuid for device in devices))
    minors = _minors(driver)
    missing = [device.uuid for device in devices if device.uuid not in minors]
    if missing:
        raise SandboxFault(f"The driver does not say where device {missing[0]} is: look at {driver}.")
    files = (*SHARED_FILES, *(f"/dev/nvidia{minors[device.uuid]}" for device in devices))
    return RunGrants(network=network, devices=tuple(map(PurePosixPath, files)))


def _refusal(task: Task, task_id: bytes, runner: Runner | None) -> QueueRefusal | None:
    if not any(task_id):
        return QueueRefusal.TASK_UNNAMED
    if runner is None:
        return QueueRefusal.RUNNER_MISSING
    return None if all(map(is_reader, task.seal_to)) else QueueRefusal.READER_UNFIT


def _share(task: Task) -> MachineShare:
    limits = task.limits
    inputs_bytes = sum(task_input.size_bytes for task_input in task.inputs)
    return MachineShare(
        cores=limits.cpu_share,
        memory_mib=-(-limits.memory_bytes // MIB),
        disk_mib=-(-(limits.disk_bytes + inputs_bytes) // MIB),
        devices=task.devices,
        gpu_memory_mib=task.gpu_memory_mib,
    )


def _minors(driver: Path) -> dict[str, str]:
    """The number in the name of each device's file, by the device's UUID."""
    texts = (file.read_text(errors="replace") for file in sorted(driver.glob("*/information")))
    fields_of_devices = (dict(_LINE.findall(text)) for text in texts)
    return {fields["GPU UUID"]: fields["Device Minor"] for fields in fields_of_devices if len(fields) == 2}
