"""A link over a websocket, still without I/O: bytes and the time go in, events come out, bytes to send are taken.

The websocket is plain: binary messages, no compression, no extensions, and no message longer than a frame may be. It is
opened and read by our own few functions, which keep less and take less time than a library for all of it.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TypeAlias

from websockets.frames import Opcode

from tidemill.core.clock import Instant
from tidemill.wire import upgrade
from tidemill.wire.errors import ProtocolError
from tidemill.wire.link import AgentLink, Closed, Link, LinkEvent
from tidemill.wire.link_phases import LinkPhase
from tidemill.wire.messages import FRAME_MAX
from tidemill.wire.upgrade import Rejection, UpgradeRequest
from tidemill.wire.websocket import Frame, FrameReader, write_frame

SMALL_FRAME = 4 * 1024
SMALL_FRAMES_MAX = 1_000
"""How many small frames a pool reads from one link before it turns to others. An agent has one link and no limit."""

_HEADER_MAX = 64 * 1024
_HELLO_MAX = 4 * 1024
"""The longest message from a peer that has not shown its key: a hello fits."""

_NORMAL = (1000).to_bytes(2, "big")
_SWITCHING = 101
_BUSY = "The pool has no room for another link right now."
_REFUSED = "The other side does not speak the link here: check the address."

DoorCheck: TypeAlias = Callable[[UpgradeRequest], Rejection | None]
"""Looks at the request before a link is made of it."""


class FramedLink:
    """One end of a link on one connection. `small_frames` counts the small frames received; the caller resets it."""

    __slots__ = (
        "_door",
        "_header",
        "_key",
        "_masks",
        "_opening",
        "_over",
        "_parts",
        "_pong",
        "_reader",
        "_small_frames_max",
        "_unsent",
        "frames_in",
        "frames_out",
        "link",
        "small_frames",
    )

    def __init__(self, link: Link, *, url: str | None = None, door: DoorCheck | None = None) -> None:
        self.link = link
        self._small_frames_max = SMALL_FRAMES_MAX if url is None else 2**63
        self.frames_in = self.frames_out = self.small_frames = 0
        self._masks = url is not None
        self._opening = True
        self._door = door
        self._header = bytearray()
        self._key = upgrade.key_of(link.nonce) if isinstance(link, AgentLink) else ""
        self._unsent = [upgrade.upgrade_request(url, self._key)] if url else []
        self._reader = FrameReader(masked=not self._masks)
        self._parts = bytearray()
        self._pong: bytes | None = None
        self._over = False

    @property
    def has_heard_enough(self) -> bool:
        """Whether the limit of small frames is reached. Reset `small_frames`, then call `hear_more`."""
        return self.small_frames >= self._small_frames_max

    @property
    def is_over(self) -> bool:
        """Whether the connection is to be closed once what is left has been sent."""
        return self._over

    def receive(self, content: bytes, now: Instant) -> Sequence[LinkEvent]:
        """What some bytes of the peer mean. No bytes mean that the peer has closed."""
        if self._over:
            return ()
        if not content:
            return self._lost("gone", "The other side has closed the connection.")
        if self.link.state is LinkPhase.CLOSED:
            return self.link.receive(content, now)  # nothing is read any more
        events: list[LinkEvent] = []
        try:
            rest = self._open(content, events) if self._opening else content
            self._hear(rest, now, events)
        except ProtocolError as error:
            events.extend(self.link.fail(error))
        return events

    def hear_more(self, now: Instant) -> Sequence[LinkEvent]:
        """Read the frames that were left over when the limit of small frames was reached."""
        events: list[LinkEvent] = []
        try:
            self._hear(b"", now, events)
        except ProtocolError as error:
            events.extend(self.link.fail(error))
        return events

    def to_send(self, most: int) -> tuple[list[bytes], Sequence[LinkEvent]]:
        """Bytes to send, about as many as asked for, and the events that sending them causes."""
        pieces, self._unsent = self._unsent, []
        events: list[LinkEvent] = []
        if self._opening or self._over:
            return pieces, events
        if self._pong is not None:
            pieces += write_frame(Opcode.PONG, self._pong, masked=self._masks)
            self._pong = None
        size = 0
        while size < most and (outgoing := self.link.next_frame()):
            self.frames_out += 1
            pieces += write_frame(Opcode.BINARY, outgoing[0], masked=self._masks)
            size += len(outgoing[0])
            if outgoing[1]:
                events.append(outgoing[1])
        return pieces, events

    def finish(self) -> list[bytes]:
        """The last bytes of the websocket, to send before the connection is closed."""
        pieces, self._unsent = self._unsent, []
        if not (self._opening or self._over):
            pieces += write_frame(Opcode.CLOSE, _NORMAL, masked=self._masks)
        self._over = True
        return pieces

    def _hear(self, content: bytes, now: Instant, events: list[LinkEvent]) -> None:
        self._reader.most = FRAME_MAX if self._masks or self.link.state is LinkPhase.OPEN else _HELLO_MAX
        with closing(self._reader.frames_in(content)) as frames:
            for frame in frames:
                events.extend(self._understand(frame, now))
                if self.is_over or self.has_heard_enough:
                    break

    def _open(self, content: bytes, events: list[LinkEvent]) -> bytes:
        """Gather the header of the request or of the answer. Answers the bytes behind it, once the link is open."""
        self._header += content
        end = self._header.find(b"\r\n\r\n") + 4
        if end < 4:
            if len(self._header) > _HEADER_MAX:
                events += self._lost("malformed", "The websocket was opened with too many headers.")
            return b""
        header, rest, self._header = bytes(self._header[:end]), bytes(self._header[end:]), bytearray()
        if self._masks:
            events += self._read_answer(upgrade.answer_status(header, self._key))
        else:
            self._answer_request(upgrade.read_upgrade_request(header))
        return b"" if self._opening else rest

    def _answer_request(self, request: UpgradeRequest | Rejection) -> None:
        """The pool's side: let a request in, or say why not."""
        rejection = request if isinstance(request, Rejection) else (self._door(request) if self._door else None)
        if isinstance(request, Rejection) or rejection:
            assert rejection
            self._unsent.append(upgrade.refusal(rejection))
            self._over = True
        else:
            self._unsent.append(upgrade.acceptance(request))
            self._opening, self._door = False, None

    def _read_answer(self, status: int) -> Sequence[LinkEvent]:
        """The agent's side: a full pool is still a pool; anything else that refuses is not."""
        if status == _SWITCHING:
            self._opening = False
            return ()
        return self._lost("busy", _BUSY) if status == upgrade.UNAVAILABLE else self._lost("no_link", _REFUSED)

    def _understand(self, frame: Frame, now: Instant) -> Sequence[LinkEvent]:
        self.small_frames += len(frame.content) < SMALL_FRAME
        if frame.opcode in (Opcode.BINARY, Opcode.CONT):
            return self._message(frame, now)
        if frame.opcode == Opcode.PING:
            self._pong = bytes(frame.content)  # an answer to the newest answers them all
        elif frame.opcode == Opcode.CLOSE:
            return self._lost("gone", "The other side has closed the connection.")
        elif frame.opcode == Opcode.TEXT:
            raise ProtocolError("malformed", "The link carries binary messages only.")
        return ()

    def _message(self, frame: Frame, now: Instant) -> Sequence[LinkEvent]:
        """A message may come in pieces; together they are no longer than a frame may be."""
        if (frame.opcode == Opcode.CONT) != bool(self._parts):
            raise ProtocolError("malformed", "The pieces of a message do not belong together.")
        if frame.final and not self._parts:
            self.frames_in += 1
            return self.link.receive(frame.content, now)
        self._parts += frame.content
        most = self._reader.most
        if len(self._parts) > most or not frame.content:
            raise ProtocolError("frame_too_large", f"A message has at most {most} bytes, and no empty pieces.")
        if not frame.final:
            return ()
        whole, self._parts = bytes(self._parts), bytearray()
        self.frames_in += 1
        return self.link.receive(whole, now)

    def _lost(self, code: str, sentence: str) -> Sequence[LinkEvent]:
        self._over = True
        return [Closed(code, sentence, ours=False)]


def pool_end(link: Link, door: DoorCheck | None = None) -> FramedLink:
    """The pool's end, for a connection that asks to be upgraded."""
    return FramedLink(link, door=door)


def agent_end(link: Link, url: str) -> FramedLink:
    """The agent's end; its first bytes ask for the upgrade."""
    assert isinstance(link, AgentLink), "pools are dialled by agents"
    return FramedLink(link, url=url)
