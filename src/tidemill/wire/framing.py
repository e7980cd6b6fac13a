"""A link over a websocket, still without I/O: bytes and the time go in, events come out, bytes to send are taken.

The websocket is plain: binary messages, no compression, no extensions, and no message longer than a frame may be.
"""

from collections.abc import Sequence

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tidemill.core.clock import Instant
from tidemill.wire.link import Closed, Link, LinkEvent
from tidemill.wire.messages import FRAME_MAX

PATH = "/link"
SUBPROTOCOL = Subprotocol("tidemill.link")
_SWITCHING = 101
_NOT_FOUND = 404
_REFUSED = "The other side does not speak the link here: check the address."


class Framed:
    """One end of a link on one connection."""

    def __init__(self, link: Link, websocket: ServerProtocol | ClientProtocol) -> None:
        self.link = link
        self._websocket = websocket
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether the connection is to be closed once what is left has been sent."""
        return self._over

    def receive(self, content: bytes, now: Instant) -> Sequence[LinkEvent]:
        """What some bytes of the peer mean; none of them means that it has closed."""
        if content:
            self._websocket.receive_data(content)
        else:
            self._websocket.receive_eof()
        events: list[LinkEvent] = []
        for received in self._websocket.events_received():
            events.extend(self._understand(received, now))
        return events

    def to_send(self, most: int) -> tuple[list[bytes], Sequence[LinkEvent]]:
        """Bytes to send, about as many as asked for, and what follows from their being sent."""
        events: list[LinkEvent] = []
        written = self._take()
        size = sum(map(len, written))
        while self._is_open and size < most and (found := self.link.next_frame()):
            self._websocket.send_binary(found[0])
            written += (taken := self._take())
            size += sum(map(len, taken))
            if found[1]:
                events.append(found[1])
        return written, events

    def finish(self) -> list[bytes]:
        """The end of the websocket, for whoever closes the connection."""
        if self._is_open:
            self._websocket.send_close(1000)
        self._over = True
        return self._take()

    @property
    def _is_open(self) -> bool:
        return self._websocket.state.name == "OPEN"

    def _take(self) -> list[bytes]:
        return [piece for piece in self._websocket.data_to_send() if piece]

    def _understand(self, received: object, now: Instant) -> Sequence[LinkEvent]:
        match received:
            case Request():
                self._accept(received)
            case Response() if received.status_code != _SWITCHING:
                return self._lost("no_link", _REFUSED)
            case Frame(opcode=Opcode.BINARY | Opcode.CONT):
                return self._frame(received, now)
            case Frame(opcode=Opcode.TEXT):
                return self._lost("malformed", "The link carries binary messages only.")
            case Frame(opcode=Opcode.CLOSE):
                return self._lost("gone", "The other side has closed the connection.")
        return ()

    def _accept(self, request: Request) -> None:
        assert isinstance(self._websocket, ServerProtocol)
        if request.path.partition("?")[0] != PATH:
            response = self._websocket.reject(_NOT_FOUND, "There is no link at this address.\n")
        else:
            response = self._websocket.accept(request)
        self._websocket.send_response(response)
        self._over = response.status_code != _SWITCHING

    def _frame(self, frame: Frame, now: Instant) -> Sequence[LinkEvent]:
        """A message may come in pieces; together they are no longer than a frame may be."""
        self._size += len(frame.data)
        if self._size > FRAME_MAX:
            return self._lost("frame_too_large", f"A frame has at most {FRAME_MAX} bytes.")
        self._parts.append(bytes(frame.data))
        if not frame.fin:
            return ()
        whole = b"".join(self._parts) if len(self._parts) > 1 else self._parts[0]
        self._parts, self._size = [], 0
        return self.link.receive(whole, now)

    def _lost(self, code: str, sentence: str) -> Sequence[LinkEvent]:
        self._over = True
        return [Closed(code, sentence, ours=False)]


def pool_end(link: Link) -> Framed:
    """The pool's end, for a connection that asks to be upgraded."""
    return Framed(link, ServerProtocol(subprotocols=[SUBPROTOCOL], extensions=None, max_size=FRAME_MAX))


def agent_end(link: Link, url: str) -> Framed:
    """The agent's end; its first bytes ask for the upgrade."""
    websocket = ClientProtocol(parse_uri(url), subprotocols=[SUBPROTOCOL], extensions=None, max_size=FRAME_MAX)
    websocket.send_request(websocket.connect())
    return Framed(link, websocket)
