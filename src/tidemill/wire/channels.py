"""Channels: many streams of bytes through one link, each with its own flow control, none in another's way.

A sender sends no more than the credit it was given; a receiver gives credit back as the bytes are used up, so a slow
reader costs one window of memory and stops nobody else. Channels that have something to send take turns with a chunk
each, so a small one waits for one chunk of every other at the most. The agent's channels have odd numbers, the pool's
even ones; numbers only grow, so that what is late for one channel is never taken for another's.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import (
    CHUNK_MAX,
    ChannelChunk,
    ChannelCredit,
    ChannelEnd,
    ChannelMessage,
    ChannelOpen,
)

WINDOW = 1024 * 1024
"""The most bytes in flight on one channel: enough for 20 MB/s over a round trip of 50 ms."""

_UNSENT_MAX = 256 * 1024
CHANNELS_MAX = 256
_SHARED_CHUNK = 16 * 1024
"""The size of a turn when others wait."""

_URGENT_MAX = 8 * CHANNELS_MAX
"""The most messages that wait for a peer. A peer that opens channels faster than it reads answers is cut off."""


@dataclass(frozen=True)
class ChannelOpened:
    """The peer wants a channel."""

    channel: int
    purpose: str
    about: bytes


@dataclass(frozen=True)
class ChannelReceived:
    channel: int
    chunk: bytes


@dataclass(frozen=True)
class ChannelHasRoom:
    """More may be written to a channel that was full."""

    channel: int


@dataclass(frozen=True)
class ChannelEnded:
    """The peer sends no more on this channel; with a code, it is over in both directions."""

    channel: int
    code: str


ChannelEvent: TypeAlias = ChannelOpened | ChannelReceived | ChannelHasRoom | ChannelEnded


@dataclass
class _Channel:
    credit: int
    pending: deque[bytes] = field(default_factory=deque)
    pending_bytes: int = 0
    allowed: int = WINDOW
    unreturned: int = 0
    ending: bool = False
    ended_here: bool = False
    ended_there: bool = False
    queued: bool = False
    wanted_room: bool = False


class Channels:
    """One end of a link's channels. Messages in, events out; what to send is taken with `next_message`."""

    def __init__(self, *, odd: bool) -> None:
        self._next = 1 if odd else 2
        self._newest_theirs = 0
        self._channels: dict[int, _Channel] = {}
        self._turns: deque[int] = deque()
        self._urgent: deque[ChannelMessage] = deque()

    def __len__(self) -> int:
        return len(self._channels)

    def __contains__(self, number: int) -> bool:
        return number in self._channels

    def open(self, purpose: str, about: bytes = b"") -> int | None:
        """Open a channel. Answers its number, or nothing if there are too many."""
        if len(self._channels) >= CHANNELS_MAX:
            return None
        number, self._next = self._next, self._next + 2
        self._channels[number] = _Channel(credit=WINDOW)
        self._urgent.append(ChannelOpen(number, purpose, WINDOW, about))
        return number

    def write(self, number: int, content: bytes) -> bool:
        """Send bytes. Answers whether there is room for more; if not, wait for `ChannelHasRoom`."""
        channel = self._channels.get(number)
        if channel is None or channel.ending:
            return False
        if content:
            channel.pending.append(content)
            channel.pending_bytes += len(content)
            self._queue(number, channel)
        channel.wanted_room = channel.pending_bytes >= _UNSENT_MAX
        return not channel.wanted_room

    def end(self, number: int, code: str = "") -> None:
        """Send no more. Without a code what is pending is sent first; with one the channel is over at once."""
        channel = self._channels.get(number)
        if channel is None or (channel.ending and not code):
            return
        channel.ending = True
        if code:
            self._urgent.append(ChannelEnd(number, code))
            del self._channels[number]
        else:
            self._queue(number, channel)

    def use_up(self, number: int, count: int) -> None:
        """Note that so many received bytes were used. The peer may send as many again."""
        channel = self._channels.get(number)
        if channel is None or channel.ended_there:
            return
        channel.unreturned += count
        if channel.unreturned >= WINDOW // 2:
            self._urgent.append(ChannelCredit(number, channel.unreturned))
            channel.allowed += channel.unreturned
            channel.unreturned = 0

    def receive(self, message: ChannelMessage) -> Iterator[ChannelEvent]:
        """What a message of the peer means. A channel that is over may still get what was on its way."""
        match message:
            case ChannelOpen():
                yield from self._opened(message)
            case ChannelChunk(number, chunk):
                if channel := self._channels.get(number):
                    _charge(channel, len(chunk))
                    yield ChannelReceived(number, chunk)
            case ChannelCredit(number, credit):
                if channel := self._channels.get(number):
                    channel.credit = min(channel.credit + credit, 2**31)
                    self._queue(number, channel)
            case ChannelEnd(number, code):
                if channel := self._channels.get(number):
                    channel.ended_there = True
                    if code or channel.ended_here:
                        del self._channels[number]
                    yield ChannelEnded(number, code)

    def next_message(self) -> tuple[ChannelMessage, ChannelEvent | None] | None:
        """The next message to send, and the event that sending it causes; None if there is nothing to send."""
        if self._urgent:
            return self._urgent.popleft(), None
        while self._turns:
            number = self._turns.popleft()
            if channel := self._channels.get(number):
                channel.queued = False
                if message := self._turn(number, channel):
                    return message, self._room(number, channel)
        return None

    def _opened(self, message: ChannelOpen) -> Iterator[ChannelEvent]:
        if message.channel % 2 == self._next % 2 or message.channel <= self._newest_theirs:
            raise ProtocolError(
                "channel_number", "A channel was opened with a number that is not the peer's to choose, or an old one."
            )
        if len(self._urgent) >= _URGENT_MAX:
            raise ProtocolError("not_reading", "More channels are opened than answers are read.")
        self._newest_theirs = message.channel
        if len(self._channels) >= CHANNELS_MAX:
            self._urgent.append(ChannelEnd(message.channel, "too_many"))
            return
        self._channels[message.channel] = _Channel(credit=message.credit)
        yield ChannelOpened(message.channel, message.purpose, message.about)

    def _queue(self, number: int, channel: _Channel) -> None:
        can_end = channel.ending and not channel.pending and not channel.ended_here
        if not channel.queued and ((channel.pending and channel.credit > 0) or can_end):
            channel.queued = True
            self._turns.append(number)

    def _turn(self, number: int, channel: _Channel) -> ChannelMessage | None:
        if channel.pending and channel.credit > 0:
            most = min(_SHARED_CHUNK if self._turns else CHUNK_MAX, channel.credit)
            chunk = _take(channel, most)
            channel.credit -= len(chunk)
            self._queue(number, channel)
            return ChannelChunk(number, chunk)
        if channel.ending and not channel.pending:
            channel.ended_here = True
            if channel.ended_there:
                del self._channels[number]
            return ChannelEnd(number)
        return None

    def _room(self, number: int, channel: _Channel) -> ChannelEvent | None:
        if channel.wanted_room and channel.pending_bytes <= _UNSENT_MAX // 2:
            channel.wanted_room = False
            return ChannelHasRoom(number)
        return None


def _charge(channel: _Channel, count: int) -> None:
    channel.allowed -= count
    if channel.allowed < 0 or channel.ended_there:
        raise ProtocolError("credit_exceeded", "More bytes came on a channel than were allowed.")


def _take(channel: _Channel, most: int) -> bytes:
    """Take at most so many of the pending bytes. A large piece is cut without copying its rest."""
    first = channel.pending[0]
    if len(first) > most:
        view = memoryview(first)
        channel.pending[0] = view[most:]  # type: ignore[assignment]  # a view serves as bytes here
        channel.pending_bytes -= most
        return bytes(view[:most])
    parts, size = [], 0
    while channel.pending and size + len(channel.pending[0]) <= most:
        part = channel.pending.popleft()
        parts.append(part)
        size += len(part)
    channel.pending_bytes -= size
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
