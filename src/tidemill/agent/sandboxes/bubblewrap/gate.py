"""A bubblewrap process that waits at the gate: its namespaces are made, its program is not started yet.

All that it will ever start inherits the control groups and limits of its seat. Its options travel in a file without a
name, so that neither the machine's other users nor a library loader outside see the task's environment.
"""

import contextlib
import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tidemill.agent.sandboxes.bubblewrap import view
from tidemill.agent.sandboxes.bubblewrap.launcher import CALLS, GATE, OPTIONS, STATUS
from tidemill.agent.sandboxes.bubblewrap.program import Reached
from tidemill.agent.sandboxes.bubblewrap.seats import Seat
from tidemill.agent.sandboxes.cgroups import SUPERVISORS
from tidemill.core.jobs.sandboxes import RunLimits, RunSpecification


@dataclass(frozen=True)
class ProcessAtGate:
    """`status` tells the first process's number and at last its exit code; a byte into `gate` lets it go on."""

    seat: Seat
    status: int
    gate: int
    output: int
    errors: int


def start(
    order: RunSpecification, seat: Seat, program: Reached, options: Sequence[str], calls: bytes | None
) -> ProcessAtGate:
    """Start and hold. `calls` is the filter of system calls."""
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        (output, output_end), (errors, errors_end), (status, status_end) = (_pipe(ours, theirs) for _ in range(3))
        gate = _gate()
        ours.callback(os.close, gate)
        passed = [
            "--json-status-fd",
            str(STATUS),
            "--block-fd",
            str(GATE),
            *(["--seccomp", str(CALLS)] if calls else []),
        ]
        written = _nameless("".join(f"{option}\0" for option in [*options, *passed]).encode(), theirs)
        descriptors = [output_end, errors_end, status_end, gate, written]
        descriptors += [_nameless(calls, theirs)] if calls else []
        front = [program.path, "--bind", str(seat.work), view.WORK, "--args", str(OPTIONS)]
        mounts = {**view.staged(order), **program.mounts} if seat.user is not None else {}
        seat.launch([*front, "--", *order.command.arguments], _resources(order.limits, seat.user), mounts, descriptors)
        ours.pop_all()
        return ProcessAtGate(seat, status, gate, output, errors)


def _resources(limits: RunLimits, user: int | None) -> dict[str, int]:
    """Resource limits, soft and hard alike, so that none can be raised.

    A user of the run's own has no other processes, so that they can be counted from here.
    """
    return {
        **({} if user is None else {"NPROC": limits.pids + SUPERVISORS}),
        "NOFILE": limits.open_files,
        "FSIZE": min(limits.file_bytes, limits.disk_bytes),
        **{"CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "RTPRIO": 0, "NICE": 0, "SIGPENDING": 1024},
    }


def limit_processes(pid: int, limits: RunLimits) -> None:
    """Where the user has other processes as well, only those in the new namespace are to count: so from inside it."""
    resource.prlimit(pid, resource.RLIMIT_NPROC, (limits.pids + 1, limits.pids + 1))


def prefer_for_oom_kill(pid: int) -> None:
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


def _pipe(ours: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    ours.callback(os.close, reading)
    theirs.callback(os.close, writing)
    return reading, writing
