"""What a customer says that their own program takes, where nobody can count it: programs and images."""

from typing import Annotated

from tidemill.core.bounded_json import Text, Whole
from tidemill.core.jobs.kinds.kind import FileForm, OutputFile
from tidemill.core.jobs.sandboxes import MIB

OPERATIONS_PER_CORE_S = 5e10
"""What a second of one core counts as in an estimate: a core multiplies about so much. Time is what they said."""

Seconds = Annotated[int, Whole(1, 7 * 24 * 3600)]
ProgramMib = Annotated[int, Whole(16, 4 * 1024 * 1024)]
SomeMib = Annotated[int, Whole(1, 4 * 1024 * 1024)]
Cores = Annotated[int, Whole(1, 256)]
Devices = Annotated[int, Whole(0, 16)]
Argument = Annotated[str, Text(4096)]


def any_files(disk_mib: int) -> tuple[OutputFile, ...]:
    """Whatever the program writes below `out`."""
    return (OutputFile("", FileForm.FILES, disk_mib * MIB),)
