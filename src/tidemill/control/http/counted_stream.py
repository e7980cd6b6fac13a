"""A stream of server-sent events that is counted for as long as it is sent.

The check for room and the count happen in one step, without an await in between. So no more streams are let in than
allowed, however many come at once.
"""

from collections import Counter
from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from tidemill.control.context import Control
from tidemill.control.http.problems import RouteRefused
from tidemill.control.http.statuses import RequestRefusal
from tidemill.core.accounts.roles import Caller

FREE_PART = 8
"""One reader may have this part of the streams that others leave, and no more than the setting allows. So a few readers
cannot take all of them, and the next one finds some."""

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class CountedStream(StreamingResponse):
    """It is counted for the account of its reader, or for the address of a stranger."""

    def __init__(self, control: Control, caller: Caller, address: str, content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type="text/event-stream", headers=_HEADERS)
        self._control, self._caller, self._address = control, caller, address
        self._reader_key = control.limits.whose_account(caller, address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        control = self._control
        check_room(control, self._caller, self._address)
        control.streams[self._reader_key] += 1
        control.metrics.event_readers.set(control.streams.total())
        try:
            await super().__call__(scope, receive, send)
        finally:
            control.streams -= Counter({self._reader_key: 1})  # drops readers with none left
            control.metrics.event_readers.set(control.streams.total())


def check_room(control: Control, caller: Caller, address: str) -> None:
    """Refuse a reader who has too many streams, and everybody when there are too many; operators can always read."""
    http, open_streams = control.settings.http, control.streams
    free = http.event_streams_max - open_streams.total()
    of_theirs = open_streams[control.limits.whose_account(caller, address)]
    most = min(http.event_streams_per_caller_max, max(1, (free + of_theirs) // FREE_PART))
    if not caller.is_operator and (free <= 0 or of_theirs >= most):
        raise RouteRefused(RequestRefusal.TOO_MANY_STREAMS)
