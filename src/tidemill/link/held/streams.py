"""Channels as streams: read what arrives, write with back-pressure, end, cancel.

Unread bytes give the peer no new credit, so at most one window of them waits here. If a channel ends before its time,
its readers and writers get an exception; nothing waits for ever.
"""

import asyncio
from collections import deque
from typing import Protocol
from uuid import UUID

from tidemill.core.faults import Fault
from tidemill.wire.channels import Channels


class ChannelBroken(Fault):
    """The channel is over before its time; `why` is the code that it was ended with."""

    code = "channel_broken"

    def __init__(self, why: str) -> None:
        super().__init__(f"The channel to the node was ended ({why}): try again, or look at the node.")
        self.why = why


class Carrier(Protocol):
    """The connection that a channel runs through."""

    @property
    def channels(self) -> Channels: ...

    def flush(self) -> None:
        """Send what can be sent."""


class HeldStream:
    """One channel of a node's link."""

    __slots__ = (
        "_broken",
        "_carrier",
        "_chunks",
        "_ended_here",
        "_ended_there",
        "_has_room",
        "_number",
        "_waiting",
        "about",
        "node_id",
        "purpose",
    )

    def __init__(self, carrier: Carrier, number: int, node_id: UUID, purpose: str, about: bytes) -> None:
        self.node_id = node_id
        self.purpose = purpose
        self.about = about
        self._carrier = carrier
        self._number = number
        self._chunks: deque[bytes] = deque()
        self._ended_here = self._ended_there = False
        self._has_room = True
        self._broken: str | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    async def read(self) -> bytes:
        """The next bytes, as they came; none when the other side has ended."""
        while not self._chunks:
            if self._broken is not None:
                raise ChannelBroken(self._broken)
            if self._ended_there:
                return b""
            await self._wait_for_change()
        chunk = self._chunks.popleft()
        self._carrier.channels.use_up(self._number, len(chunk))
        self._carrier.flush()
        return chunk

    async def write(self, content: bytes) -> None:
        """Send bytes; waits while too many are on their way."""
        assert not self._ended_here, "nothing is written behind the end"
        if self._broken is None:
            self._has_room = self._carrier.channels.write(self._number, content)
            self._carrier.flush()
        while not self._has_room and self._broken is None:
            await self._wait_for_change()
        if self._broken is not None:
            raise ChannelBroken(self._broken)

    def end(self) -> None:
        """Send no more; what was written still arrives, and the other side may go on."""
        self._ended_here = True
        self._carrier.channels.end(self._number)
        self._carrier.flush()

    def let_go(self) -> None:
        """Release the stream. What was written and ended still arrives; a stream without an end is cancelled."""
        if not self._ended_here:
            self.cancel("unfinished")
        self._chunks.clear()

    def cancel(self, code: str = "cancelled") -> None:
        """Both directions are over at once, whatever is on its way."""
        if self._broken is None:
            self._carrier.channels.end(self._number, code)
            self.broke(code)
            self._carrier.flush()

    def received(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._wake()

    def got_room(self) -> None:
        self._has_room = True
        self._wake()

    def ended(self) -> None:
        self._ended_there = True
        self._wake()

    def broke(self, code: str) -> None:
        self._broken = code
        self._chunks.clear()
        self._wake()

    async def _wait_for_change(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
