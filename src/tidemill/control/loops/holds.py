"""Gives back holds whose time is over."""

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.ledger import Release
from tidemill.store import ledger


class HoldExpiryLoop(Loop):
    """Releases expired holds. Nothing can be captured from one anyway; this makes its money available again."""

    name = "hold_expiry"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        async with self.parts.database.connection() as connection:
            expired = await ledger.expired_holds(connection, now, batch_max)
        if not expired:
            return Tick()
        releases = [Release(self.parts.ids.new(now), hold_id, "expired") for hold_id in expired]
        async with self.parts.database.transaction() as transaction:
            outcomes = await ledger.post(transaction, releases, self.parts.ids, now)
        released = sum(outcome.refusal is None for outcome in outcomes)
        return Tick(seen=len(expired), applied=released, more=len(expired) == batch_max)
