"""The frames of a websocket (RFC 6455), as much of it as a link needs: bytes in, frames out, and back.

No extensions, no frame longer than a link's frame may be, nothing kept but one unfinished frame. The client masks what
it sends and the server does not; whoever does otherwise, or sets a bit that has no meaning here, breaks the protocol.
"""

from collections.abc import Generator
from typing import NamedTuple

from websockets.frames import Frame as MaskedFrame
from websockets.frames import Opcode, apply_mask  # type: ignore[attr-defined]  # in C where there is a compiler

from tidemill.wire.errors import ProtocolError
from tidemill.wire.messages import FRAME_MAX

_CONTROL_MAX = 125
_FINAL, _RESERVED, _OPCODE, _MASKED = 0x80, 0x70, 0x0F, 0x80
_SHORT, _LONG = 126, 127
_PIECES_MAX = 64
"""Many small pieces of a long frame are put together now and then, so that they do not weigh more than they hold."""

_KNOWN = frozenset(int(opcode) for opcode in Opcode)


class Frame(NamedTuple):
    """One frame. A message may come in several, the last of which is final."""

    opcode: int
    final: bool
    content: bytes


class FrameReader:
    """Cuts what a peer sends into frames. Pieces are put together when a frame is whole, and not before."""

    __slots__ = ("_masked", "_needed", "_pieces", "_size")

    def __init__(self, *, masked: bool) -> None:
        self._masked = masked
        self._pieces: list[bytes] = []
        self._size = 0
        self._needed = 2

    def frames_in(self, content: bytes) -> Generator[Frame]:
        """The frames that are whole now. Raises when the peer breaks the protocol.

        Who stops in between closes this; the rest is kept for the next time.
        """
        self._pieces.append(content)
        self._size += len(content)
        if self._size < self._needed and len(self._pieces) < _PIECES_MAX:
            return
        unread = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        start, self._needed = 0, 2
        try:
            while isinstance(found := self._frame_at(unread, start), tuple):
                frame, start = found
                yield frame
            self._needed = found
        finally:
            self._size = len(unread) - start
            self._pieces = [unread[start:]] if self._size else []

    def _frame_at(self, unread: bytes, start: int) -> tuple[Frame, int] | int:
        """The frame there and where it ends; or how many bytes are needed to tell more."""
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
            if length > FRAME_MAX:
                raise ProtocolError("frame_too_large", f"A frame has at most {FRAME_MAX} bytes.")
        end = at + length + (4 if self._masked else 0)
        if len(unread) < end:
            return end - start
        return Frame(first & _OPCODE, bool(first & _FINAL), self._content(unread, at, end)), end

    def _content(self, unread: bytes, at: int, end: int) -> bytes:
        if not self._masked:
            return unread[at:end]
        unmasked: bytes = apply_mask(memoryview(unread)[at + 4 : end], unread[at : at + 4])
        return unmasked


def written(opcode: Opcode, content: bytes, *, masked: bool) -> list[bytes]:
    """A whole message as bytes to send."""
    if masked:
        return [MaskedFrame(opcode, content).serialize(mask=True)]
    length = len(content)
    first = bytes((_FINAL | opcode,))
    if length < _SHORT:
        return [first + bytes((length,)) + content]
    if length < 1 << 16:
        return [first + bytes((_SHORT,)) + length.to_bytes(2, "big"), content]
    return [first + bytes((_LONG,)) + length.to_bytes(8, "big"), content]


def _check(first: int, length: int, *, masked: bool, expected: bool) -> None:
    opcode = first & _OPCODE
    if first & _RESERVED or opcode not in _KNOWN:
        raise ProtocolError("malformed", "A frame uses what this link does not have.")
    if masked is not expected:
        raise ProtocolError("malformed", "An agent masks its frames, and a pool does not.")
    if opcode >= Opcode.CLOSE and (length > _CONTROL_MAX or not first & _FINAL):
        raise ProtocolError("malformed", "A control frame is short and whole.")
