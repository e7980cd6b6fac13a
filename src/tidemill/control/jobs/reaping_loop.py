"""Reaping: closes work that nobody does any more. Any number of copies may run."""

from tidemill.control.jobs.attempt_reports import AttemptReportIntake
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.control.terms import work_terms
from tidemill.core.clock import Instant
from tidemill.core.jobs.plans.work_plan import WorkPlan
from tidemill.store.jobs import abandoned_work

EVERY_S = 1.0


class ReapingLoop(Loop):
    """Gives up attempts of lost or late nodes, closes jobs whose time or budget is up, and sweeps their open tasks."""

    name = "reaping"

    def __init__(self, parts: Parts, intake: AttemptReportIntake) -> None:
        super().__init__(parts, every_s=EVERY_S)
        self._intake = intake
        self._terms = work_terms(parts.settings)

    async def tick(self, now: Instant) -> Tick:
        database, ids = self.parts.loop_database, self.parts.ids
        limit = self.parts.settings.loops.batch_max
        begun = await self._intake.write_begun(now)
        given_up = self._count_ended(await abandoned_work.give_up(database, limit, self._terms, ids, now))
        closed = await abandoned_work.close_jobs(database, limit, now)
        swept = self._count_ended(await abandoned_work.sweep(database, limit, self._terms, ids, now))
        done = begun + given_up + closed + swept
        return Tick(seen=done, applied=done, more=limit in (given_up, swept))

    def _count_ended(self, plan: WorkPlan) -> int:
        self.parts.metrics.dispatch.ended(plan.ended_counts)
        return len(plan.states)
