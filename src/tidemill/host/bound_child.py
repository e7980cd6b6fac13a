"""Starts a program that ends with its parent, however the parent dies, and that uses only some processors.

Run it by its path, before anything of ours is imported: `bound_child.py PARENT PROCESSORS PROGRAM ARGUMENT...`. It
replaces itself with the program, which keeps the process, its death signal and its processors.
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
    if os.getppid() == int(parent):  # else the parent died before we asked for the signal
        os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
