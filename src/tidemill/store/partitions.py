"""Partitions of the tables that grow for ever, made ahead of time."""

from collections.abc import Sequence

from tidemill.core.clock import Instant
from tidemill.store.query import Connection, Query

_CREATE = Query("partitions/create", str)


async def create(connection: Connection, since: Instant, until: Instant, now: Instant) -> Sequence[str]:
    """Make every missing month between two instants, and every missing day around now. Returns the new partitions'
    names."""
    return await _CREATE.rows(connection, since=since, until=until, now=now)
