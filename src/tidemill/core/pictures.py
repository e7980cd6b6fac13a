"""Pictures as PNG in which the pixels determine every byte: rows unfiltered, stored without compression.

Compressed bytes would differ between versions of a library. Red, green and blue have eight bits each; the file's size
is known before any pixel.
"""

import struct
import zlib
from collections.abc import Iterator

MAGIC = b"\x89PNG\r\n\x1a\n"
_STORED_MAX = 65_535
_FRAME_BYTES = len(MAGIC) + 3 * 12 + 13
"""The magic, three chunks' lengths, names and checksums, and the content of the first chunk."""


def png_bytes(width: int, height: int) -> int:
    """How long the file is."""
    rows = height * (1 + 3 * width)
    return _FRAME_BYTES + 2 + 5 * -(-rows // _STORED_MAX) + rows + 4


def png_header(width: int, height: int) -> bytes:
    """The file's first bytes, which only its size determines."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return MAGIC + _chunk(b"IHDR", header)


def png_of(width: int, height: int, pixels: bytes) -> bytes:
    """The file, from three bytes a pixel, row after row from the top."""
    assert len(pixels) == 3 * width * height, "three bytes for each pixel"
    rows = b"".join(b"\0" + pixels[at : at + 3 * width] for at in range(0, len(pixels), 3 * width))
    stored = b"\x78\x01" + b"".join(_stored(rows)) + struct.pack(">I", zlib.adler32(rows))
    return png_header(width, height) + _chunk(b"IDAT", stored) + _chunk(b"IEND", b"")


def pixels_of(file: bytes, width: int, height: int) -> bytes | None:
    """The inverse; None for a file that `png_of` would not have written for a picture of this size."""
    if len(file) != png_bytes(width, height):
        return None
    body = file[len(MAGIC) + 12 + 13 + 8 + 2 : -12 - 4 - 4]
    rows = b"".join(body[at + 5 : at + 5 + _STORED_MAX] for at in range(0, len(body), 5 + _STORED_MAX))
    line = 1 + 3 * width
    pixels = b"".join(rows[at + 1 : at + line] for at in range(0, len(rows), line))
    return pixels if png_of(width, height, pixels) == file else None


def _stored(rows: bytes) -> Iterator[bytes]:
    for at in range(0, len(rows), _STORED_MAX):
        part = rows[at : at + _STORED_MAX]
        is_last = at + _STORED_MAX >= len(rows)
        yield struct.pack("<BHH", is_last, len(part), len(part) ^ 0xFFFF) + part


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
