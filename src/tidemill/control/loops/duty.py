"""Duties: periodic work that one process of the pool does at a time, such as the daily backup.

A duty is taken with a lease, which is extended during the work. If the lease is lost all the same (we slept, the
network broke), the work is cancelled: another process does it.
"""

import asyncio
from abc import abstractmethod
from typing import ClassVar

import structlog

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import DatabaseFault
from tidemill.store.operations import duties

log = structlog.get_logger()

_LOOK_S = 60.0
"""How often a process looks whether a duty is due."""


class Duty(Loop):
    """A loop whose tick is done by one process of the pool, once a period."""

    retry_s: ClassVar[float] = 60.0
    """How long all processes wait before they try a failed duty again."""

    def __init__(self, parts: Parts, *, period_s: float) -> None:
        super().__init__(parts, every_s=min(period_s, _LOOK_S))
        self._period_us = int(period_s * SECOND)
        self._lease_us = int(parts.settings.loops.lease_s * SECOND)

    @abstractmethod
    async def perform(self, now: Instant) -> int:
        """Do the work. Answers how many items it changed."""

    async def tick(self, now: Instant) -> Tick:
        database, holder = self.parts.loop_database, self.parts.process_id
        lease = await duties.take(
            database, self.name, holder, every_us=self._period_us, lease_us=self._lease_us, now=now
        )
        if lease is None:
            return Tick()
        # If the work fails, record it as done so long ago that it is due again after `retry_s`.
        done_at = Instant(now - self._period_us + min(int(self.retry_s * SECOND), self._period_us))
        try:
            applied = await self._perform_while_held(lease, now)
            done_at = now
        finally:
            await duties.finish(database, lease, done_at=done_at)
        return Tick(seen=1, applied=applied)

    async def _perform_while_held(self, lease: duties.DutyLease, now: Instant) -> int:
        work = asyncio.create_task(self.perform(now))
        keeping = asyncio.create_task(self._keep_lease(lease))
        try:
            await asyncio.wait((work, keeping), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise DatabaseFault(f"The lease of the duty {lease.name} was lost; the work was cancelled.")
            return work.result()
        finally:
            keeping.cancel()
            work.cancel()
            await asyncio.gather(work, keeping, return_exceptions=True)

    async def _keep_lease(self, lease: duties.DutyLease) -> None:
        """Extend the lease; returns when it is lost. A fault alone does not end it before it has run out."""
        third_s = self._lease_us / SECOND / 3
        missed = 0
        while missed < 2:
            await asyncio.sleep(third_s)
            try:
                if not await duties.extend(
                    self.parts.loop_database, lease, lease_us=self._lease_us, now=self.parts.clock.now()
                ):
                    return
                missed = 0
            except DatabaseFault as fault:
                missed += 1
                log.warning("lease not extended", duty=lease.name, cause=str(fault))
