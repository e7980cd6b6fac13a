"""Housekeeping: periodic work that every pool needs. No switch stops it."""

from collections.abc import Sequence

import structlog

from tidemill.control.loops.duty import Duty
from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import DAY, SECOND, Instant, Observation
from tidemill.core.events.log import ClockAlarm
from tidemill.core.ledger.posting import OLDEST_US
from tidemill.store import partitions
from tidemill.store.accounts import quotas
from tidemill.store.clock import DatabaseClock
from tidemill.store.events import events
from tidemill.store.jobs import jobs, tasks
from tidemill.store.operations import idempotent_answers, processes

log = structlog.get_logger()

_ALARMS = {Observation.STEPPED, Observation.ADOPTED, Observation.RETURNED}


async def make_partitions(parts: Parts, now: Instant) -> Sequence[str]:
    """Make missing partitions, from the oldest possible id until as far ahead as the settings say."""
    until = Instant(now + parts.settings.database.partitions_ahead_days * DAY)
    async with parts.loop_database.connection() as connection:
        return await partitions.create(connection, Instant(now - OLDEST_US), until, now)


class AnnounceLoop(Loop):
    """Tells every process that events were appended, once for all commits since the last time."""

    name = "announce"
    needs_trusted_clock = False

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._appended = False

    def appended(self) -> None:
        self._appended = True

    async def tick(self, now: Instant) -> Tick:
        if not self._appended:
            return Tick()
        self._appended = False
        async with self.parts.loop_database.connection() as connection:
            await events.wake(connection)
        return Tick(seen=1, applied=1)


class ClockLoop(Loop):
    """Samples the database's clock. A step becomes an event and shows in /readyz; leases wait until it is over."""

    name = "clock"
    needs_trusted_clock = False

    def __init__(self, parts: Parts, clock: DatabaseClock) -> None:
        super().__init__(parts, every_s=parts.settings.clock.sample_every_s)
        self._clock = clock
        parts.metrics.clock_trusted.set(clock.trusted)

    async def tick(self, now: Instant) -> Tick:
        observation, difference_us = await self._clock.sample(self.parts.loop_database)
        self.parts.metrics.clock_difference.set(difference_us / SECOND)
        self.parts.metrics.clock_trusted.set(self._clock.trusted)
        if observation is not Observation.STEADY:
            log.warning("clock", observation=observation.value, difference_s=difference_us / SECOND)
        if observation is Observation.ADOPTED:
            await make_partitions(self.parts, self._clock.now())
        if observation in _ALARMS:
            alarm = ClockAlarm(self.parts.process_id, observation.name.lower(), difference_us / SECOND)
            async with self.parts.loop_database.transaction() as transaction:
                await events.append(transaction, [alarm], self.parts.ids, now)
        return Tick(seen=1)


class HeartbeatLoop(Loop):
    """Says that this process is alive."""

    name = "heartbeat"
    needs_trusted_clock = False

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.process_heartbeat_s)

    async def tick(self, now: Instant) -> Tick:
        await processes.seen(self.parts.loop_database, self.parts.process_id, self.parts.ids, now)
        return Tick(seen=1)


class LostProcessLoop(Loop):
    """Marks silent processes as lost. Only silence while we listened counts: we listen a whole period first."""

    name = "lost_processes"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=parts.settings.loops.process_heartbeat_s)
        self._lost_after_us = int(parts.settings.loops.process_lost_s * SECOND)
        self._listening_since = self._heard_at = parts.clock.now()

    async def tick(self, now: Instant) -> Tick:
        if not 0 <= now - self._heard_at <= self._lost_after_us:  # we were away, or the clock was set
            self._listening_since = now
        self._heard_at = now
        if now - self._listening_since < self._lost_after_us:
            return Tick()
        batch_max = self.parts.settings.loops.batch_max
        silent_since = Instant(now - self._lost_after_us)
        lost = await processes.lose(self.parts.loop_database, silent_since, batch_max, self.parts.ids, now)
        for process_id in lost:
            log.warning("process lost", process_id=str(process_id))
        return Tick(seen=len(lost), applied=len(lost), more=len(lost) == batch_max)


class ForgettingLoop(Loop):
    """Forgets what is no longer needed: old answers to Idempotency-Keys, old processes, full buckets of limits, jobs
    that nobody confirmed."""

    name = "forgetting"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, every_s=60.0)
        self._keep_answers_us = int(parts.settings.http.idempotency_keep_s * SECOND)
        self._keep_jobs_us = int(parts.settings.market.unconfirmed_keep_s * SECOND)
        self._keep_processes_us = int(parts.settings.loops.process_keep_s * SECOND)

    async def tick(self, now: Instant) -> Tick:
        batch_max = self.parts.settings.loops.batch_max
        database = self.parts.loop_database
        answers = await idempotent_answers.forget(database, Instant(now - self._keep_answers_us), batch_max)
        old_processes = await processes.forget(database, Instant(now - self._keep_processes_us), batch_max)
        buckets = await quotas.forget(database, now, batch_max)
        unconfirmed = await jobs.forget_unconfirmed(database, Instant(now - self._keep_jobs_us), batch_max)
        counts = (answers, old_processes, buckets, unconfirmed)
        return Tick(seen=sum(counts), applied=sum(counts), more=batch_max in counts)


class DemandDuty(Duty):
    """Forgets what tasks demanded once no open task does."""

    name = "demands"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=3600.0)

    async def perform(self, now: Instant) -> int:
        batch_max = self.parts.settings.loops.batch_max
        return await tasks.forget_demands(self.parts.loop_database, Instant(now - DAY), batch_max)


class PartitionDuty(Duty):
    """Makes partitions long before a row needs them."""

    name = "partitions"

    def __init__(self, parts: Parts) -> None:
        super().__init__(parts, period_s=3600.0)

    async def perform(self, now: Instant) -> int:
        created = await make_partitions(self.parts, now)
        if created:
            log.info("partitions made", names=created)
        return len(created)
