"""One link on one connection: bytes in, events for the server, bytes out.

A connection has no task and no timer of its own. It is not read while its reports wait for the registry or it sends too
fast, and not written to while its peer does not read; a peer that does not read for long is cut off. So it costs
bounded memory, whoever is at the other end.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Protocol
from uuid import UUID

from tidemill.core.clock import SECOND, Instant
from tidemill.link.held.door import Visitor
from tidemill.link.held.registry import LinkGeneration
from tidemill.link.held.streams import ChannelBroken, HeldStream
from tidemill.wire.channels import ChannelEnded, ChannelHasRoom, ChannelOpened, ChannelReceived, Channels
from tidemill.wire.link import Beaten, Closed, Greeted, LinkEvent, PoolLink, Reported
from tidemill.wire.link_frames import pool_end
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import BeatMessage, Hello, Reports
from tidemill.wire.upgrade import Rejection, UpgradeRequest

_UNSENT_MAX = 256 * 1024
_PIECE = 64 * 1024
_UNREAD_US = 30 * SECOND
_LINGER_US = 5 * SECOND
_STEP_MAX_US = SECOND
_THEIR_REASONS = frozenset({"wrong_pool", "version"})
"""Why an agent may turn the pool away: its owner has to look at its token, or at its version."""


class ReadPause(IntFlag):
    """Why a connection is not read for now."""

    UNDECIDED = 1
    HURRIED = 2


@dataclass
class LinkCounters:
    """What a link server counts, for metrics; nothing decides by it.

    Since the process began, all links together. `refused` is by code, and codes are our own, so they are few.
    """

    welcomed: int = 0
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class ListeningTime:
    """Time as a link server counts it: only while it could hear. It goes on by at most a second between two marks.

    For a process that was stopped or got no processor time, hardly any time has passed afterwards: no node counts as
    silent for a time in which we did not listen. What waits in the sockets is read before much more time passes.
    """

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._monotonic_us = monotonic_us
        self._marked_us = monotonic_us()
        self._counted_us = 0

    def now(self) -> Instant:
        return Instant(self._counted_us + min(self._monotonic_us() - self._marked_us, _STEP_MAX_US))

    def mark(self) -> Instant:
        """To be called several times a second while we listen."""
        self._counted_us = self.now()
        self._marked_us = self._monotonic_us()
        return Instant(self._counted_us)


class ConnectionListener(Protocol):
    """The server's side of a connection: what a connection tells it."""

    time: ListeningTime
    counters: LinkCounters
    turn: int

    def knocked(self, connection: "HeldConnection", request: UpgradeRequest) -> Rejection | None: ...
    def greeted(self, connection: "HeldConnection", hello: Hello) -> None: ...
    def beaten(self, connection: "HeldConnection", beat: BeatMessage) -> None: ...
    def alive(self, connection: "HeldConnection") -> None: ...
    def reported(self, connection: "HeldConnection", reports: Reports) -> None: ...
    def channel_opened(self, connection: "HeldConnection", stream: HeldStream) -> None: ...
    def hurried(self, connection: "HeldConnection") -> None: ...
    def broke(self, connection: "HeldConnection", code: str, sentence: str) -> None: ...
    def lost(self, connection: "HeldConnection") -> None: ...


class HeldConnection(asyncio.Protocol):
    """A connection from its first byte to its last. `node_link` is set while it is a node's link."""

    __slots__ = (
        "_closing_at",
        "_framed",
        "_full_at",
        "_heard_at",
        "_listener",
        "_streams",
        "_transport",
        "_turn",
        "_unread",
        "link",
        "node_link",
        "peer",
        "slot",
        "told_at",
        "visitor",
    )

    def __init__(self, listener: ConnectionListener, link: PoolLink) -> None:
        self.link = link
        self.node_link: LinkGeneration | None = None
        self.visitor: Visitor | None = None
        self.peer = ""
        self.slot = 0
        self.told_at = self._heard_at = listener.time.now()
        self._listener = listener
        self._framed = pool_end(link, self._knock)
        self._streams: dict[int, HeldStream] = {}
        self._transport: asyncio.Transport | None = None
        self._turn = 0
        self._unread = ReadPause(0)
        self._full_at: Instant | None = None
        self._closing_at: Instant | None = None

    @property
    def channels(self) -> Channels:
        return self.link.channels

    @property
    def address(self) -> str:
        return self.visitor.address if self.visitor else self.peer

    @property
    def is_lost(self) -> bool:
        return self._transport is None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.peer = peer[0] if isinstance(peer, tuple) else ""
        transport.set_write_buffer_limits(high=_UNSENT_MAX)

    def data_received(self, data: bytes) -> None:
        listener, framed = self._listener, self._framed
        listener.counters.bytes_in += len(data)
        if self._turn != listener.turn:
            self._turn, framed.small_frames = listener.turn, 0
        before = framed.frames_in
        self._heard_at = listener.time.now()
        self._process(framed.receive(data, self._heard_at), before)

    def pause_writing(self) -> None:
        self._full_at = self._listener.time.now()

    def resume_writing(self) -> None:
        self._full_at = None
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        for stream in self._streams.values():
            stream.broke("link_lost")
        self._streams.clear()
        self._listener.lost(self)

    def tick(self, now: Instant) -> None:
        """Look at the time, every few seconds."""
        if self._closing_at is not None and now - self._closing_at > _LINGER_US:
            self.abort()
        elif self._full_at is not None and now - self._full_at > _UNREAD_US:
            self._listener.broke(self, "not_reading", "The other side does not read what it is sent.")
            self.abort()
        else:
            if self._unread:
                self.link.excuse(now)
            for event in self.link.tick(now):
                self._dispatch(event)
            self._forget_streams()
            self.flush()
            if self.node_link and self._heard_at > self.told_at and now - self.told_at > self.link.beat_ms * 1000:
                self._listener.alive(self)

    def flush(self) -> None:
        """Send what can be sent; close when nothing more is to come."""
        transport = self._transport
        if transport is None or self._closing_at is not None:
            return
        counters = self._listener.counters
        while self._full_at is None:
            before = self._framed.frames_out
            pieces, events = self._framed.to_send(_PIECE)
            if not pieces:
                break
            counters.frames_out += self._framed.frames_out - before
            counters.bytes_out += sum(map(len, pieces))
            transport.writelines(pieces)
            for event in events:
                self._dispatch(event)
        if self._full_at is None and (self._framed.is_over or self.link.state is LinkPhase.CLOSED):
            self._closing_at = self._listener.time.now()
            transport.writelines(self._framed.finish() or [b""])
            transport.close()

    def close(self, code: str, sentence: str) -> None:
        """Say goodbye and close."""
        self.link.close(code, sentence)
        self.flush()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def unread(self, why: ReadPause) -> None:
        """Do not read for this reason."""
        if not self._unread and self._transport is not None:
            self._transport.pause_reading()
        self._unread |= why

    def read_again(self, why: ReadPause) -> None:
        """The reason is gone."""
        before = self._unread
        self._unread &= ~why
        if before and not self._unread and self._transport is not None and not self._transport.is_closing():
            self.link.excuse(self._listener.time.now())
            self._transport.resume_reading()

    def hear_more(self) -> None:
        """Read the frames that were left over, and resume reading unless these were too many as well."""
        if self._transport is None:
            return
        before, self._framed.small_frames = self._framed.frames_in, 0
        self._process(self._framed.hear_more(self._listener.time.now()), before)
        if not self._framed.has_heard_enough:
            self.read_again(ReadPause.HURRIED)

    def open_channel(self, node_id: UUID, purpose: str, about: bytes) -> HeldStream:
        if self.link.state is not LinkPhase.OPEN:
            raise ChannelBroken("link_lost")
        number = self.channels.open(purpose, about)
        if number is None:
            raise ChannelBroken("too_many")
        stream = self._streams[number] = HeldStream(self, number, node_id, purpose, about)
        self.flush()
        return stream

    def _process(self, events: Sequence[LinkEvent], frames_before: int) -> None:
        for event in events:
            self._dispatch(event)
        self._listener.counters.frames_in += self._framed.frames_in - frames_before
        if self._framed.has_heard_enough:
            self.unread(ReadPause.HURRIED)
            self._listener.hurried(self)
        self.flush()

    def _dispatch(self, event: LinkEvent) -> None:
        match event:
            case Beaten(beat):
                self._listener.beaten(self, beat)
            case ChannelReceived(number, chunk) if stream := self._streams.get(number):
                stream.received(chunk)
            case ChannelHasRoom(number) if stream := self._streams.get(number):
                stream.got_room()
            case ChannelEnded(number, code) if stream := self._streams.get(number):
                stream.broke(code) if code else stream.ended()
            case Reported(reports):
                self._listener.reported(self, reports)
            case ChannelOpened(number, purpose, about):
                self._open_stream(number, purpose, about)
            case Greeted(hello):
                self._listener.greeted(self, hello)
            case Closed(code, sentence, ours) if ours or code in _THEIR_REASONS:
                self._listener.broke(self, code, sentence)

    def _knock(self, request: UpgradeRequest) -> Rejection | None:
        return self._listener.knocked(self, request)

    def _open_stream(self, number: int, purpose: str, about: bytes) -> None:
        assert self.node_link, "channels are opened on an open link"
        stream = self._streams[number] = HeldStream(self, number, self.node_link.node_id, purpose, about)
        self._listener.channel_opened(self, stream)

    def _forget_streams(self) -> None:
        if len(self._streams) > len(self.channels):
            self._streams = {number: stream for number, stream in self._streams.items() if number in self.channels}
