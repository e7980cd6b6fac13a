"""A result's files as one archive: the same files make the same bytes, on every machine and at any time.

It is a tar archive that any tar reads, and only the files' names, sizes and contents may differ. So the hash of an
archive stands for the result, and two results are compared by it.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from tidemill.core.refusals import Refusal

END = bytes(1024)
SIZE_MAX_BYTES = 2**50

_BLOCK = 512
_NAME_BYTES, _PREFIX_BYTES = 100, 155
_OCTAL_MAX = 8**11
_SIZE = slice(124, 136)


class ResultFilesRefusal(Refusal):
    FILE_NAME_UNFIT = (
        "A file of the result has a name that no archive keeps: use at most 100 printable characters for a file, and "
        "155 for the directories around it."
    )
    ARCHIVE_MALFORMED = "This is no archive of a result: ask for the result again."


def fits(path: PurePosixPath) -> bool:
    """Whether a file of this name can be in an archive."""
    parts = path.parts
    is_sound = bool(parts) and not path.is_absolute() and ".." not in parts and str(path).isprintable()
    return is_sound and _divided(path) is not None


def file_header(path: PurePosixPath, size_bytes: int) -> bytes:
    """The header before a file's content. Files come in the order of `in_order`."""
    divided = _divided(path)
    assert fits(path), "whoever makes an archive asks whether its names fit"
    assert divided is not None
    assert 0 <= size_bytes < SIZE_MAX_BYTES
    prefix, name = divided
    fields = b"".join(
        (
            name.ljust(_NAME_BYTES, b"\0"),
            b"0000644\0" + b"0000000\0" * 2,
            _number(size_bytes),
            b"00000000000\0",
            b" " * 8,
            b"0".ljust(101, b"\0"),
            b"ustar\x0000".ljust(88, b"\0"),
            prefix.ljust(_PREFIX_BYTES + 12, b"\0"),
        )
    )
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


def padding(size_bytes: int) -> bytes:
    """The zeros behind a file's content."""
    return bytes(-size_bytes % _BLOCK)


def in_order(paths: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    return sorted(paths, key=lambda path: str(path).encode())


def archived_bytes(sizes_bytes: Iterable[int]) -> int:
    """The size of an archive of files of these sizes."""
    return len(END) + sum(_BLOCK + size + len(padding(size)) for size in sizes_bytes)


def archive(files: Mapping[PurePosixPath, bytes]) -> bytes:
    """A small archive, made at once."""
    entries = ((path, files[path]) for path in in_order(files))
    return b"".join(file_header(path, len(body)) + body + padding(len(body)) for path, body in entries) + END


def read_archive(archived: bytes) -> dict[PurePosixPath, bytes] | ResultFilesRefusal:
    """The files of a small archive. Refuses whatever `archive` would not have written."""
    files = read_in_place(memoryview(archived))
    return files if isinstance(files, ResultFilesRefusal) else {path: bytes(body) for path, body in files.items()}


def read_in_place(archived: memoryview) -> dict[PurePosixPath, memoryview] | ResultFilesRefusal:
    """The same for an archive of any size: files are parts of it, and nothing is copied."""
    files: dict[PurePosixPath, memoryview] = {}
    at, content_end = 0, len(archived) - len(END)
    while at < content_end:
        entry = _entry(archived, at)
        if entry is None or entry[0] in files:
            return ResultFilesRefusal.ARCHIVE_MALFORMED
        path, body = entry
        files[path] = body
        at += _BLOCK + len(body) + len(padding(len(body)))
    is_whole = at == content_end and archived[at:] == END
    return files if is_whole and list(files) == in_order(files) else ResultFilesRefusal.ARCHIVE_MALFORMED


def _entry(archived: memoryview, at: int) -> tuple[PurePosixPath, memoryview] | None:
    """The file at a position, if its header and its padding are as `archive` writes them."""
    block = bytes(archived[at : at + _BLOCK])
    try:
        name, prefix = (_text(block[part]) for part in (slice(0, 100), slice(345, 500)))
        size = (
            int(block[_SIZE].rstrip(b"\0"), 8) if block[124:125] != b"\x80" else int.from_bytes(block[125:136], "big")
        )
    except ValueError:
        return None
    path = PurePosixPath(f"{prefix}/{name}" if prefix else name)
    begin = at + _BLOCK
    if not (0 <= size <= len(archived) - begin and fits(path)) or file_header(path, size) != block:
        return None
    behind = padding(size)
    is_padded = archived[begin + size : begin + size + len(behind)] == behind
    return (path, archived[begin : begin + size]) if is_padded else None


def _text(field: bytes) -> str:
    return field.rstrip(b"\0").decode()


def _number(size_bytes: int) -> bytes:
    """Above 8 GiB a size is written as bytes instead of octal digits, which every current tar reads."""
    return b"%011o\0" % size_bytes if size_bytes < _OCTAL_MAX else b"\x80" + size_bytes.to_bytes(11, "big")


def _divided(path: PurePosixPath) -> tuple[bytes, bytes] | None:
    """The directories and the name, as the two fields of a tar header hold them; None if they cannot."""
    try:
        encoded = str(path).encode()
    except UnicodeEncodeError:
        return None
    if len(encoded) <= _NAME_BYTES:
        return b"", encoded
    cut = encoded.find(b"/", max(0, len(encoded) - _NAME_BYTES - 1))
    return None if cut in (-1, len(encoded) - 1) or cut > _PREFIX_BYTES else (encoded[:cut], encoded[cut + 1 :])
