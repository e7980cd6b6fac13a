"""What a sandbox is told to run, what it can enforce on a machine, and how a run ended. Pure.

No limit that a machine cannot enforce is dropped silently: the sandbox reports it at its start, and does not accept a
task that demands it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath

from tidemill.core.jobs.image_names import REFERENCE
from tidemill.core.refusals import Refusal

MIB = 1024 * 1024
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""A run's name becomes a directory, a control group and a container."""
GPU = re.compile(r"[0-9]{1,2}|(GPU|MIG)-[0-9a-f-]{8,64}")


class Ability(Enum):
    """What a sandbox may be able to enforce. The value says what a task loses without it."""

    MEMORY = "Memory of all its processes together cannot be limited."
    PIDS = "The number of its processes cannot be limited."
    CPU = "Its share of the processors cannot be limited."
    SHARED_MEMORY = "Shared memory cannot be limited."
    OPEN_FILES = "Open files cannot be limited."
    FILE_SIZE = "The size of one file cannot be limited."
    OUTPUT = "What it prints cannot be limited."
    TIME = "It cannot be ended at its deadline."
    DISK_WATCHED = "Disk use is not watched."
    DISK_QUOTA = "Disk use is watched several times a second, and not held by a quota of the filesystem."
    NO_NETWORK = "The network cannot be kept away from it."
    UNPRIVILEGED = "It would run as the agent's own user."
    CALLS = "Dangerous system calls cannot be refused on this processor."
    GPU_MEMORY = "Memory of its GPUs is not watched."
    IMAGE = "It cannot run in an image of its own."


class SandboxRefusal(Refusal):
    """Why no sandbox of a machine takes a task."""

    NO_SANDBOX = "No sandbox works on this machine: `tidemill agent doctor` says why."
    NO_IMAGES = "Images cannot be run on this machine: install Podman or Docker and start the agent again."
    DEMANDS_UNMET = "No sandbox of this machine enforces all that the task demands: `tidemill agent doctor` says why."
    IMAGE_UNFIT = (
        "The image is no file that `docker export` wrote, or unpacks to more than it may: export a smaller one."
    )


@dataclass(frozen=True)
class Enforcement:
    """What a sandbox can enforce here, and why it cannot do the rest."""

    abilities: frozenset[Ability]
    why_not: Mapping[Ability, str] = field(default_factory=dict)


def unmet(demands: frozenset[Ability], enforced: Enforcement) -> tuple[str, ...]:
    """Why a task with these demands cannot run in this sandbox: a sentence each, none when it can."""
    missing = [ability for ability in Ability if ability in demands - enforced.abilities]
    return tuple(" ".join(filter(None, (ability.value, enforced.why_not.get(ability)))) for ability in missing)


@dataclass(frozen=True)
class RunLimits:
    """The most that one run may take. `cpu_share` is in processors; `work_entries` counts files and directories."""

    seconds: float
    memory_bytes: int = 512 * MIB
    shared_memory_bytes: int = 64 * MIB
    temporary_bytes: int = 64 * MIB
    disk_bytes: int = 1024 * MIB
    file_bytes: int = 1024 * MIB
    output_bytes: int = MIB
    work_entries: int = 100_000
    cpu_share: float = 1.0
    pids: int = 64
    open_files: int = 1024
    gpu_memory_bytes: int | None = None
    """Of all its devices together; no driver enforces it, so we watch it. None for a run without devices."""

    def __post_init__(self) -> None:
        if any(value is not None and value <= 0 for value in vars(self).values()):
            raise ValueError("every limit of a run is above zero")


@dataclass(frozen=True)
class Mount:
    """A file or directory of the machine that the run may read, at a path of its own."""

    source: PurePosixPath
    target: PurePosixPath

    def __post_init__(self) -> None:
        if not (self.source.is_absolute() and self.target.is_absolute()) or ".." in self.target.parts:
            raise ValueError("both ends of a mount are absolute paths")


@dataclass(frozen=True)
class RunGrants:
    """What a run gets only if it is granted.

    `network` is the machine's own network, loopback included; in an engine it is the engine's bridge. `devices` are
    files of the machine; `gpus` are names that an engine hands to the driver's own tools, which find the files.
    """

    network: bool = False
    devices: tuple[PurePosixPath, ...] = ()
    gpus: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(GPU.fullmatch(gpu) for gpu in self.gpus):
            raise ValueError("a GPU is named by its number or its UUID")


@dataclass(frozen=True)
class Image:
    """What a run finds instead of the system's files: an image by its name in a registry, or one in a file.

    The file is one that `docker export` wrote; one of `docker save` brings names of its own, with which it could
    replace the owner's images. Exactly one of both is given.
    """

    reference: str = ""
    tarball: PurePosixPath | None = None

    def __post_init__(self) -> None:
        if bool(self.reference) == (self.tarball is not None):
            raise ValueError("an image is named or lies in a file")
        if self.reference and not REFERENCE.fullmatch(self.reference):
            raise ValueError("an image's name is written as name:tag or name@sha256:digest")


@dataclass(frozen=True)
class Command:
    """A program and its arguments as the run sees them; its environment is only the one given here."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        texts = (*self.arguments, *self.environment, *self.environment.values())
        if not self.arguments or any("\0" in text for text in texts):
            raise ValueError("a command has a program, and its text holds no zero byte")
        if any(not name or "=" in name for name in self.environment):
            raise ValueError("a variable's name is not empty and holds no equals sign")


@dataclass(frozen=True)
class RunSpecification:
    """One run: what to start, what it may read, what it is granted and how much it may take.

    It starts in the writable directory `/work`, which is empty unless the caller put something there.
    """

    name: str
    command: Command
    limits: RunLimits
    inputs: tuple[Mount, ...] = ()
    grants: RunGrants = RunGrants()
    image: Image | None = None

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError("a run's name is made of small letters, digits and hyphens")


class RunEnding(Enum):
    """Why a run ended. The value is the sentence that its owner reads."""

    DONE = "The program ended by itself."
    NOT_STARTED = "The program could not be started: see what was printed."
    DEADLINE = "The deadline passed."
    MEMORY = "It took more memory than it may."
    OUTPUT = "It printed more than it may."
    DISK = "It took more disk space, or made more files, than it may."
    GPU_MEMORY = "It took more memory of its GPUs than it may."
    CANCELLED = "It was cancelled."
    KILLED = "It was ended from outside."


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended. A program that a signal ended has no exit code."""

    ending: RunEnding
    exit_code: int | None = None
    signal: int | None = None

    @property
    def succeeded(self) -> bool:
        return self.ending is RunEnding.DONE and self.exit_code == 0


def outcome(ending: RunEnding, status: int | None) -> RunOutcome:
    """The outcome from an exit status as a shell shows it, where 128 plus a signal's number stands for the signal.

    A program may also exit with such a number by itself: where the kernel can tell, use `outcome_of_wait`.
    """
    if status is None:
        return RunOutcome(RunEnding.NOT_STARTED if ending is RunEnding.DONE else ending)
    if 128 < status <= 128 + 64:
        return RunOutcome(ending, signal=status - 128)
    return RunOutcome(ending, exit_code=status)


def outcome_of_wait(ending: RunEnding, wait_status: int) -> RunOutcome:
    """The outcome from what the kernel says of an ended process: a signal in the low bits, an exit code above them."""
    signal = wait_status & 0x7F
    return RunOutcome(ending, signal=signal) if signal else RunOutcome(ending, exit_code=wait_status >> 8 & 0xFF)
