"""A stream of server-sent events that is counted for as long as it is sent.

Whether there may be one more is asked in the same step that counts it: nothing is awaited in between, so that of many
that come at once no more are let in than there may be.
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
    """`who` it is counted for; `is_full` says whether there may be no more of theirs."""

    def __init__(self, control: Control, who: str, is_full: Callable[[], bool], content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type="text/event-stream", headers=_HEADERS)
        self._control, self._who, self._is_full = control, who, is_full

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        control = self._control
        if self._is_full():
            raise RouteRefused(RequestRefusal.TOO_MANY_STREAMS)
        control.streams[self._who] += 1
        control.metrics.event_readers.set(control.streams.total())
        try:
            await super().__call__(scope, receive, send)
        finally:
            control.streams -= Counter({self._who: 1})  # drops who has none left
            control.metrics.event_readers.set(control.streams.total())
