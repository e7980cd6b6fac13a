"""One attempt in this agent's hand: what it is, how far it is, what it prints, and why it is stopped."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum

from tidemill.agent.work.attempt_directories import AttemptDirectory
from tidemill.agent.work.workshop import PRIORITIES, FeasibleTask
from tidemill.core.clock import Instant
from tidemill.core.jobs.task_output import OutputLines, TaskOutput
from tidemill.core.nodes.attempt_queue import AttemptStart, QueuedAttempt
from tidemill.link.dialled.reports import Reporter
from tidemill.wire.messages import Assignment, LogLines, ProgressMessage


class Stage(Enum):
    """How far an attempt is. The value is what the machine's owner reads."""

    WAITING = "waits for its turn"
    FETCHING = "fetches its inputs"
    RUNNING = "runs"
    SEALING = "seals its result"
    UPLOADING = "uploads its result"
    REPORTING = "waits for its receipt to be kept"


OCCUPYING = (Stage.FETCHING, Stage.RUNNING, Stage.SEALING)
"""In these stages an attempt has its share of the machine to itself."""


class StopReason(Enum):
    """Why an attempt is stopped: the pool no longer wants it, or this machine cannot go on with it."""

    CALLED_OFF = "called off"
    GIVEN_BACK = "given back"


class AttemptProgress:
    """What the pool is told of an attempt while it runs: how far it is, and what it prints.

    Progress only grows, and is told at most once a second. Core bounds the printed lines. Both may be dropped when
    there is no room: nothing depends on them.
    """

    def __init__(self, reporting: Reporter, assignment: Assignment) -> None:
        self._reporting = reporting
        self._assignment = assignment
        self._output = TaskOutput()
        self._told_ppm = -1

    @property
    def share_ppm(self) -> int:
        """How far the program says it is. This never shrinks."""
        return self._output.progress_ppm

    @property
    def last_line(self) -> str:
        return self._output.last_line

    def heard(self, stream: str, chunk: bytes) -> None:
        self._output.add(stream, chunk)

    async def tell(self) -> None:
        """Call it once a second."""
        if self.share_ppm > self._told_ppm:
            self._told_ppm = self.share_ppm
            await self._reporting.report(
                ProgressMessage(self._assignment.attempt_id, self._assignment.lease, self.share_ppm)
            )
        await self._tell_lines(self._output.due())

    async def tell_rest(self) -> None:
        """Tell the last lines, when the program has ended."""
        await self._tell_lines(self._output.rest())

    async def _tell_lines(self, runs: list[OutputLines]) -> None:
        for run in runs:
            lines = LogLines(self._assignment.attempt_id, self._assignment.lease, run.first, list(run.lines))
            await self._reporting.report(lines)


@dataclass
class AttemptInHand:
    """One attempt. `deadline` and `since` are by the steady clock. One with a receipt has no `feasible_task`."""

    attempt: AttemptDirectory
    since: Instant
    deadline: Instant
    feasible_task: FeasibleTask | None = None
    progress: AttemptProgress | None = None
    start: AttemptStart | None = None
    stage: Stage = Stage.WAITING
    stop_reason: StopReason | None = None
    sentence: str = ""
    seen_to: "asyncio.Task[None] | None" = None
    has_begun: bool = False
    is_ending: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def lease(self) -> int:
        return self.attempt.assignment.lease

    @property
    def waiting(self) -> QueuedAttempt:
        """The attempt as the queue sees it."""
        assert self.feasible_task is not None
        priority = PRIORITIES[self.feasible_task.task.priority]
        return QueuedAttempt(self.attempt.id, self.feasible_task.share, priority, self.since, self.deadline)

    def occupy(self, start: AttemptStart) -> None:
        self.start = start
        self.stage = Stage.FETCHING

    def stop(self, reason: StopReason, sentence: str = "") -> None:
        """Let the task that runs it end it. The first reason counts, but calling off replaces it."""
        if self.stop_reason is None or reason is StopReason.CALLED_OFF:
            self.stop_reason, self.sentence = reason, sentence
        if self.seen_to is not None and self.has_begun and not self.is_ending:
            self.seen_to.cancel()  # a task that was cancelled before its first step could not clean up

    def shown(self) -> dict[str, object]:
        """The attempt as the machine's owner sees it."""
        share = None if self.progress is None else round(self.progress.share_ppm / 10_000, 1)
        kind = None if self.feasible_task is None else self.feasible_task.task.kind
        devices = list(self.start.devices) if self.start else []
        return {
            "attempt": str(self.attempt.id),
            "kind": kind,
            "stage": self.stage.value,
            "progress_pct": share,
            "devices": devices,
        }
