"""A stream of server-sent events that is counted for as long as it is sent.

The check for room and the count happen in one step, without an await in between. So no more streams are let in than
allowed, however many come at once.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tidemill.control.context import Control
from tidemill.control.http.problems import RouteRefused
from tidemill.control.http.statuses import RequestRefusal

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class CountedStream(StreamingResponse):
    """It is counted under `reader_key`; `is_full` says whether this reader may have no more."""

    def __init__(
        self, control: Control, reader_key: str, is_full: Callable[[], bool], content: AsyncIterator[str]
    ) -> None:
        super().__init__(content, media_type="text/event-stream", headers=_HEADERS)
        self._control, self._reader_key, self._is_full = control, reader_key, is_full

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        control = self._control
        if self._is_full():
            raise RouteRefused(RequestRefusal.TOO_MANY_STREAMS)
        control.streams[self._reader_key] += 1
        control.metrics.event_readers.set(control.streams.total())
        try:
            await super().__call__(scope, receive, send)
        finally:
            control.streams -= Counter({self._reader_key: 1})  # drops readers with none left
            control.metrics.event_readers.set(control.streams.total())
