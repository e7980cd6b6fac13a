"""What customers state about the needs of their own programs and images, which nobody else can count."""

from typing import Annotated

from tidemill.core.bounded_json import About, Text, Whole
from tidemill.core.jobs.kinds.kind import FileForm, OutputFile
from tidemill.core.jobs.sandboxes import MIB

OPERATIONS_PER_CORE_S = 5e10
"""Operations that an estimate counts for a second of one core: about what it multiplies. Customers state the time."""

Seconds = Annotated[int, Whole(1, 7 * 24 * 3600), About("How long a task may take; it is stopped then.")]
ProgramMib = Annotated[int, Whole(16, 4 * 1024 * 1024), About("Its memory, in MiB.")]
SomeMib = Annotated[int, Whole(1, 4 * 1024 * 1024), About("Its disk, in MiB.")]
Cores = Annotated[int, Whole(1, 256), About("How many processor cores it has.")]
Devices = Annotated[int, Whole(0, 16), About("How many GPUs it has.")]
Argument = Annotated[str, Text(4096)]


def any_files(disk_mib: int) -> tuple[OutputFile, ...]:
    """Any files that the program writes below `out`."""
    return (OutputFile("", FileForm.FILES, disk_mib * MIB),)
