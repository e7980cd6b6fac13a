"""The log of events, as a live stream or as pages, filtered by what the reader may see."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

import structlog
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, Field

from tidemill.control.context import CallerPart, Control, ControlPart, PageLimit, device_of
from tidemill.control.http.counted_stream import CountedStream, check_room
from tidemill.control.http.guard import GuardedRoute
from tidemill.control.http.problems import RouteRefused, documented
from tidemill.control.http.statuses import RequestRefusal
from tidemill.control.http.views import API, Timestamp, View
from tidemill.core.accounts.roles import Caller
from tidemill.core.accounts.sessions import SessionOrigin
from tidemill.core.events.log import LOG_START, Cursor, EventReader, RecordedEvent, may_read
from tidemill.core.events.sentences import sentence
from tidemill.core.faults import DatabaseFault

_RECENT = 100
"""How many events `after=recent` looks back."""

log = structlog.get_logger()

router = APIRouter(prefix=API, tags=["events"], route_class=GuardedRoute)

_STILL_IN_S = 10.0
"""How often a stream looks whether its reader may still read."""

_SCAN_MAX = 2_000
"""How many events one page may look through; a reader who may see few gets the rest with the next page."""


class EventView(View):
    cursor: Annotated[str, BeforeValidator(str)]
    id: UUID
    at: Timestamp
    kind: str
    subject: str
    body: dict[str, Any]
    sentence: str = Field("", description="The event in words, for people.")


@dataclass(frozen=True)
class _Page:
    """`after` continues behind this page."""

    items: Sequence[RecordedEvent]
    has_more: bool
    after: str


class EventPage(BaseModel):
    items: list[EventView]
    has_more: bool
    after: str


@router.get(
    "/events",
    response_model=EventPage,
    responses={
        200: {
            "description": "A stream of server-sent events, or a page if JSON is asked for.",
            "content": {"text/event-stream": {}},
        },
        **documented(400, 401, 422),
    },
)
async def events(
    request: Request,
    control: ControlPart,
    caller: CallerPart,
    most: PageLimit,
    after: Annotated[str | None, Query(description="A cursor, `start`, or `recent`.")] = None,
    last_event_id: Annotated[str | None, Header(description="Where a broken stream goes on.")] = None,
) -> Response | EventPage:
    """Follow what happens (`text/event-stream`, the default) or list it (`Accept: application/json`)."""
    cursor = await _parse(control, last_event_id or after)
    if "application/json" in request.headers.get("accept", ""):
        return _page_view(await page(control, caller.reader, cursor or LOG_START, most))
    device = device_of(request)
    check_room(control, caller, device.address)  # before asking the database; `CountedStream` checks when it counts
    start = cursor if cursor is not None else await control.feed.newest()
    return CountedStream(control, caller, device.address, stream(control, caller, device, start))


async def page(control: Control, reader: EventReader, after: Cursor, limit: int) -> _Page:
    """The next events this reader may see. Looks through a bounded number of events."""
    items: list[RecordedEvent] = []
    scanned = 0
    while scanned < _SCAN_MAX:
        batch = await control.feed.read(after, control.settings.events.batch_max)
        for event in batch:
            if may_read(reader, event):
                if len(items) == limit:
                    return _Page(items, has_more=True, after=str(after))
                items.append(event)
            after = event.cursor
        if len(batch) < control.settings.events.batch_max:
            return _Page(items, has_more=False, after=str(after))
        scanned += len(batch)
    return _Page(items, has_more=True, after=str(after))


async def stream(control: Control, caller: Caller, device: SessionOrigin, after: Cursor) -> AsyncIterator[str]:
    """Server-sent events from a cursor on, until the reader leaves, may no longer read, or we shut down."""
    reader, loop = caller.reader, asyncio.get_running_loop()
    checked_at = loop.time()
    yield "retry: 1000\n\n"
    while not control.draining.is_set():
        arrival = control.feed.arrival
        batch = await _read_patiently(control, after)
        concerned = any(caller.account_id in event.accounts for event in batch)
        if concerned or loop.time() - checked_at > _STILL_IN_S:
            if not await _still_in(control, caller, device):
                return
            checked_at = loop.time()
        if batch:
            after = batch[-1].cursor
            if text := "".join(control.feed.shown(event, _as_sse) for event in batch if may_read(reader, event)):
                yield text
        elif not await _either(arrival, control.draining, control.settings.http.event_heartbeat_s):
            # An id without content moves the reader's cursor past what it may not see.
            yield f": still here\nid: {after}\n\n"


async def _still_in(control: Control, caller: Caller, device: SessionOrigin) -> bool:
    """Whether the caller may still read. An ended session, revoked key or lost role ends it; a fault does not."""
    try:
        return await control.callers.still_in(caller, device.address, control.clock.now())
    except DatabaseFault:
        return True


async def _read_patiently(control: Control, after: Cursor) -> Sequence[RecordedEvent]:
    """Read events. If the database is away for a moment, answer none: that ends no stream."""
    try:
        return await control.feed.read(after, control.settings.events.batch_max)
    except DatabaseFault as fault:
        log.warning("stream waits", cause=str(fault))
        await asyncio.sleep(control.settings.loops.poll_s)
        return []


async def _either(first: asyncio.Event, second: asyncio.Event, timeout_s: float) -> bool:
    """Whether one of two events came in time."""
    waits = [asyncio.ensure_future(event.wait()) for event in (first, second)]
    try:
        done, _ = await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)
    finally:
        for wait in waits:
            wait.cancel()


async def _parse(control: Control, text: str | None) -> Cursor | None:
    if not text:
        return None
    if text == "recent":
        return await control.feed.recent(_RECENT)
    cursor = LOG_START if text == "start" else Cursor.parse(text)
    if cursor is None:
        raise RouteRefused(RequestRefusal.CURSOR_MALFORMED)
    return cursor


def _page_view(event_page: _Page) -> EventPage:
    return EventPage(
        items=[_view(event) for event in event_page.items],
        has_more=event_page.has_more,
        after=event_page.after or "",
    )


def _view(event: RecordedEvent) -> EventView:
    return EventView.model_validate(event).model_copy(update={"sentence": sentence(event.kind, event.body)})


def _as_sse(event: RecordedEvent) -> str:
    content = _view(event).model_dump_json()
    return f"id: {event.cursor}\ndata: {content}\n\n"
