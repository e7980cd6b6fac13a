"""The frames of a websocket (RFC 6455), as much of it as a link needs: bytes in, frames out, and back.

No extensions, no frame longer than a link's frame may be, nothing kept but one unfinished frame. The client masks what
it sends and the server does not. A peer that does otherwise, or sets an unknown bit, breaks the protocol.
Our agents mask with zeros: masks keep scripts in browsers from forging requests to proxies, and an agent runs none.
"""

from collections.abc import Generator
from typing import NamedTuple

from websockets.frames import Opcode, apply_mask  # type: ignore[attr-defined]  # in C where there is a compiler

from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import FRAME_MAX

_CONTROL_MAX = 125
_FINAL, _RESERVED, _OPCODE, _MASKED = 0x80, 0x70, 0x0F, 0x80
_SHORT, _LONG = 126, 127
_NO_MASK = bytes(4)
_PIECES_MAX = 64
"""Join the small pieces of a long frame now and then, so that they do not take more memory than their content."""

_KNOWN = frozenset(int(opcode) for opcode in Opcode)


class Frame(NamedTuple):
    """One frame. A message may come in several, the last of which is final. Its content is a view: to keep it, copy."""

    opcode: int
    final: bool
    content: memoryview


class FrameReader:
    """Cuts what a peer sends into frames, none longer than `most`. Only one that comes in pieces is copied."""

    __slots__ = ("_masked", "_needed", "_pieces", "_rest", "_size", "most")

    def __init__(self, *, masked: bool) -> None:
        self.most = FRAME_MAX
        self._masked = masked
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = 2
        self._rest = b""

    def frames_in(self, content: bytes) -> Generator[Frame]:
        """The frames that are whole now. Raises when the peer breaks the protocol.

        A caller that stops early closes the generator; the rest is kept for the next call.
        """
        if self._rest:
            content, self._rest = self._rest + content, b""
        start = 0
        try:
            while self._size and self._size + len(content) - start >= self._needed:
                start = self._add(content, start)
                parsed = self._frame_at(whole := b"".join(self._pieces), 0)
                if isinstance(parsed, tuple):
                    self._pieces, self._size, self._needed = [], 0, 2
                    yield parsed[0]
                else:
                    self._pieces, self._needed = [whole], parsed
            while not self._size:
                parsed = self._frame_at(content, start)
                if not isinstance(parsed, tuple):
                    self._needed = parsed
                    break
                start = parsed[1]
                yield parsed[0]
            start = self._add(content, start)
        finally:
            self._rest = content[start:]

    def _add(self, content: bytes, start: int) -> int:
        """Take what the unfinished frame still needs, or as much of it as there is. Answers where the rest begins."""
        piece = content[start : start + self._needed - self._size]
        if piece:
            self._pieces.append(piece)
            self._size += len(piece)
        if len(self._pieces) > _PIECES_MAX:
            self._pieces = [b"".join(self._pieces)]
        return start + len(piece)

    def _frame_at(self, unread: bytes, start: int) -> tuple[Frame, int] | int:
        """The frame at `start` and where it ends; or how many bytes are needed to read on."""
        if len(unread) < start + 2:
            return 2
        first, second = unread[start], unread[start + 1]
        length, at = second & 0x7F, start + 2
        _check(first, length, masked=bool(second & _MASKED), expected=self._masked)
        if length >= _SHORT:
            size = 2 if length == _SHORT else 8
            if len(unread) < at + size:
                return 2 + size
            length, at = int.from_bytes(unread[at : at + size], "big"), at + size
            if length > self.most:
                raise ProtocolError("frame_too_large", f"A frame has at most {self.most} bytes.")
        end = at + length + (4 if self._masked else 0)
        if len(unread) < end:
            return end - start
        return Frame(first & _OPCODE, bool(first & _FINAL), self._content(unread, at, end)), end

    def _content(self, unread: bytes, at: int, end: int) -> memoryview:
        view = memoryview(unread)
        if not self._masked:
            return view[at:end]
        mask = unread[at : at + 4]
        return view[at + 4 : end] if mask == _NO_MASK else memoryview(apply_mask(view[at + 4 : end], mask))


def write_frame(opcode: Opcode, content: bytes, *, masked: bool) -> list[bytes]:
    """A whole message as bytes to send. Long content is not copied."""
    bit, mask, length = (_MASKED, _NO_MASK, len(content)) if masked else (0, b"", len(content))
    first = bytes((_FINAL | opcode,))
    if length < _SHORT:
        return [first + bytes((bit | length,)) + mask + content]
    if length < 1 << 16:
        return [first + bytes((bit | _SHORT,)) + length.to_bytes(2, "big") + mask, content]
    return [first + bytes((bit | _LONG,)) + length.to_bytes(8, "big") + mask, content]


def _check(first: int, length: int, *, masked: bool, expected: bool) -> None:
    opcode = first & _OPCODE
    if first & _RESERVED or opcode not in _KNOWN:
        raise ProtocolError("malformed", "A frame uses what this link does not have.")
    if masked is not expected:
        raise ProtocolError("malformed", "An agent masks its frames, and a pool does not.")
    if opcode >= Opcode.CLOSE and (length > _CONTROL_MAX or not first & _FINAL):
        raise ProtocolError("malformed", "A control frame is short and whole.")
