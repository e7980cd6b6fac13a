"""Metrics of the queue, and a limit on stored explanations. Any number of copies may run."""

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.store.jobs import job_views
from tidemill.store.placement import explanations

EVERY_S = 15.0


class QueueLoop(Loop):
    """Counts waiting tasks, for the metrics of this process; forgets the oldest explanations, and those of tasks that
    no longer wait."""

    name = "queue"
    needs_trusted_clock = False

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=EVERY_S)

    async def tick(self, now: Instant) -> Tick:
        parts = self.parts
        async with parts.loop_database.connection() as connection:
            parts.metrics.dispatch.queue(await job_views.queue_state(connection), now)
        forgotten = await explanations.forget(parts.loop_database, parts.settings.jobs.explanations_max)
        return Tick(seen=forgotten, applied=forgotten)
