"""Duties: work that one process at a time does now and then, held by a lease with a growing token."""

from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.store.database import Database
from tidemill.store.query import Connection, Query


@dataclass(frozen=True)
class DutyLease:
    """A leased duty. Whoever has a larger token has taken over."""

    name: str
    token: int


_TAKE = Query("operations/duty/take", DutyLease)
_EXTEND = Query("operations/duty/extend", int)
_FINISH = Query("operations/duty/finish", int)


async def take(
    database: Database, name: str, holder: UUID, *, every_us: int, lease_us: int, now: Instant
) -> DutyLease | None:
    """Take a duty that was last done at least `every_us` ago. None if it is not due, or somebody has it."""
    async with database.connection() as connection:
        return await _TAKE.row(
            connection,
            name=name,
            holder=holder,
            now=now,
            expires_at=now + lease_us,
            due_since=now - every_us,
            implausible=now + 2 * lease_us,
        )


async def extend(database: Database, duty: DutyLease, *, lease_us: int, now: Instant) -> bool:
    """Extend the lease. False if somebody else has taken over, and we must stop."""
    async with database.connection() as connection:
        return await keep(connection, duty, lease_us=lease_us, now=now)


async def keep(transaction: Connection, duty: DutyLease, *, lease_us: int, now: Instant) -> bool:
    """Extend the lease in the caller's transaction: whoever takes over waits for its end. False if it is not ours."""
    return await _EXTEND.row(transaction, name=duty.name, token=duty.token, expires_at=now + lease_us) is not None


async def finish(database: Database, duty: DutyLease, *, done_at: Instant) -> bool:
    """Give a duty back; it is due again one period after `done_at`. False if it was no longer ours."""
    async with database.connection() as connection:
        return await _FINISH.row(connection, name=duty.name, token=duty.token, done_at=done_at) is not None
