"""A bubblewrap process that waits at the gate: its namespaces are made, its program is not started yet.

Everything that it starts inherits the control groups and limits of its seat. Its options are passed in a file without a
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
    """`status` tells the first process's pid, and in the end its exit code; a byte into `gate` lets it go on."""

    seat: Seat
    status: int
    gate: int
    output: int
    errors: int


def start(
    specification: RunSpecification, seat: Seat, program: Reached, options: Sequence[str], calls: bytes | None
) -> ProcessAtGate:
    """Start the process and hold it at the gate. `calls` is the filter of system calls."""
    with contextlib.ExitStack() as agent_ends, contextlib.ExitStack() as child_ends:
        (output, output_end), (errors, errors_end), (status, status_end) = (
            _pipe(agent_ends, child_ends) for _ in range(3)
        )
        gate = _gate()
        agent_ends.callback(os.close, gate)
        passed = [
            "--json-status-fd",
            str(STATUS),
            "--block-fd",
            str(GATE),
            *(["--seccomp", str(CALLS)] if calls else []),
        ]
        options_file = _nameless_file("".join(f"{option}\0" for option in [*options, *passed]).encode(), child_ends)
        descriptors = [output_end, errors_end, status_end, gate, options_file]
        descriptors += [_nameless_file(calls, child_ends)] if calls else []
        front = [program.path, "--bind", str(seat.work), view.WORK, "--args", str(OPTIONS)]
        mounts = {**view.staged(specification), **program.mounts} if seat.user is not None else {}
        seat.launch(
            [*front, "--", *specification.command.arguments],
            _resources(specification.limits, seat.user),
            mounts,
            descriptors,
        )
        agent_ends.pop_all()
        return ProcessAtGate(seat, status, gate, output, errors)


def _resources(limits: RunLimits, user: int | None) -> dict[str, int]:
    """Resource limits, soft and hard alike, so that none can be raised.

    The number of processes is limited here only for a user of the run's own, who has no other processes.
    """
    return {
        **({} if user is None else {"NPROC": limits.pids + SUPERVISORS}),
        "NOFILE": limits.open_files,
        "FSIZE": min(limits.file_bytes, limits.disk_bytes),
        **{"CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "RTPRIO": 0, "NICE": 0, "SIGPENDING": 1024},
    }


def limit_processes(pid: int, limits: RunLimits) -> None:
    """Limit a user who has other processes as well. Set from inside the new namespace, only those inside count."""
    resource.prlimit(pid, resource.RLIMIT_NPROC, (limits.pids + 1, limits.pids + 1))


def prefer_for_oom_kill(pid: int) -> None:
    """Make the kernel kill a task first when the machine runs out of memory. The kernel may not allow us this."""
    with contextlib.suppress(PermissionError, FileNotFoundError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000")


def descendants(pid: int) -> list[int]:
    """All processes below one. In a process namespace none can leave its first process."""
    pids = [pid]
    for parent in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in os.listdir(f"/proc/{parent}/task"):
                pids += map(int, Path(f"/proc/{parent}/task/{thread}/children").read_text().split())
    return pids[1:]


def terminate(pid: int) -> None:
    """Ask all processes below one to end."""
    for child in descendants(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)


def _gate() -> int:
    """A pipe with both ends in one descriptor. If we die, the process waiting at it sees no end and never goes on."""
    reading, writing = os.pipe()
    try:
        return os.open(f"/proc/self/fd/{reading}", os.O_RDWR | os.O_CLOEXEC)
    finally:
        os.close(reading)
        os.close(writing)


def _nameless_file(content: bytes, child_ends: contextlib.ExitStack) -> int:
    descriptor = os.memfd_create("sandbox")
    child_ends.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _pipe(agent_ends: contextlib.ExitStack, child_ends: contextlib.ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    agent_ends.callback(os.close, reading)
    child_ends.callback(os.close, writing)
    return reading, writing
