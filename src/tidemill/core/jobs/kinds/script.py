"""A Python program of the customer's, with inputs, in an environment that is the same each time.

The program is given in the parameters, or as the input `program`. It finds every other input below /inputs, starts in
/work, has numpy and no network, and its result is what it writes below out/.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from tidemill.core.bounded_json import About, Most, Prose
from tidemill.core.jobs.kinds.bounds import (
    OPERATIONS_PER_CORE_S,
    Argument,
    Cores,
    ProgramMib,
    Seconds,
    SomeMib,
    any_files,
)
from tidemill.core.jobs.kinds.kind import CheckMethod, ExpectedInput, NumericClass, TaskKind, TaskObjection
from tidemill.core.jobs.kinds.needs import Needs
from tidemill.core.jobs.kinds.parameters import malformed, read_parameters
from tidemill.core.jobs.sandboxes import MIB

PROGRAM_MAX_BYTES = 32 * 1024
PROGRAM_FILE_MAX_BYTES = 4 * MIB


@dataclass(frozen=True)
class Script:
    """`program` is None where it comes as an input. `seconds` is the run time that the customer states."""

    seconds: Seconds
    program: Annotated[
        Annotated[str, Prose(PROGRAM_MAX_BYTES)] | None,
        About("The program's text, or none where it is the input program. It writes its result below out/."),
    ] = None
    arguments: Annotated[
        tuple[Argument, ...], Most(64), About("What it is given; {task} stands for the number of the task.")
    ] = ()
    memory_mib: ProgramMib = 512
    disk_mib: SomeMib = 256
    cores: Cores = 1


def read(parameters: Mapping[str, object]) -> Script | TaskObjection:
    work = read_parameters(Script, parameters)
    if isinstance(work, Script) and work.program is not None and not work.program.strip():
        return malformed("program must be a Python program, or be left out where it comes as an input.", "program")
    return work


def needs(work: Script) -> Needs:
    return Needs(
        memory_mib=work.memory_mib,
        disk_mib=work.disk_mib,
        operations=work.seconds * work.cores * OPERATIONS_PER_CORE_S,
        cores=work.cores,
        seconds=work.seconds,
    )


def inputs(work: Script) -> tuple[ExpectedInput, ...]:
    return () if work.program is not None else (ExpectedInput("program", PROGRAM_FILE_MAX_BYTES),)


KIND = TaskKind(
    name="script",
    read=read,
    needs=needs,
    inputs=inputs,
    outputs=lambda work: any_files(work.disk_mib),
    numeric_class=lambda _: NumericClass.DEVICE,
    check=lambda _: CheckMethod.REPLAY,
    ours=False,
    own_inputs=True,
)
