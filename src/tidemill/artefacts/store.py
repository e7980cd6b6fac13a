"""What every storage of artefacts does, wherever it keeps them.

Bytes come in by uploads, which may be interrupted, and are then held once under their digest. Storage never has more
than a few MiB of them in memory. It knows nothing of accounts: the database says what is kept, and storage is told the
database's time, so that clocks of different machines are never compared.
"""

from collections.abc import AsyncIterable, AsyncIterator, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.uploads import Checksum
from tidemill.core.clock import Instant

Chunks: TypeAlias = AsyncIterable[bytes | memoryview]
"""Bytes as they arrive. A chunk counts until the next but one is asked for: then its memory may be used again."""


class ArtefactRegistry(Protocol):
    """Whoever knows what should be there: asked in batches, so that nobody lists everything at once."""

    async def uploads(self, among: Sequence[UUID]) -> Collection[UUID]: ...

    async def digests(self, among: Sequence[Digest]) -> Collection[Digest]: ...


@dataclass(frozen=True)
class SweepCount:
    """What a sweep removed."""

    uploads: int
    contents: int


class ContentReader(Protocol):
    """Bytes being read. They can be read to their end even if the artefact is deleted meanwhile."""

    size_bytes: int
    """Of the whole artefact."""
    first: int
    end: int

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def close(self) -> None:
        """Must be called, also after the end."""


class ArtefactStore(Protocol):
    """Where artefacts are. Any number of processes may use one."""

    async def begin(self, upload_id: UUID, length_bytes: int) -> None:
        """Make place for an upload. Doing so again changes nothing."""

    async def offset(self, upload_id: UUID) -> int | UploadRefusal:
        """Where an upload stands."""

    async def append(
        self, upload_id: UUID, offset: int, chunks: Chunks, checksum: Checksum | None = None
    ) -> int | UploadRefusal:
        """Add bytes where the upload stands. Answers the new offset; all before it survives a power cut.

        Nothing of a refused part is kept. If the chunks break off, what came is kept, unless it had a checksum.
        """

    async def finish(self, upload_id: UUID, expected: Digest | None, now: Instant) -> Digest | UploadRefusal:
        """Hold the bytes under their digest. May be repeated until the upload is abandoned, which it is to be then."""

    async def abandon(self, upload_id: UUID) -> None:
        """Remove an upload; what was finished stays."""

    async def size(self, digest: Digest) -> int | None:
        """How many bytes are held under a digest; None if there are none."""

    async def open(self, digest: Digest, first: int = 0, end: int | None = None) -> ContentReader | ArtefactRefusal:
        """Read the bytes from `first` up to, not including, `end`."""

    async def delete(self, digest: Digest, older_than: Instant) -> bool:
        """Remove what is held under a digest, unless it was finished, once more maybe, at this instant or later."""

    async def sweep(self, older_than: Instant, known: ArtefactRegistry) -> SweepCount:
        """Remove what nobody knows of. The instant is so long ago that what was finished before it is known by now."""

    async def close(self) -> None:
        """Let go of threads and connections."""
