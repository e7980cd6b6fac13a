"""What every sandbox does. A run leaves nothing behind, however it ends: no process, mount, control group or file.

Its last process has ended before `run` returns. The rest is removed while the next run may already begin, and is gone
once `settled` returns.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol

from tidemill.core.faults import Fault
from tidemill.core.jobs.sandboxes import Enforcement, RunOutcome, RunSpecification


class SandboxFault(Fault):
    """This machine cannot run tasks in isolation right now."""

    code = "sandbox_unusable"


class OutputStream(Enum):
    OUTPUT = "stdout"
    ERRORS = "stderr"


async def nothing(work: Path) -> None:
    """For runs that need nothing laid out or collected."""


@dataclass(frozen=True)
class RunListener:
    """What a run calls: `heard` as it prints, `prepared` before it starts, `collected` after its last process ended.

    The last two get the work directory. In `collected` its content was made by the task: see `outputs.py`.
    """

    heard: Callable[[OutputStream, bytes], None]
    prepared: Callable[[Path], Awaitable[None]] = nothing
    collected: Callable[[Path], Awaitable[None]] = nothing


class Sandbox(Protocol):
    enforced: Enforcement
    description: str
    """Which program it is, its version and its path, for the machine's owner."""

    @abstractmethod
    async def run(self, specification: RunSpecification, listener: RunListener) -> RunOutcome:
        """Run to the end. Cancelling the caller ends the run at once."""

    @abstractmethod
    def cancel(self, name: str) -> bool:
        """Ask a run to end, then end it. False when there is no such run."""

    @abstractmethod
    async def settled(self) -> None:
        """Wait until everything of the runs that ended is removed."""

    @abstractmethod
    def close(self) -> None:
        """Let another process use the sandbox's directory."""
