"""A bubblewrap process that waits at the gate: its namespaces are made, its program is not started yet.

While it waits, the agent puts the first process of the namespace into its control groups and under its limits on
processes; all that the task will ever start inherits them. Its options travel in a file without a name, so that
neither the machine's other users nor a library loader outside see the task's environment.
"""

import contextlib
import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemill.agent.sandboxes.cgroups import SUPERVISORS
from tidemill.core.sandboxes import Limits, Order


@dataclass(frozen=True)
class Held:
    """`status` tells the first process's number and at last its exit code; a byte into `gate` lets it go on."""

    process: subprocess.Popen[bytes]
    status: int
    gate: int


def start(order: Order, front: Sequence[str], options: Sequence[str], calls: bytes | None) -> Held:
    """Start and hold. `front` is the bubblewrap command line so far, `calls` the filter of system calls."""
    with contextlib.ExitStack() as theirs:
        status, status_end = os.pipe()
        theirs.callback(os.close, status_end)
        gate = _gate()
        passed = ["--json-status-fd", str(status_end), "--block-fd", str(gate)]
        descriptors = [status_end, gate]
        if calls is not None:
            descriptors.append(_nameless(calls, theirs))
            passed += ["--seccomp", str(descriptors[-1])]
        descriptors.append(_nameless("".join(f"{option}\0" for option in [*options, *passed]).encode(), theirs))
        line = [*front, "--args", str(descriptors[-1]), "--", *order.command.arguments]
        try:
            return Held(_spawn(line, descriptors), status, gate)
        except BaseException:
            os.close(status)
            os.close(gate)
            raise


def front_words(user: int | None, limits: Limits) -> list[str]:
    """The commands before bubblewrap: resource limits, soft and hard alike, so that none can be raised; then its user.

    A user of the run's own has no other processes, so that they can be counted from here.
    """
    own = [] if user is None else ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return [
        "prlimit",
        *([] if user is None else [f"--nproc={limits.pids + SUPERVISORS}"]),
        f"--nofile={limits.open_files}",
        f"--fsize={min(limits.file_bytes, limits.disk_bytes)}",
        *("--core=0", "--memlock=0", "--msgqueue=0", "--rtprio=0", "--nice=0", "--sigpending=1024"),
        *own,
    ]


def limit_processes(pid: int, limits: Limits) -> None:
    """Where the user has other processes as well, only those in the new namespace are to count: so from inside it."""
    resource.prlimit(pid, resource.RLIMIT_NPROC, (limits.pids + 1, limits.pids + 1))


def offer_to_the_kernel(pid: int) -> None:
    """When the machine itself runs out of memory, a task goes first. The kernel may not let us say so."""
    with contextlib.suppress(PermissionError, FileNotFoundError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def descendants(pid: int) -> list[int]:
    """All processes below one. In a process namespace none gets away from below its first."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                found += map(int, Path(f"/proc/{parent}/task/{thread}/children").read_text().split())
    return found[1:]


def terminate(pid: int) -> None:
    """Ask all processes below one to end."""
    for child in descendants(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)


def _gate() -> int:
    """A pipe with both ends in one descriptor: whoever waits at it sees no end, and so never goes on, if we die."""
    reading, writing = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{reading}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(reading)
        os.close(writing)


def _nameless(content: bytes, theirs: contextlib.ExitStack) -> int:
    descriptor = os.memfd_create("sandbox")
    theirs.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _spawn(line: list[str], descriptors: list[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=descriptors,
        env={},
        cwd="/",
        process_group=0,
    )
