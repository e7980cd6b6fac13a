"""An image and a command of the customer's. The image has a name in a registry, or is the input `image`, a tarball.

It runs in an engine only. The command finds its inputs below /inputs, and its result is what it writes below out/ in
the directory where it starts. Only public registries may be named. It gets no network: an engine's network leads into
the owner's, to their machines and to the addresses where a cloud serves a machine's secrets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import About, Most, Text, Whole
from tidemill.core.jobs.image_names import NAME_MAX, PUBLIC, REFERENCE, is_public
from tidemill.core.jobs.kinds.bounds import (
    OPERATIONS_PER_CORE_S,
    Argument,
    Cores,
    Devices,
    ProgramMib,
    Seconds,
    SomeMib,
    any_files,
)
from tidemill.core.jobs.kinds.kind import CheckMethod, ExpectedInput, NumericClass, TaskKind, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.parameters import malformed, read_parameters
from tidemill.core.jobs.sandboxes import MIB

IMAGE_MAX_BYTES = 64 * 1024 * MIB
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)


@dataclass(frozen=True)
class Variable:
    """One variable of the command's environment."""

    name: Annotated[str, Text(100)]
    value: Annotated[str, Text(4096)]


@dataclass(frozen=True)
class Container:
    """`image` is None where it comes as an input. `seconds` is the run time that the customer states.

    Shared memory has the pool's default size, unless the order asks for another.
    """

    command: Annotated[
        tuple[Argument, ...],
        Most(64),
        About("The program and its arguments; {task} stands for the number of the task. It writes below out/."),
    ]
    seconds: Seconds
    image: Annotated[
        Annotated[str, Text(NAME_MAX)] | None,
        About("The name of an image in a public registry; without one it is the input image, a tarball."),
    ] = None
    environment: Annotated[
        tuple[Variable, ...], Most(64), About("Variables of the command, each with a name and a value.")
    ] = ()
    memory_mib: ProgramMib = 1024
    shared_memory_mib: Annotated[
        Annotated[int, Whole(1, 1024 * 1024)] | None, About("Shared memory, in MiB; the pool's usual amount else.")
    ] = None
    disk_mib: SomeMib = 1024
    cores: Cores = 1
    devices: Devices = 0
    gpu_memory_mib: Annotated[int, Whole(0, 4 * 1024 * 1024), About("The least memory of each GPU, in MiB.")] = 0


def read(parameters: Mapping[str, object]) -> Container | TaskObjection:
    work = read_parameters(Container, parameters)
    return work if isinstance(work, TaskObjection) else _objection(work) or work


def needs(work: Container) -> Needs:
    return Needs(
        memory_mib=work.memory_mib,
        disk_mib=work.disk_mib,
        operations=work.seconds * work.cores * OPERATIONS_PER_CORE_S,
        devices=work.devices,
        gpu_memory_mib=work.gpu_memory_mib,
        shared_memory_mib=work.shared_memory_mib,
        cores=work.cores,
        seconds=work.seconds,
    )


def inputs(work: Container) -> tuple[ExpectedInput, ...]:
    return () if work.image is not None else (ExpectedInput("image", IMAGE_MAX_BYTES),)


def _objection(work: Container) -> TaskObjection | None:
    names = [variable.name for variable in work.environment]
    if work.image is not None and not REFERENCE.fullmatch(work.image):
        return malformed("image must be a name such as registry/name:tag or registry/name@sha256:…", "image")
    if work.image is not None and not is_public(work.image):
        return malformed(
            f"image must be in one of these registries: {', '.join(PUBLIC)}; or be the input image.", "image"
        )
    if not work.command or not work.command[0]:
        return malformed("command must begin with a program.", "command")
    if len(set(names)) < len(names) or not all(VARIABLE.fullmatch(name) for name in names):
        return malformed(
            "environment must hold each name once, made of letters, digits and underscores.", "environment"
        )
    if work.gpu_memory_mib and not work.devices:
        return malformed("gpu_memory_mib must be left out where devices is 0.", "gpu_memory_mib")
    return None


KIND = TaskKind(
    name="container",
    read=read,
    needs=needs,
    inputs=inputs,
    outputs=lambda work: any_files(work.disk_mib),
    numeric_class=lambda _: NumericClass.NONE,
    check=lambda _: CheckMethod.REPLAY,
    ours=False,
    own_inputs=True,
    in_image=True,
)
