"""A program that ends with whoever started it, however that one dies, and keeps to some of the machine's processors.

It is run by its path, before anything of ours is imported: `bound_child.py PARENT PROCESSORS PROGRAM ARGUMENT...`. It
becomes the program, so the process that was started is the program's own. What it sets up outlives that change.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_SET_PARENT_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG, of prctl(2), which only Linux has."""


def main(arguments: Sequence[str]) -> None:
    parent, processors, *command = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        os.sched_setaffinity(0, {int(number) for number in processors.split(",")})
    if os.getppid() == int(parent):  # else it died before we could say that we depend on it
        os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
