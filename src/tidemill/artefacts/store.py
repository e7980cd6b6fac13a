"""What every storage of artefacts does, wherever it keeps them.

Bytes arrive in uploads, which may be interrupted, and are then kept once under their digest. Storage never has more
than a few MiB of them in memory. It knows nothing of accounts: the database says what is kept. Storage gets the
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
"""Bytes as they arrive. A chunk is valid until the next but one is requested: then its memory may be reused."""


class ArtefactRegistry(Protocol):
    """Knows what should be in storage. It is asked in batches, so that nobody lists everything at once."""

    async def uploads(self, among: Sequence[UUID]) -> Collection[UUID]: ...

    async def digests(self, among: Sequence[Digest]) -> Collection[Digest]: ...


@dataclass(frozen=True)
class SweepCount:
    """What a sweep removed."""

    uploads: int
    contents: int


class ContentReader(Protocol):
    """Reads the bytes of an artefact. They can be read to their end even if the artefact is deleted meanwhile."""

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
        """Create an upload. Repeating this changes nothing."""

    async def offset(self, upload_id: UUID) -> int | UploadRefusal:
        """Where an upload stands."""

    async def append(
        self, upload_id: UUID, offset: int, chunks: Chunks, checksum: Checksum | None = None
    ) -> int | UploadRefusal:
        """Add bytes where the upload stands. Returns the new offset; everything before it survives a power cut.

        Nothing of a refused part is kept. If the chunks break off, the received bytes are kept, unless they had a
        checksum.
        """

    async def finish(self, upload_id: UUID, expected: Digest | None, now: Instant) -> Digest | UploadRefusal:
        """Keep the bytes under their digest. May be repeated until the upload is abandoned, which has to follow."""

    async def abandon(self, upload_id: UUID) -> None:
        """Remove an upload; finished bytes stay."""

    async def size(self, digest: Digest) -> int | None:
        """How many bytes are kept under a digest; None if there are none."""

    async def open(self, digest: Digest, first: int = 0, end: int | None = None) -> ContentReader | ArtefactRefusal:
        """Read the bytes from `first` up to, not including, `end`."""

    async def delete(self, digest: Digest, older_than: Instant) -> bool:
        """Remove the bytes of a digest, unless they were finished, perhaps again, at this instant or later."""

    async def sweep(self, older_than: Instant, known: ArtefactRegistry) -> SweepCount:
        """Remove what the registry does not know. The instant is so old that everything finished before it is known by
        now."""

    async def close(self) -> None:
        """Let go of threads and connections."""
