"""What the pool is told of an attempt while it runs: how far it is, and what it prints.

Progress only grows, and is told at most once a second; printed lines are bounded in core. Both may be dropped on the
way when there is no room; nothing depends on them.
"""

from tidemill.core.jobs.task_output import OutputLines, TaskOutput
from tidemill.link.dialled.reports import Reporter
from tidemill.wire.messages import Assignment, LogLines, ProgressMessage


class AttemptProgress:
    """One attempt that runs."""

    def __init__(self, reporting: Reporter, offer: Assignment) -> None:
        self._reporting = reporting
        self._offer = offer
        self._output = TaskOutput()
        self._told_ppm = -1

    @property
    def share_ppm(self) -> int:
        """How far the program says that it is. It never says less than before."""
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
            await self._reporting.report(ProgressMessage(self._offer.attempt_id, self._offer.lease, self.share_ppm))
        await self._tell_lines(self._output.due())

    async def tell_rest(self) -> None:
        """It prints no more."""
        await self._tell_lines(self._output.rest())

    async def _tell_lines(self, runs: list[OutputLines]) -> None:
        for told in runs:
            lines = LogLines(self._offer.attempt_id, self._offer.lease, told.first, list(told.lines))
            await self._reporting.report(lines)
