"""The audit trail in the database: one process at a time continues it, nobody changes it, anybody reads it.

The last act alone determines where reading the log continues. Acts follow from their events alone, so a lost tail is
written again as it was, as long as its events exist.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, RecordedEvent, TrailTipPublished
from tidemill.core.events.trail import NO_ACTS, Act, Damage, Flaw, TrailTip, chain_events
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.query import Connection, Query

NUMBER_MAX = 2**63 - 1


class _BoundsRow(NamedTuple):
    first: int
    last: int


class _UntoldRow(NamedTuple):
    id: UUID
    kind: str
    number: int


_LOCK = Query("events/trail/lock", bool)
_LAST = Query("events/trail/last", Act)
_WAITING = Query("events/trail/waiting", RecordedEvent)
_APPEND = Query("events/trail/append")
_READ = Query("events/trail/read", Act)
_LIST = Query("events/trail/list", Act)
_BOUNDS = Query("events/trail/bounds", _BoundsRow)
_PUBLISHED = Query("events/trail/published", TrailTip)
_LAST_PUBLISHED = Query("events/trail/last_published", str)
_UNLIKE = Query("events/trail/unlike", int)
_UNTOLD = Query("events/trail/untold", _UntoldRow)

_BATCH = 1000


async def continue_trail(database: Database, limit: int) -> int:
    """Chain the next audited events, if nobody else is doing so. Returns how many."""
    async with database.transaction() as transaction:
        if not await _LOCK.only(transaction):
            return 0
        last = await last_act(transaction)
        after = last.cursor if last else LOG_START
        waiting = await _WAITING.rows(transaction, **after._asdict(), limit=limit)
        acts = chain_events(last.tip if last else NO_ACTS, waiting)
        if acts:
            await _append(transaction, acts)
        return len(acts)


async def last_act(connection: Connection) -> Act | None:
    return await _LAST.row(connection)


async def tip(connection: Connection) -> TrailTip:
    """Where the trail ends now."""
    last = await last_act(connection)
    return last.tip if last else NO_ACTS


async def publish_tip(transaction: Connection, ids: Ids, now: Instant) -> TrailTip:
    """Publish the tip of the trail, unless it was published already. Returns it."""
    current = await tip(transaction)
    if current.at is not None and await _LAST_PUBLISHED.row(transaction) != current.sha256.hex():
        published = TrailTipPublished(current.number, current.sha256.hex(), current.at)
        await events.append(transaction, [published], ids, now)
    return current


async def published_tips(connection: Connection) -> Sequence[TrailTip]:
    """Every tip that was published in the log of events."""
    return await _PUBLISHED.rows(connection)


async def acts(connection: Connection, after: int | None = None, until: int = NUMBER_MAX) -> AsyncIterator[Act]:
    """The trail in order, a batch at a time. Rows before the first number, which should not exist, are included."""
    last_number = -(2**63) if after is None else after
    while batch := await _READ.rows(connection, after=last_number, until=until, limit=_BATCH):
        for act in batch:
            yield act
        last_number = batch[-1].number


async def listed(
    connection: Connection,
    *,
    kind: str | None = None,
    subject: str | None = None,
    before: int | None = None,
    limit: int = 100,
) -> Sequence[Act]:
    """Newest first; page on with the number of the last."""
    most = NUMBER_MAX if before is None else before
    return await _LIST.rows(connection, kind=kind, subject=subject, before=most, limit=limit)


async def bounds(connection: Connection, since: Instant, until: Instant) -> tuple[int, int]:
    """The first and the last number of a period. If there are none, the first is the larger one."""
    return await _BOUNDS.only(connection, since=since, until=until)


async def difference(connection: Connection) -> Flaw | None:
    """The first difference between an intact trail and the log of events."""
    number = await _UNLIKE.row(connection)
    if number is not None:
        return Flaw(Damage.REWRITTEN, number, f"Act {number} and the event it tells of say different things.")
    last = await last_act(connection)
    if last is None:
        return None
    untold = await _UNTOLD.row(connection, **last.cursor._asdict())
    if untold is None:
        return None
    sentence = f"The event {untold.id} ({untold.kind}) should be act {untold.number}, and no act tells of it."
    return Flaw(Damage.UNTOLD, untold.number, sentence)


async def _append(transaction: Connection, acts: Sequence[Act]) -> None:
    try:
        await _APPEND.run(transaction, **_columns(acts))
    except asyncpg.IntegrityConstraintViolationError as error:
        raise DatabaseFault(
            f"The audit trail cannot be continued ({error}): run `tidemill audit verify` to see what was done to it."
        ) from error


def _columns(acts: Sequence[Act]) -> dict[str, object]:
    return {
        "numbers": [act.number for act in acts],
        "generations": [act.cursor.generation for act in acts],
        "transactions": [act.cursor.transaction for act in acts],
        "event_numbers": [act.cursor.number for act in acts],
        "ats": [act.at for act in acts],
        "event_ids": [act.event_id for act in acts],
        "kinds": [act.kind for act in acts],
        "subjects": [act.subject for act in acts],
        "bodies": [act.body for act in acts],
        "previous": [act.previous for act in acts],
        "sha256s": [act.sha256 for act in acts],
    }
