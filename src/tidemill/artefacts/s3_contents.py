"""Contents under a digest in a bucket: their names, and reading their bytes.

A name says when the bytes were last finished, by which upload, and how many they are. A small content contains its
bytes; a large one leaves them where they were uploaded.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

import httpx2

from tidemill.artefacts.s3_bucket import Bucket
from tidemill.artefacts.s3_upload import whole_key
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.clock import Instant
from tidemill.core.faults import ArtefactFault

_READ_TRIES = 5
_PIECE_BYTES = 256 * 1024


@dataclass(frozen=True, order=True)
class S3Content:
    """A name under a digest. The greater of two was finished later."""

    finished_at: Instant
    upload_id: UUID
    length_bytes: int
    digest: Digest
    here: bool
    """Whether the bytes are in the object of this name itself."""

    @property
    def key(self) -> str:
        return f"{contents_of(self.digest)}{self.finished_at:020}-{self.upload_id.hex}-{self.length_bytes}"

    @property
    def bytes_key(self) -> str:
        return self.key if self.here else whole_key(self.upload_id)


def contents_of(digest: Digest) -> str:
    return f"contents/{digest.text[:2]}/{digest.text}/"


def content_of_key(key: str, size_bytes: int) -> S3Content | None:
    """A content from its listed key; None for a key that is not ours."""
    try:
        _, _, text, name = key.split("/")
        finished_at, upload_id, length = name.split("-")
        content = S3Content(
            Instant(int(finished_at)), UUID(upload_id), int(length), Digest(text), int(length) == size_bytes
        )
    except (ValueError, AssertionError):
        return None
    return content


class S3ContentReader:
    """Reads one object. If the connection breaks, reading continues where it was."""

    def __init__(self, bucket: Bucket, content: S3Content, first: int, end: int) -> None:
        self.size_bytes = content.length_bytes
        self.first = first
        self.end = end
        self._bucket = bucket
        self._content = content
        self._at = first
        self._answer: httpx2.Response | None = None

    async def open(self) -> bool:
        """Whether the bytes are there."""
        if self._at == self.end:
            return True
        self._answer = await self._bucket.read(self._content.bytes_key, self._at, self.end)
        return self._answer is not None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(_READ_TRIES):
            try:
                if self._answer:
                    async for piece in self._answer.aiter_raw(_PIECE_BYTES):
                        self._at += len(piece)
                        yield piece
            except httpx2.TransportError:
                pass  # the next one begins where this one ended
            if self._at == self.end:
                return
            await self.close()
            if not await self.open():
                break
        raise ArtefactFault(f"{self._content.digest} could not be read to its end: look at the server.")

    async def close(self) -> None:
        answer, self._answer = self._answer, None
        if answer:
            await answer.aclose()
