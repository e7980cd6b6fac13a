"""The log of events: appended in the transaction of the change they report, read after a cursor."""

import asyncio
from collections.abc import Callable, Sequence

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, Cursor, Event, RecordedEvent
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.store.database import Database, faults
from tidemill.store.query import Connection, Query

CHANNEL = "tidemill_events"

_APPEND = Query("events/events/append")
_READ = Query("events/events/read")
_HORIZON = Query("events/events/horizon")
_RECENT = Query("events/events/recent")


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
    rows = await _READ.rows(
        connection, generation=after.generation, transaction=after.transaction, number=after.number, limit=limit
    )
    return [recorded(row) for row in rows]


async def horizon(connection: Connection) -> Cursor:
    """The cursor for a reader who wants only future events."""
    row = await _HORIZON.row(connection)
    assert row, "a migrated database has a pool"
    return Cursor.behind_transaction(row["generation"], row["transaction"])


async def recent(connection: Connection, count: int) -> Cursor:
    """The cursor before the last `count` events, or the start of a short log."""
    row = await _RECENT.row(connection, count=count)
    return Cursor(row["generation"], row["transaction"], row["number"]) if row else LOG_START


async def wake(connection: Connection) -> None:
    """Tell every process that there are new events. Never inside the transaction that wrote them."""
    await connection.execute(f"NOTIFY {CHANNEL}")


async def listen(database: Database, woken: Callable[[], None], retry_s: float) -> None:
    """Call `woken` for every announcement, until cancelled. A broken connection is opened again."""
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
                await connection.add_listener(CHANNEL, lambda *_: woken())
            await closed.wait()
        except DatabaseFault:
            await asyncio.sleep(retry_s)
        finally:
            connection.terminate()


def recorded(row: asyncpg.Record) -> RecordedEvent:
    return RecordedEvent(
        cursor=Cursor(row["generation"], row["transaction"], row["number"]),
        id=row["id"],
        at=row["at"],
        kind=row["kind"],
        subject=row["subject"],
        body=row["body"],
        public=row["public"],
        accounts=tuple(row["accounts"]),
    )
