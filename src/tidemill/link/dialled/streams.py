"""Channels of a link as streams that tasks read from and write to.

A stream that nobody reads holds one window of bytes, since credit is given back as they are read. When the link is
lost, every stream ends with the code `link_lost`.
"""

import asyncio
from collections import deque

from tidemill.core.faults import Fault
from tidemill.link.dialled.connection import DialledConnection
from tidemill.wire.channels import ChannelEnded, ChannelEvent, ChannelHasRoom, ChannelOpened, ChannelReceived

LINK_LOST = "link_lost"


class StreamBroken(Fault):
    """The other side, or the network, ended a stream before its time."""

    code = "stream_broken"


class DialledStream:
    """One channel. One task reads it and one writes it."""

    def __init__(self, connection: DialledConnection, number: int) -> None:
        self.number = number
        self._connection = connection
        self._received: deque[bytes] = deque()
        self._ended = False
        self._code = ""
        self._readable = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    async def read(self) -> bytes:
        """Some bytes; none at the end."""
        while not self._received and not self._ended:
            self._readable.clear()
            await self._readable.wait()
        self._expect_whole()
        if not self._received:
            return b""
        chunk = self._received.popleft()
        self._connection.link.channels.use_up(self.number, len(chunk))
        self._connection.flush()
        return chunk

    async def write(self, content: bytes) -> None:
        """Send bytes, when there is room for them."""
        await self._room.wait()
        self._expect_whole()
        if not self._connection.link.channels.write(self.number, content):
            self._room.clear()
        self._connection.flush()

    def end(self, code: str = "") -> None:
        """Send no more; with a code, end both directions at once."""
        self._connection.link.channels.end(self.number, code)
        self._connection.flush()

    def notice(self, event: ChannelEvent) -> None:
        match event:
            case ChannelReceived(_, chunk):
                self._received.append(chunk)
            case ChannelHasRoom():
                self._room.set()
            case ChannelEnded(_, code):
                self.over(code)
        self._readable.set()

    def over(self, code: str) -> None:
        """Note that no more bytes come. With a code, none go either, and those that came are discarded."""
        self._ended = True
        self._code = code
        self._readable.set()
        if code:
            self._room.set()

    def _expect_whole(self) -> None:
        if self._code:
            raise StreamBroken(f"A stream to the pool was ended with the code {self._code}: it is tried again later.")


class DialledStreams:
    """The streams of one link."""

    def __init__(self, connection: DialledConnection) -> None:
        self._connection = connection
        self._streams: dict[int, DialledStream] = {}

    def open(self, purpose: str, about: bytes) -> DialledStream | None:
        """A new stream, unless there are too many."""
        number = self._connection.link.channels.open(purpose, about)
        if number is None:
            return None
        stream = self._streams[number] = DialledStream(self._connection, number)
        self._connection.flush()
        return stream

    def close(self, stream: DialledStream) -> None:
        """Forget a stream; one that is not at its end is cancelled."""
        self._streams.pop(stream.number, None)
        stream.end("cancelled")

    def notice(self, event: ChannelEvent) -> None:
        """Pass an event on to its stream. Channels that the pool opens are refused: nothing here serves them."""
        if isinstance(event, ChannelOpened):
            self._connection.link.channels.end(event.channel, "unknown_purpose")
            self._connection.flush()
        elif stream := self._streams.get(event.channel):
            stream.notice(event)

    def lose(self) -> None:
        """The link is over."""
        for stream in self._streams.values():
            stream.over(LINK_LOST)
        self._streams.clear()
