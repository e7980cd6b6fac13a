"""`tidemill events`: what has happened in the pool, and what happens now. It reads the database itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Annotated

import typer

from tidemill.cli.client.local_pool import connected, load_configuration, running_urls
from tidemill.cli.terminal.output import AsJson, CommandRefused, print_json, print_line
from tidemill.core.clock import as_datetime
from tidemill.core.events.log import LOG_START, Cursor, RecordedEvent
from tidemill.core.faults import DatabaseFault, NotRunning
from tidemill.core.settings import Settings
from tidemill.store.events import events as log
from tidemill.store.query import Connection

_BATCH = 500
_POLL_S = 1.0
_PATIENCE_S = 15.0
"""How long a reader waits for a database that went away, as in a restart."""


def events(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep on showing new ones.")] = False,
    after: Annotated[str, typer.Option(help="Begin behind this cursor.")] = "start",
    limit: Annotated[int | None, typer.Option(min=1, help="Show at most so many.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the pool's events, oldest first."""
    cursor = LOG_START if after == "start" else Cursor.parse(after)
    if cursor is None:
        raise CommandRefused(f"{after} is not a cursor: leave it out to begin at the start.")
    with suppress(KeyboardInterrupt):
        asyncio.run(_show(load_configuration().settings, cursor, follow, limit, _print_json if as_json else _print))


async def _show(
    settings: Settings, after: Cursor, follow: bool, limit: int | None, show: Callable[[RecordedEvent], None]
) -> None:
    count = 0
    source = _followed(settings, after) if follow else _read(settings, after)
    async for event in source:
        show(event)
        count += 1
        if count == limit:
            return


async def _followed(settings: Settings, after: Cursor) -> AsyncIterator[RecordedEvent]:
    """Follow the log; continue at the same cursor when the database comes back."""
    quiet_since = asyncio.get_running_loop().time()
    while True:
        try:
            async for event in _read(settings, after):
                after = event.cursor
                yield event
            quiet_since = asyncio.get_running_loop().time()
        except DatabaseFault as fault:
            if asyncio.get_running_loop().time() - quiet_since > _PATIENCE_S:
                raise NotRunning("The pool has stopped: start it with `tidemill up`, and follow again.") from fault
        await asyncio.sleep(_POLL_S)


async def _read(settings: Settings, after: Cursor) -> AsyncIterator[RecordedEvent]:
    async with connected(running_urls(settings).program) as connection:
        while batch := await _batch(connection, after):
            for event in batch:
                yield event
            after = batch[-1].cursor


async def _batch(connection: Connection, after: Cursor) -> list[RecordedEvent]:
    return list(await log.read(connection, after, _BATCH))


def _print_json(event: RecordedEvent) -> None:
    print_json(
        {
            "cursor": str(event.cursor),
            "id": str(event.id),
            "at": as_datetime(event.at).isoformat(),
            "kind": event.kind,
            "subject": event.subject,
            "body": event.body,
        }
    )


def _print(event: RecordedEvent) -> None:
    body = "  ".join(f"{name}={value}" for name, value in event.body.items() if f":{value}" not in event.subject)
    print_line(f"{as_datetime(event.at):%Y-%m-%d %H:%M:%S}  {event.kind:<20}  {event.subject}  {body}")
