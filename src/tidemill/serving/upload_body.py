"""The body of an upload, taken from its connection: every byte that came, also when the connection broke.

uvicorn and its parser copy a body five times on its way to the application, in small chunks. For a large one whose
length was announced the connection is turned over to us instead, once the application wants the body: bytes are read
into three places of memory, in turns, and the connection goes back when the last one is there. Nobody copies them
again: they lie as a disk takes them. Deadlines, pace and the end of a connection stay the business of the protocol,
which is told of everything.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import cycle
from mmap import mmap
from typing import Protocol, cast

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

BODY = "tidemill.body"
"""The key in a request's state."""

LEAST_BYTES = 1024 * 1024
"""Smaller bodies are not worth the trouble."""

PLACE_BYTES = 6 * 1024 * 1024
"""What is read before somebody takes it: with fewer turns an upload is quicker, where the disk is quick."""

SMALL_PLACE_BYTES = 1024 * 1024
_PLACES = 3
"""One is filled, one was handed out, and of the one before the last bytes may still be on their way to the disk."""

LARGE_BODIES = 2
"""So many bodies at a time have large places, which is all that a disk needs: memory stays bounded if more come."""

_DROPPED_BYTES = 64 * 1024

_HAND_OUT_S = 1.0
"""What comes slowly is handed out so often, so that it is on the disk soon, and whoever asks sees it come."""


class UploadBody(Protocol):
    """What somebody sends with a request."""

    def pieces(self, at: int) -> AsyncIterator[memoryview]:
        """All that comes, from the offset `at` of the whole on. A piece is there until the next but one is asked for.
        Ends early where the connection breaks."""


class BodyBuffers:
    """How many bodies have large places just now, in one process."""

    def __init__(self) -> None:
        self._large = 0

    def take(self) -> int:
        """The size of a place for one more body."""
        if self._large == LARGE_BODIES:
            return SMALL_PLACE_BYTES
        self._large += 1
        return PLACE_BYTES

    def give_back(self, place_bytes: int) -> None:
        self._large -= place_bytes == PLACE_BYTES


class BodyConnection(Protocol):
    """What this needs of the protocol whose connection it takes."""

    buffers: BodyBuffers

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


class BufferedBody:
    """A small body, or one of unknown length, as uvicorn has it. uvicorn drops what it still has when a connection
    breaks; here it counts."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    async def pieces(self, at: int) -> AsyncIterator[memoryview]:
        more = True
        while more:
            message = cast("Message", await self._cycle.receive())
            more = message.get("more_body", False)
            yield memoryview(message.get("body", self._cycle.body))


class ConnectionBody(asyncio.BufferedProtocol):
    """The body of one request. Nothing happens to it unless somebody asks for its pieces.

    A byte lies in its place as it will in the whole, counted from a multiple of the place's size: so it begins at a
    block of memory where it begins at a block of the file.
    """

    def __init__(self, connection: BodyConnection, cycle: RequestResponseCycle, length_bytes: int) -> None:
        self._connection = connection
        self._cycle = cycle
        self._left = length_bytes
        self._places: Iterator[memoryview] = iter(())
        self._place = memoryview(b"")
        self._first = self._filled = 0
        self._ready = asyncio.Event()

    async def pieces(self, at: int) -> AsyncIterator[memoryview]:
        first = cast("Message", await self._cycle.receive())
        more = first.get("more_body", False)
        came = memoryview(first.get("body", self._cycle.body))  # of a broken connection, what nobody has taken
        if not more:
            yield came
            return
        place_bytes = self._connection.buffers.take()
        try:
            self._begin(place_bytes, at + len(came))
            yield came
            while piece := await self._next():
                yield piece
        finally:
            self._let_go(place_bytes)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._cycle.response_complete:
            self._filled = self._first  # nobody wants the rest
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

    def _begin(self, place_bytes: int, at: int) -> None:
        self._places = cycle([memoryview(mmap(-1, place_bytes)) for _ in range(_PLACES)])
        self._place = next(self._places)
        self._first = self._filled = at % place_bytes
        self._left -= self._connection.turn_over(self)

    def _let_go(self, place_bytes: int) -> None:
        """A connection that waits for its next request, or drops what nobody wants, needs no large places."""
        self._connection.buffers.give_back(place_bytes)
        self._places = iter(())
        self._place, self._first, self._filled = memoryview(bytearray(_DROPPED_BYTES)), 0, 0

    async def _next(self) -> memoryview:
        """What came until a place was full, a while was over, or nothing more comes; empty after the end."""
        while not self._ready.is_set():
            try:
                async with asyncio.timeout(_HAND_OUT_S):
                    await self._ready.wait()
            except TimeoutError:
                if self._filled > self._first:
                    break
        piece = self._place[self._first : self._filled]
        self._place = next(self._places)
        self._first = self._filled = self._filled % len(self._place)
        if self._left and not self._cycle.disconnected:
            self._ready.clear()
            self._cycle.flow.resume_reading()
        return piece
