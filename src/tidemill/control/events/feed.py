"""The newest events, kept in memory for every reader of this process.

One tail reads the log for all of them. A reader keeps only its cursor: it gets recent events from memory and older ones
from the database, so a slow reader costs no memory and misses nothing.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from uuid import UUID

from tidemill.control.loops.frame import Loop, Tick
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.events.log import LOG_START, Cursor, RecordedEvent
from tidemill.store.database import Database
from tidemill.store.events import events


class EventFeed(Loop):
    """A loop that follows the log, and serves readers. Memory has all events between `_since` and `_position`."""

    name = "events"
    needs_trusted_clock = False

    def __init__(self, parts: Parts, for_readers: Database) -> None:
        super().__init__(parts, every_s=parts.settings.loops.poll_s)
        self._for_readers = for_readers
        self._rendered: dict[UUID, str] = {}
        self._keep = parts.settings.events.keep_in_memory
        self._batch_max = parts.settings.events.batch_max
        self._recent: list[RecordedEvent] = []
        self._since = LOG_START
        self._position: Cursor | None = None
        self._arrived = asyncio.Event()
        self.on_events: Callable[[Sequence[RecordedEvent]], None] = lambda _: None
        """Called with new events as they arrive."""

    async def tick(self, now: Instant) -> Tick:
        async with self.parts.loop_database.connection() as connection:
            if self._position is None:
                self._since = self._position = await events.horizon(connection)
            batch = await events.read(connection, self._position, self._batch_max)
        if batch:
            self._take(batch)
        return Tick(seen=len(batch), applied=len(batch), more=len(batch) == self._batch_max)

    async def newest(self) -> Cursor:
        """The cursor of a reader who wants only what comes next."""
        async with self._for_readers.connection() as connection:
            return await events.horizon(connection)

    async def recent(self, count: int) -> Cursor:
        """The cursor of a reader who wants the last few events, and then what comes next."""
        async with self._for_readers.connection() as connection:
            return await events.recent(connection, count)

    async def read(self, after: Cursor, limit: int) -> Sequence[RecordedEvent]:
        """The events after a cursor, not filtered by reader."""
        if self._position is not None and after >= self._since:
            start = bisect_right(self._recent, after, key=lambda event: event.cursor)
            return self._recent[start : start + limit]
        async with self._for_readers.connection() as connection:
            return await events.read(connection, after, limit)

    def shown(self, event: RecordedEvent, render: Callable[[RecordedEvent], str]) -> str:
        """An event as streams show it, rendered once for all of them."""
        text = self._rendered.get(event.id)
        if text is None:
            if len(self._rendered) >= self._keep:
                self._rendered.clear()
            text = self._rendered[event.id] = render(event)
        return text

    @property
    def arrival(self) -> asyncio.Event:
        """Set when more events arrive. Take it before reading, so that nothing arrives unnoticed in between."""
        return self._arrived

    def _take(self, batch: Sequence[RecordedEvent]) -> None:
        self._recent.extend(batch)
        self._position = batch[-1].cursor
        if len(self._recent) > 2 * self._keep:
            self._since = self._recent[-self._keep - 1].cursor
            del self._recent[: -self._keep]
        self.on_events(batch)
        arrived, self._arrived = self._arrived, asyncio.Event()
        arrived.set()
