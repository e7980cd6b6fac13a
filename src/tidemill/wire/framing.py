"""A link over a websocket, still without I/O: bytes and the time go in, events come out, bytes to send are taken.

The websocket is plain: binary messages, no compression, no extensions, and no message longer than a frame may be. Its
opening is left to a library; what follows is read by our own frames, which keep less and take less time.
"""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

from websockets.client import ClientProtocol
from websockets.frames import Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tidemill.core.clock import Instant
from tidemill.wire.errors import ProtocolError
from tidemill.wire.link import Closed, Link, LinkEvent, State
from tidemill.wire.messages import FRAME_MAX
from tidemill.wire.websocket import Frame, FrameReader, written

PATH = "/link"
SUBPROTOCOL = Subprotocol("tidemill.link")
SMALL_FRAME = 4 * 1024
SMALL_FRAMES_MAX = 1_000
"""So many small frames a pool hears before it turns to others; an agent has nobody else to turn to."""

_HEAD_MAX = 64 * 1024
_SWITCHING, _NOT_FOUND, _UNAVAILABLE = 101, 404, 503
_NORMAL = (1000).to_bytes(2, "big")
_RETRY_AFTER_S = "2"
_BUSY = "The pool has no room for another link right now."
_REFUSED = "The other side does not speak the link here: check the address."


@dataclass(frozen=True)
class Rejection:
    """Why a request does not become a link, as an HTTP answer."""

    status: int
    sentence: str


Door: TypeAlias = Callable[[Request], Rejection | None]
"""Looks at the request before a link is made of it."""


class Framed:
    """One end of a link on one connection. `small_frames` counts small ones that came, for whoever bounds them."""

    __slots__ = (
        "_door",
        "_head",
        "_masks",
        "_opening",
        "_over",
        "_parts",
        "_pong",
        "_reader",
        "_size",
        "_small_frames_max",
        "_unsent",
        "frames_in",
        "frames_out",
        "link",
        "small_frames",
    )

    def __init__(self, link: Link, opening: ServerProtocol | ClientProtocol, door: Door | None = None) -> None:
        self.link = link
        self._small_frames_max = SMALL_FRAMES_MAX if isinstance(opening, ServerProtocol) else 2**63
        self.frames_in = self.frames_out = self.small_frames = 0
        self._masks = isinstance(opening, ClientProtocol)
        self._opening: ServerProtocol | ClientProtocol | None = opening
        self._door = door
        self._head = bytearray()
        self._unsent = _taken(opening)
        self._reader = FrameReader(masked=not self._masks)
        self._parts: list[bytes] = []
        self._size = 0
        self._pong: bytes | None = None
        self._over = False

    @property
    def has_heard_enough(self) -> bool:
        """Whether the bound on small frames is reached. Set `small_frames` back, and call `hear_more`."""
        return self.small_frames >= self._small_frames_max

    @property
    def is_over(self) -> bool:
        """Whether the connection is to be closed once what is left has been sent."""
        return self._over

    def receive(self, content: bytes, now: Instant) -> Sequence[LinkEvent]:
        """What some bytes of the peer mean; none of them means that it has closed."""
        if self._over:
            return ()
        if not content:
            return self._lost("gone", "The other side has closed the connection.")
        if self.link.state is State.CLOSED:
            return self.link.receive(content, now)  # nothing is read any more
        events: list[LinkEvent] = []
        try:
            rest = self._open(content, events) if self._opening else content
            self._hear(rest, now, events)
        except ProtocolError as error:
            events.extend(self.link.fail(error))
        return events

    def hear_more(self, now: Instant) -> Sequence[LinkEvent]:
        """What was left of the last bytes, when so many small frames were in them that not all were heard."""
        events: list[LinkEvent] = []
        try:
            self._hear(b"", now, events)
        except ProtocolError as error:
            events.extend(self.link.fail(error))
        return events

    def to_send(self, most: int) -> tuple[list[bytes], Sequence[LinkEvent]]:
        """Bytes to send, about as many as asked for, and what follows from their being sent."""
        pieces, self._unsent = self._unsent, []
        events: list[LinkEvent] = []
        if self._opening or self._over:
            return pieces, events
        if self._pong is not None:
            pieces += written(Opcode.PONG, self._pong, masked=self._masks)
            self._pong = None
        size = 0
        while size < most and (found := self.link.next_frame()):
            self.frames_out += 1
            pieces += written(Opcode.BINARY, found[0], masked=self._masks)
            size += len(found[0])
            if found[1]:
                events.append(found[1])
        return pieces, events

    def finish(self) -> list[bytes]:
        """The end of the websocket, for whoever closes the connection."""
        pieces, self._unsent = self._unsent, []
        if not (self._opening or self._over):
            pieces += written(Opcode.CLOSE, _NORMAL, masked=self._masks)
        self._over = True
        return pieces

    def _hear(self, content: bytes, now: Instant, events: list[LinkEvent]) -> None:
        with closing(self._reader.frames_in(content)) as frames:
            for frame in frames:
                events.extend(self._understand(frame, now))
                if self.is_over or self.has_heard_enough:
                    break

    def _open(self, content: bytes, events: list[LinkEvent]) -> bytes:
        """Gather the head of the request or of the answer. Answers the bytes behind it, once the link is open."""
        assert self._opening
        self._head += content
        end = self._head.find(b"\r\n\r\n") + 4
        if end < 4:
            if len(self._head) > _HEAD_MAX:
                events += self._lost("malformed", "The websocket was opened with too many headers.")
            return b""
        if self._masks and b" 101 " not in self._head[:16]:
            events += self._rejected(bytes(self._head[:16]))
            return b""
        head, rest, self._head = bytes(self._head[:end]), bytes(self._head[end:]), bytearray()
        self._opening.receive_data(head)
        for found in self._opening.events_received():
            if isinstance(found, Request):
                self._accept(found)
        self._unsent += _taken(self._opening)
        if self._opening.state.name == "OPEN":
            self._opening = self._door = None
        elif not self._over:
            events += self._lost("malformed", "The other side does not speak websocket.")
        return b"" if self._opening else rest

    def _accept(self, request: Request) -> None:
        assert isinstance(self._opening, ServerProtocol)
        rejection = _found_nothing(request) or (self._door(request) if self._door else None)
        if rejection:
            response = self._opening.reject(rejection.status, f"{rejection.sentence}\n")
            if rejection.status == _UNAVAILABLE:
                response.headers["Retry-After"] = _RETRY_AFTER_S
        else:
            response = self._opening.accept(request)
        self._opening.send_response(response)
        self._over = response.status_code != _SWITCHING

    def _rejected(self, line: bytes) -> Sequence[LinkEvent]:
        """A pool that is full is there; whatever else answers so is no pool."""
        return self._lost("busy", _BUSY) if b" 503 " in line else self._lost("no_link", _REFUSED)

    def _understand(self, frame: Frame, now: Instant) -> Sequence[LinkEvent]:
        self.small_frames += len(frame.content) < SMALL_FRAME
        if frame.opcode in (Opcode.BINARY, Opcode.CONT):
            return self._message(frame, now)
        if frame.opcode == Opcode.PING:
            self._pong = frame.content  # an answer to the newest answers them all
        elif frame.opcode == Opcode.CLOSE:
            return self._lost("gone", "The other side has closed the connection.")
        elif frame.opcode == Opcode.TEXT:
            raise ProtocolError("malformed", "The link carries binary messages only.")
        return ()

    def _message(self, frame: Frame, now: Instant) -> Sequence[LinkEvent]:
        """A message may come in pieces; together they are no longer than a frame may be."""
        if (frame.opcode == Opcode.CONT) != bool(self._size):
            raise ProtocolError("malformed", "The pieces of a message do not belong together.")
        if frame.final and not self._size:
            self.frames_in += 1
            return self.link.receive(frame.content, now)
        self._parts.append(frame.content)
        self._size += len(frame.content)
        if self._size > FRAME_MAX or not frame.content:
            raise ProtocolError("frame_too_large", f"A message has at most {FRAME_MAX} bytes, and no empty pieces.")
        if not frame.final:
            return ()
        whole, self._parts, self._size = b"".join(self._parts), [], 0
        self.frames_in += 1
        return self.link.receive(whole, now)

    def _lost(self, code: str, sentence: str) -> Sequence[LinkEvent]:
        self._over = True
        return [Closed(code, sentence, ours=False)]


def pool_end(link: Link, door: Door | None = None) -> Framed:
    """The pool's end, for a connection that asks to be upgraded."""
    return Framed(link, ServerProtocol(subprotocols=[SUBPROTOCOL], extensions=None, max_size=FRAME_MAX), door)


def agent_end(link: Link, url: str) -> Framed:
    """The agent's end; its first bytes ask for the upgrade."""
    websocket = ClientProtocol(parse_uri(url), subprotocols=[SUBPROTOCOL], extensions=None, max_size=FRAME_MAX)
    websocket.send_request(websocket.connect())
    return Framed(link, websocket)


def _taken(opening: ServerProtocol | ClientProtocol) -> list[bytes]:
    return [piece for piece in opening.data_to_send() if piece]


def _found_nothing(request: Request) -> Rejection | None:
    if request.path.partition("?")[0] == PATH:
        return None
    return Rejection(_NOT_FOUND, "There is no link at this address.")
