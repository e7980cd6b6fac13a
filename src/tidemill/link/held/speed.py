"""How fast a node's link is: the agent sends so many bytes, gets so many, and measures for itself.

The agent opens a channel of this purpose with {"down_bytes": n, "up_bytes": m}. One at a time for a node, few at a time
for a process, and never for long: a measurement must not slow other traffic down.
"""

import asyncio
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from tidemill.link.held.streams import HeldStream
from tidemill.wire.messages import UNREADABLE

PURPOSE = "speed"
BYTES_MAX = 16 * 1024 * 1024
_AT_ONCE_MAX = 8
_LONGEST_S = 60.0
_PIECE = bytes(64 * 1024)


class SpeedTestSize(Struct, frozen=True):
    down_bytes: Annotated[int, Meta(ge=0, le=BYTES_MAX)]
    up_bytes: Annotated[int, Meta(ge=0, le=BYTES_MAX)]


class SpeedTest:
    """Serves the purpose. A node that has to wait is told `busy` and may ask again later."""

    def __init__(self) -> None:
        self._measuring: set[UUID] = set()

    async def serve(self, stream: HeldStream) -> None:
        try:
            size = msgspec.json.decode(stream.about, type=SpeedTestSize)
        except UNREADABLE:
            stream.cancel("malformed")
            return
        if stream.node_id in self._measuring or len(self._measuring) >= _AT_ONCE_MAX:
            stream.cancel("busy")
            return
        self._measuring.add(stream.node_id)
        try:
            async with asyncio.timeout(_LONGEST_S):
                await _exchange(stream, size)
        except TimeoutError:
            stream.cancel("late")
        finally:
            self._measuring.discard(stream.node_id)


async def _exchange(stream: HeldStream, size: SpeedTestSize) -> None:
    remaining_bytes = size.up_bytes
    while remaining_bytes > 0 and (chunk := await stream.read()):
        remaining_bytes -= len(chunk)
    if remaining_bytes > 0:
        stream.cancel("malformed")
        return
    for start in range(0, size.down_bytes, len(_PIECE)):
        await stream.write(_PIECE[: size.down_bytes - start])
    stream.end()
