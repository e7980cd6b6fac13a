"""The log of events: appended in the transaction of the change they report, read after a cursor."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, Cursor, Event, RecordedEvent
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.store.database import Database, faults
from tidemill.store.query import Connection, Query

CHANNEL = "tidemill_events"

_APPEND = Query("events/events/append")
_READ = Query("events/events/read", RecordedEvent)
_HORIZON = Query("events/events/horizon", Cursor)
_RECENT = Query("events/events/recent", Cursor)


async def append(transaction: Connection, events: Sequence[Event], ids: Ids, now: Instant) -> None:
    """Append events; they become visible with the caller's commit, or never."""
    assert transaction.is_in_transaction(), "an event is appended in the transaction of its state change"
    await _APPEND.run(
        transaction,
        now=now,
        ids=[ids.new(now) for _ in events],
        kinds=[event.kind for event in events],
        subjects=[event.subject for event in events],
        bodies=[event.body() for event in events],
        publics=[event.public for event in events],
        audited=[event.audited for event in events],
        accounts=["{" + ",".join(map(str, event.accounts)) + "}" for event in events],
    )
    transaction.mark_appended(account for event in events for account in event.accounts)


async def read(connection: Connection, after: Cursor, limit: int) -> Sequence[RecordedEvent]:
    """The next events after a cursor. An empty list means that there is nothing more yet."""
    return await _READ.rows(connection, **after._asdict(), limit=limit)


async def horizon(connection: Connection) -> Cursor:
    """The cursor for a reader who wants only future events."""
    return await _HORIZON.only(connection)


async def recent(connection: Connection, count: int) -> Cursor:
    """The cursor before the last `count` events, or the start of a short log."""
    return await _RECENT.row(connection, count=count) or LOG_START


async def wake(connection: Connection) -> None:
    """Tell every process that there are new events. Never inside the transaction that wrote them."""
    await connection.execute(f"NOTIFY {CHANNEL}")


async def listen(
    database: Database,
    opened: Callable[[Connection], Awaitable[None]],
    woken: Callable[[], None],
    retry_s: float,
) -> None:
    """Call `woken` for every announcement, until cancelled. A broken connection is opened again; each begins with
    `opened`."""
    while True:
        try:
            connection = await database.own_connection()
        except DatabaseFault:
            await asyncio.sleep(retry_s)
            continue
        closed = asyncio.Event()
        connection.add_termination_listener(lambda *_, closed=closed: closed.set())
        try:
            with faults():
                await opened(connection)
                await connection.add_listener(CHANNEL, lambda *_: woken())
            await closed.wait()
        except DatabaseFault:
            await asyncio.sleep(retry_s)
        finally:
            connection.terminate()
