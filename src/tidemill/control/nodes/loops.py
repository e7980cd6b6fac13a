"""Looks after nodes: marks silent ones, frees links of lost processes, clears alerts, forgets old beats."""

import structlog

from tidemill.control.loops.duty import Duty
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import SECOND, Instant
from tidemill.core.nodes.health.silence import HealthRules
from tidemill.core.settings import Settings
from tidemill.store.nodes import node_alerts, node_health, presence, telemetry

log = structlog.get_logger()

TICK_S = 5.0
_TICKS_OF_SILENCE = 3


def tick_s(settings: Settings) -> float:
    """How often we look. Silence is counted in whole ticks, so several fit into the time until a node is offline: with
    one, a node that was heard just before a tick would count as silent for all of it."""
    return min(TICK_S, settings.link.offline_after_s / _TICKS_OF_SILENCE)


def health_rules(settings: Settings) -> HealthRules:
    link = settings.link
    return HealthRules(
        tick_us=int(tick_s(settings) * SECOND),
        beat_us=int(link.heartbeat_s * SECOND),
        offline_after_us=int(link.offline_after_s * SECOND),
    )


class NodeHealthLoop(Loop):
    """Counts how long the pool has listened and marks silent nodes as offline. Any number of copies count once."""

    name = "node_health"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=tick_s(parts.settings))
        self._rules = health_rules(parts.settings)

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        async with self.parts.loop_database.connection() as connection:
            freed = await presence.free(connection, batch_max)
        async with self.parts.loop_database.transaction() as transaction:
            ticked = await node_health.tick(transaction, self._rules, batch_max, self.parts.ids, now)
        if ticked.offline:
            log.warning("nodes offline", count=len(ticked.offline), first=str(ticked.offline[0]))
        marked = len(ticked.offline)
        return Tick(seen=freed + marked, applied=freed + marked, more=batch_max in (freed, marked))


class NodeAlertDuty(Duty):
    """Raises alerts that could not be seen when they began, and clears those that are over."""

    name = "node_alerts"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=60.0)

    async def perform(self, now: Instant) -> int:
        async with self.parts.loop_database.transaction() as transaction:
            await node_alerts.raise_claims(transaction, self.parts.ids, now)
            return await node_alerts.clear_over(transaction, self.parts.settings.loops.batch_max, self.parts.ids, now)


class TelemetryDuty(Duty):
    """Forgets the beats of nodes, a day at a time."""

    name = "telemetry"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=3600.0)
        self._keep_us = int(parts.settings.telemetry.keep_s * SECOND)

    async def perform(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            dropped = await telemetry.forget(connection, Instant(now - self._keep_us))
        if dropped:
            log.info("beats forgotten", days=len(dropped))
        return len(dropped)
