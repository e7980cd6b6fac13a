"""The body of an upload, taken straight from its connection.

uvicorn and its parser copy a body five times on its way to the application, in small chunks. For a large one whose
length was announced the connection is turned over to us instead, once the application wants the body: bytes are read
into two places of memory, in turns, and the connection goes back when the last one is there. Deadlines, pace and the
end of a connection stay the business of the protocol, which is told of everything; what came before a connection broke
is handed out first.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, cast

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

BODY = "tidemill.body"
"""The key in a request's state."""

LEAST_BYTES = 1024 * 1024
"""Smaller bodies are not worth the trouble."""

_PLACE_BYTES = 256 * 1024


class Connection(Protocol):
    """What this needs of the protocol whose connection it takes."""

    def turn_over(self, taker: asyncio.BufferedProtocol) -> int:
        """Let somebody else read the rest of the body. Answers how much of it has come so far."""

    def came(self, size: int) -> None:
        """So many bytes of the body came."""

    def body_is_over(self) -> None:
        """All of the body came: what comes now is another request."""

    def connection_lost(self, exc: Exception | None) -> None: ...

    def eof_received(self) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class TakenBody(asyncio.BufferedProtocol):
    """The body of one request. Nothing happens to it unless somebody asks for its pieces."""

    def __init__(self, connection: Connection, cycle: RequestResponseCycle, length_bytes: int) -> None:
        self._connection = connection
        self._cycle = cycle
        self._left = length_bytes
        self._place, self._other = memoryview(b""), memoryview(b"")
        self._filled = 0
        self._ready = asyncio.Event()

    async def pieces(self) -> AsyncIterator[memoryview]:
        """All that comes. A piece is there until the next is asked for. Ends early where the connection breaks."""
        first = cast("Message", await self._cycle.receive())
        more = first.get("more_body", False)
        if more:
            self._begin()
        yield memoryview(first.get("body", self._cycle.body))  # of a broken connection, what nobody has taken
        while more and (piece := await self._next()):
            yield piece

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._cycle.response_complete:
            self._filled = 0  # nobody wants the rest
        return self._place[self._filled : self._filled + self._left]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        self._left -= nbytes
        self._connection.came(nbytes)
        if self._left == 0:
            self._ready.set()
            self._connection.body_is_over()
        elif self._filled == len(self._place) and not self._cycle.response_complete:
            self._ready.set()
            self._cycle.flow.pause_reading()

    def eof_received(self) -> None:
        self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)
        self._ready.set()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def _begin(self) -> None:
        self._place, self._other = memoryview(bytearray(_PLACE_BYTES)), memoryview(bytearray(_PLACE_BYTES))
        self._left -= self._connection.turn_over(self)

    async def _next(self) -> memoryview:
        """What came until a place was full or nothing more comes; empty after the end."""
        await self._ready.wait()
        piece = self._place[: self._filled]
        self._place, self._other = self._other, self._place
        self._filled = 0
        if self._left and not self._cycle.disconnected:
            self._ready.clear()
            self._cycle.flow.resume_reading()
        return piece
