"""Asks the kernel how a process ended that is not our child, through a descriptor taken while it lived.

A sandbox reports an exit code like a shell's: 137 may be a signal or a number that the program chose. Kernels before
6.15 do not tell more; then the exit code stands.
"""

import fcntl
import os
import struct
from contextlib import suppress
from pathlib import Path

_INFO = struct.Struct("=QQ11Ii")
_ASK = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_EXITED = 1 << 3
_SECOND = "\t2\nNSpgid:"
"""The end of the line with a process's numbers, the innermost last, and the beginning of the next line."""


def wait_status(descriptor: int) -> int | None:
    """The status that its parent got by waiting; None while it runs, or if the kernel does not tell."""
    buffer = bytearray(_INFO.pack(_EXITED, *[0] * 13))
    try:
        fcntl.ioctl(descriptor, _ASK, buffer)
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(buffer)
    return status if mask & _EXITED else None


def second_process(first: int) -> int | None:
    """A descriptor of the process that a namespace's first process started; None if there is none now.

    It has the number two in its namespace. The first's other children were started by the program, and outlived it.
    """
    with suppress(OSError):
        for child in Path(f"/proc/{first}/task/{first}/children").read_text().split():
            descriptor = os.pidfd_open(int(child))
            if _SECOND in Path(f"/proc/{child}/status").read_text():
                return descriptor
            os.close(descriptor)
    return None
