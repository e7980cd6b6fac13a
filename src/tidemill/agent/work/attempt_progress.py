"""What the pool is told of an attempt while it runs: how far it is, and what it prints.

Progress only grows, and is told at most once a second. Core bounds the printed lines. Both may be dropped when there is
no room: nothing depends on them.
"""

from tidemill.core.jobs.task_output import OutputLines, TaskOutput
from tidemill.link.dialled.reports import Reporter
from tidemill.wire.messages import Assignment, LogLines, ProgressMessage


class AttemptProgress:
    """The progress and the output of one running attempt."""

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
