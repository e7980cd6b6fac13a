"""Periodic work for the ledger: release expired holds, and write checkpoints of long sums."""

from tidemill.control.loops.duty import Duty
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.ledger import Release
from tidemill.store.ledger import ledger

_CHECKPOINT_EVERY_S = 600.0


class HoldExpiryLoop(Loop):
    """Releases expired holds. They cannot be captured anyway; this makes their money available again."""

    name = "hold_expiry"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        async with self.parts.loop_database.connection() as connection:
            expired = await ledger.expired_holds(connection, now, batch_max)
        if not expired:
            return Tick()
        releases = [Release(self.parts.ids.new(now), hold_id, "expired") for hold_id in expired]
        outcomes = await self.parts.poster.post(releases)
        released = sum(outcome.refusal is None for outcome in outcomes)
        return Tick(seen=len(expired), applied=released, more=len(expired) == batch_max)


class CheckpointDuty(Duty):
    """Writes checkpoints of accounts without a floor, so that a balance sums only later entries."""

    name = "ledger_checkpoints"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=_CHECKPOINT_EVERY_S)

    async def perform(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            return await ledger.write_checkpoints(connection, now)
