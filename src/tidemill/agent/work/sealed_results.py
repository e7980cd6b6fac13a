"""Turns a task's result files into what the pool gets: one archive, hashed and sealed, inline or in a file.

Whatever the files' size, only a few pieces are in memory.

It waits for the disk: call it in a thread. The task's processes have ended, so nobody changes the files meanwhile.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tidemill.agent.sandboxes.outputs import open_output
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.faults import AgentFault
from tidemill.core.jobs import result_archives
from tidemill.core.jobs.result_archives import ResultFilesRefusal
from tidemill.core.jobs.results import INLINE_MAX_BYTES, ResultBinding, envelope, seal

_READ_BYTES = 1024 * 1024


@dataclass(frozen=True)
class SealedResult:
    """A result as its receipt describes it: inline, or an artefact in the written file."""

    result_sha256: bytes
    inline: bytes
    artefact: Digest | None
    envelopes: tuple[bytes, ...]


@dataclass(frozen=True)
class ResultRecipients:
    """Who can open the result, the key that seals it, and its attempt. Without readers it is not sealed."""

    readers: Sequence[bytes]
    key: bytes
    bound: ResultBinding


class SealingStopped(Exception):
    """Nobody wants the result any more."""


def seal_files(
    out: Path, files: Sequence[PurePosixPath], to: ResultRecipients, into: Path, is_wanted: Callable[[], bool]
) -> SealedResult | ResultFilesRefusal:
    """Seal the files below a directory. A result that is too large for a receipt is written to `into`."""
    if not all(map(result_archives.fits, files)):
        return ResultFilesRefusal.FILE_NAME_UNFIT
    sizes = {path: _size(out, path) for path in files}
    plain = hashlib.sha256()
    chunks = _hashed(_archive(out, sizes), plain.update)
    sealed = seal(chunks, to.key, to.bound) if to.readers else chunks
    envelopes = tuple(envelope(to.key, reader, to.bound) for reader in to.readers)
    if result_archives.archived_bytes(sizes.values()) <= INLINE_MAX_BYTES:
        inline = b"".join(sealed)
        return SealedResult(plain.digest(), inline, None, envelopes)
    digest = _write(sealed, into, is_wanted)
    return SealedResult(plain.digest(), b"", digest, envelopes)


def _archive(out: Path, sizes: dict[PurePosixPath, int]) -> Iterator[bytes]:
    for path in result_archives.in_order(sizes):
        yield result_archives.file_header(path, sizes[path])
        yield from _content(out, path, sizes[path])
        yield result_archives.padding(sizes[path])
    yield result_archives.END


def _content(out: Path, path: PurePosixPath, size_bytes: int) -> Iterator[bytes]:
    with os.fdopen(open_output(out, path), "rb", buffering=0) as file:
        while chunk := file.read(_READ_BYTES):
            size_bytes -= len(chunk)
            yield chunk
    assert size_bytes == 0, "a file changed while it was read"


def _size(out: Path, path: PurePosixPath) -> int:
    descriptor = open_output(out, path)
    try:
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _hashed(chunks: Iterable[bytes], update: Callable[[bytes], object]) -> Iterator[bytes]:
    for chunk in chunks:
        update(chunk)
        yield chunk


def _write(chunks: Iterable[bytes], into: Path, is_wanted: Callable[[], bool]) -> Digest:
    """Write a file durably. Its receipt is written afterwards, so an incomplete file has none."""
    digest = hashlib.sha256()
    try:
        with into.open("wb") as file:
            for chunk in _hashed(chunks, digest.update):
                if not is_wanted():
                    raise SealingStopped
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise AgentFault(
            f"The result cannot be written to {into.parent} ({error.strerror}): make room there."
        ) from None
    return Digest(digest.hexdigest())
