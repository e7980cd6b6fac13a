"""How a process ended that is not our child, from the kernel itself, through a descriptor taken while it lived.

A sandbox's own word is a shell's: 137 may be a signal or a number that the program chose. Kernels before 6.15 do not
tell; then the shell's word stands.
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
"""How the line of a process's numbers ends, the innermost last, and the next begins."""


def wait_status(descriptor: int) -> int | None:
    """What its parent learnt by waiting for it; None while it runs, or where the kernel does not tell."""
    asked = bytearray(_INFO.pack(_EXITED, *[0] * 13))
    try:
        fcntl.ioctl(descriptor, _ASK, asked)
    except OSError:
        return None
    told, *_, status = _INFO.unpack(asked)
    return status if told & _EXITED else None


def second_process(first: int) -> int | None:
    """A descriptor of the process that the first of a namespace started; None when it is not there now.

    It has the number two in there. Others below the first were started by the program, and outlived it.
    """
    with suppress(OSError):
        for child in Path(f"/proc/{first}/task/{first}/children").read_text().split():
            descriptor = os.pidfd_open(int(child))
            if _SECOND in Path(f"/proc/{child}/status").read_text():
                return descriptor
            os.close(descriptor)
    return None
