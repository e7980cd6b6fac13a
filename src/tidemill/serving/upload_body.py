"""The body of an upload, read from its connection: every byte that arrived, also if the connection broke.

uvicorn and its parser copy a body five times on its way to the application, in small chunks. For a large body of known
length we take the connection over instead, once the application wants the body: we read into three buffers in turns,
and hand the connection back after the last byte. The bytes are not copied again: they are aligned as a disk takes them.
The protocol stays responsible for deadlines, pace and the end of the connection, and is told of everything.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import cycle
from mmap import mmap
from typing import Protocol, cast

from starlette.types import Message
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tidemill.serving.request_entry import BodyShare

BODY = "tidemill.body"
"""The key in a request's state."""

LEAST_BYTES = 1024 * 1024
"""Smaller bodies are not worth the trouble."""

BUFFER_BYTES = 6 * 1024 * 1024
"""How much is read before it is handed out: fewer turns make an upload quicker, where the disk is quick."""

SMALL_BUFFER_BYTES = 1024 * 1024
_BUFFERS = 3
"""One is being filled, one is handed out, and the one before may still be on its way to the disk."""

LARGE_BODIES = 2
"""How many bodies at a time have large buffers. A disk needs no more, and memory stays bounded."""

PLAIN_BYTES = 512 * 1024
"""What a body takes that comes the ordinary way: what uvicorn reads ahead, and the piece that is handed out."""

_FAST_PART = 0.5
"""Buffers that make an upload quicker take at most this part of a caller's memory: the rest is for more uploads."""

_DROPPED_BYTES = 64 * 1024

_HAND_OUT_S = 1.0
"""How often a slow body is handed out, so that it is on the disk soon, and its progress shows."""


class UploadBody(Protocol):
    """The body of a request."""

    def pieces(self, at: int) -> AsyncIterator[memoryview]:
        """All that arrives, beginning at the offset `at` of the whole. A piece is valid until the next but one is
        asked for. Ends early if the connection breaks."""


class BodyBuffers:
    """Hands out buffers, and counts the bodies of one process that have large ones."""

    def __init__(self) -> None:
        self._large = 0

    def take(self, share: BodyShare) -> int:
        """The size of the buffers for one more body; 0 if its caller may have none."""
        if self._large < LARGE_BODIES and share.grow(_BUFFERS * BUFFER_BYTES):
            self._large += 1
            return BUFFER_BYTES
        return SMALL_BUFFER_BYTES if share.grow(_BUFFERS * SMALL_BUFFER_BYTES, _FAST_PART) else 0

    def give_back(self, share: BodyShare, buffer_bytes: int) -> None:
        self._large -= buffer_bytes == BUFFER_BYTES
        share.shrink(_BUFFERS * buffer_bytes)


class BodyConnection(Protocol):
    """What a body needs of the protocol whose connection it takes over."""

    buffers: BodyBuffers

    def turn_over(self, taker: asyncio.BufferedProtocol) -> int:
        """Let `taker` read the rest of the body. Answers how much of it has come so far."""

    def count_received(self, size: int) -> None:
        """Count bytes of the body that were received."""

    def body_is_over(self) -> None:
        """The body is complete: what comes next is another request."""

    def connection_lost(self, exc: Exception | None) -> None: ...

    def eof_received(self) -> None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class BufferedBody:
    """A small body, or one of unknown length, as uvicorn has it. When a connection breaks, uvicorn drops what it still
    has; here it is kept."""

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    async def pieces(self, at: int) -> AsyncIterator[memoryview]:
        more = True
        while more:
            piece, more = await _received(self._cycle)
            yield piece


class ConnectionBody(asyncio.BufferedProtocol):
    """The body of one request. Nothing happens until somebody asks for its pieces.

    A byte's offset in its buffer is its offset in the whole, modulo the buffer's size: so blocks of the file are
    aligned with blocks of memory.
    """

    def __init__(
        self, connection: BodyConnection, cycle: RequestResponseCycle, length_bytes: int, share: BodyShare
    ) -> None:
        self._connection = connection
        self._cycle = cycle
        self._share = share
        self._left = length_bytes
        self._buffers: Iterator[memoryview] = iter(())
        self._buffer = memoryview(b"")
        self._first = self._filled = 0
        self._ready = asyncio.Event()

    async def pieces(self, at: int) -> AsyncIterator[memoryview]:
        first, more = await _received(self._cycle)
        buffer_bytes = self._connection.buffers.take(self._share) if more else 0
        if not buffer_bytes:
            yield first
            while more:
                piece, more = await _received(self._cycle)
                yield piece
            return
        try:
            self._begin(buffer_bytes, at + len(first))
            yield first
            while piece := await self._next():
                yield piece
        finally:
            self._let_go(buffer_bytes)

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._cycle.response_complete:
            self._filled = self._first  # nobody wants the rest
        return self._buffer[self._filled : self._filled + self._left]

    def buffer_updated(self, nbytes: int) -> None:
        self._filled += nbytes
        self._left -= nbytes
        self._connection.count_received(nbytes)
        if self._left == 0:
            self._ready.set()
            self._connection.body_is_over()
        elif self._filled == len(self._buffer) and not self._cycle.response_complete:
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

    def _begin(self, buffer_bytes: int, at: int) -> None:
        self._buffers = cycle([memoryview(mmap(-1, buffer_bytes)) for _ in range(_BUFFERS)])
        self._buffer = next(self._buffers)
        self._first = self._filled = at % buffer_bytes
        self._left -= self._connection.turn_over(self)

    def _let_go(self, buffer_bytes: int) -> None:
        """Release the large buffers: the next request, or a rest that nobody wants, does not need them."""
        self._connection.buffers.give_back(self._share, buffer_bytes)
        self._buffers = iter(())
        self._buffer, self._first, self._filled = memoryview(bytearray(_DROPPED_BYTES)), 0, 0

    async def _next(self) -> memoryview:
        """What arrived until a buffer was full, a second had passed, or the body ended; empty after that."""
        while not self._ready.is_set():
            try:
                async with asyncio.timeout(_HAND_OUT_S):
                    await self._ready.wait()
            except TimeoutError:
                if self._filled > self._first:
                    break
        piece = self._buffer[self._first : self._filled]
        self._buffer = next(self._buffers)
        self._first = self._filled = self._filled % len(self._buffer)
        if self._left and not self._cycle.disconnected:
            self._ready.clear()
            self._cycle.flow.resume_reading()
        return piece


async def _received(cycle: RequestResponseCycle) -> tuple[memoryview, bool]:
    """The next piece as uvicorn has it, and whether more will come. If the connection broke: what it still has."""
    message = cast("Message", await cycle.receive())
    return memoryview(message.get("body", cycle.body)), message.get("more_body", False)
