"""Continues the audit trail as events come, and publishes its tip now and then. No switch stops either."""

from tidemill.control.loops.duty import Duty
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.store.events import trail
from tidemill.store.events.tips_file import add_tip


class TrailLoop(Loop):
    """Chains audited events. Any number of copies may run: a lock lets one work at a time."""

    name = "audit_trail"
    needs_trusted_clock = False

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        chained = await trail.continue_trail(self.parts.loop_database, batch_max)
        return Tick(seen=chained, applied=chained, more=chained == batch_max)


class TipDuty(Duty):
    """Publishes the tip, if it has moved: as an event for everybody, and as a line in the home of one process."""

    name = "audit_heads"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=parts.settings.trail.publish_every_s)

    async def perform(self, now: Instant) -> int:
        async with self.parts.loop_database.transaction() as transaction:
            tip = await trail.publish_tip(transaction, self.parts.ids, now)
        return 0 if tip.at is None else add_tip(self.parts.settings.home, tip)
