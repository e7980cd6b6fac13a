"""Artefacts in a bucket of an S3-compatible server: `ArtefactStore` without locks and without copying.

A content under a digest has a name `contents/<ab>/<digest>/<finished at>-<upload>-<length>`. A small one contains its
bytes; a large one leaves them where they were uploaded, `wholes/<upload>/bytes`. The time is in the name, and finishing
the same bytes again makes another name. So finishing and deleting at once never conflict: deleting removes names that
are old, and finishing removes only names that are smaller than a complete one.

Some servers keep a name whose bytes broke off on their way. Such a name does not count, and nothing is removed because
of it.

The bytes of a large content are removed when neither its upload nor a name needs them. Whoever removes one of the two
looks for the other afterwards: if two do so at once, at least one sees that none is left. What a killed process had
begun to remove is noted under `leaving/`, for the next sweep. The server must answer what was last written, as they all
do.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from uuid import UUID

from tidemill.artefacts.s3_bucket import Bucket, BucketAddress
from tidemill.artefacts.s3_contents import S3Content, S3ContentReader, content_of_key, contents_of
from tidemill.artefacts.s3_upload import (
    PART_BYTES,
    HashedParts,
    PartReceiver,
    S3UploadState,
    begin_upload,
    find_upload,
    find_with_tail,
    join,
    read_back,
    read_upload_plan,
    record_key,
    whole_key,
)
from tidemill.artefacts.store import ArtefactRegistry, Chunks, SweepCount
from tidemill.artefacts.threads import Threads
from tidemill.core.artefacts.artefact import Digest, checked_range, read_digest
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.uploads import Checksum, refused_end, refused_part
from tidemill.core.clock import Instant
from tidemill.core.ids import made_at

_BATCH = 1_000
_HASHED_MAX = 1_000
_NEVER = Instant(0)


class S3Store:
    """A bucket with artefacts."""

    def __init__(self, address: BucketAddress, threads: int, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._threads = Threads(threads)
        self._bucket = Bucket(address, self._threads)
        self._busy: set[UUID] = set()
        self._hashed: OrderedDict[UUID, HashedParts] = OrderedDict()

    async def begin(self, upload_id: UUID, length_bytes: int) -> None:
        assert length_bytes >= 0
        assert upload_id.version == 7, "its age is read from its id"
        await begin_upload(self._bucket, upload_id, length_bytes, self._part_bytes)

    async def offset(self, upload_id: UUID) -> int | UploadRefusal:
        upload = await find_upload(self._bucket, upload_id)
        return upload if isinstance(upload, UploadRefusal) else upload.stands_at

    async def append(
        self, upload_id: UUID, offset: int, chunks: Chunks, checksum: Checksum | None = None
    ) -> int | UploadRefusal:
        with self._alone(upload_id) as free:
            upload = await find_with_tail(self._bucket, upload_id) if free else UploadRefusal.UPLOAD_BUSY
            if isinstance(upload, UploadRefusal):
                return upload
            if refusal := refused_part(upload.plan.length_bytes, upload.stands_at, offset):
                return refusal
            receiver = PartReceiver(self._bucket, self._threads, upload, self._hashed_of(upload_id), checksum)
            try:
                return await receiver.take(chunks)
            finally:
                self._remember(upload_id, receiver.hashed)

    async def finish(self, upload_id: UUID, expected: Digest | None, now: Instant) -> Digest | UploadRefusal:
        with self._alone(upload_id) as free:
            upload = await find_with_tail(self._bucket, upload_id) if free else UploadRefusal.UPLOAD_BUSY
            if isinstance(upload, UploadRefusal):
                return upload
            if refusal := refused_end(upload.plan.length_bytes, upload.stands_at):
                return refusal
            if upload.plan.multipart:
                return await self._finish_large(upload, expected, now)
            return await self._finish_small(upload, expected, now)

    async def abandon(self, upload_id: UUID) -> None:
        self._hashed.pop(upload_id, None)
        plan = await read_upload_plan(self._bucket, upload_id)
        if plan is None or plan.multipart:
            await self._note_leaving(upload_id)
        await self._bucket.delete(record_key(upload_id))
        async for listed in self._bucket.list(f"uploads/{upload_id}/"):
            await self._bucket.delete(listed.key)
        if plan and plan.multipart:
            await self._bucket.drop_parts(whole_key(upload_id), plan.multipart)
        await self._settle(upload_id)

    async def size(self, digest: Digest) -> int | None:
        contents = await self._complete_contents(digest)
        return contents[0].length_bytes if contents else None

    async def open(self, digest: Digest, first: int = 0, end: int | None = None) -> S3ContentReader | ArtefactRefusal:
        for content in await self._complete_contents(digest):
            span = checked_range(first, end, content.length_bytes)
            if isinstance(span, ArtefactRefusal):
                return span
            reader = S3ContentReader(self._bucket, content, *span)
            if await reader.open():
                return reader
        return ArtefactRefusal.UNKNOWN_ARTEFACT

    async def delete(self, digest: Digest, older_than: Instant) -> bool:
        contents = await self._complete_contents(digest)
        if contents and contents[0].finished_at >= older_than:
            return False
        for content in await self._all_contents(digest):
            if content.finished_at < older_than:
                await self._drop(content)
        return bool(contents)

    async def sweep(self, older_than: Instant, known: ArtefactRegistry) -> SweepCount:
        uploads = await self._sweep_uploads(older_than, known)
        contents = await self._sweep_contents(older_than, known)
        async for listed in self._bucket.list("leaving/"):
            upload_id = _read_id(listed.key.removeprefix("leaving/"))
            if upload_id and made_at(upload_id) < older_than:
                await self._settle(upload_id)
        async for key, multipart in self._bucket.uploads_in_parts("wholes/"):
            upload_id = _read_id(key.split("/")[1])
            if upload_id and made_at(upload_id) < older_than and not await self._bucket.has(record_key(upload_id)):
                await self._bucket.drop_parts(key, multipart)
        return SweepCount(uploads, contents)

    async def close(self) -> None:
        await self._bucket.close()
        self._threads.close()

    async def _finish_small(
        self, upload: S3UploadState, expected: Digest | None, now: Instant
    ) -> Digest | UploadRefusal:
        body = upload.tail
        digest = Digest(await self._threads.run(lambda: sha256(body).hexdigest()))
        if expected not in (None, digest):
            return UploadRefusal.UPLOAD_DIGEST_WRONG
        content = S3Content(now, upload.id, len(body), digest, here=True)
        await self._bucket.put(content.key, body)
        await self._drop_smaller(digest)
        return digest

    async def _finish_large(
        self, upload: S3UploadState, expected: Digest | None, now: Instant
    ) -> Digest | UploadRefusal:
        digest = await self._digest_of_whole(upload)
        if isinstance(digest, UploadRefusal):
            return digest
        if expected not in (None, digest):
            return UploadRefusal.UPLOAD_DIGEST_WRONG
        content = S3Content(now, upload.id, upload.plan.length_bytes, digest, here=False)
        await self._bucket.put(content.key, b"")
        if not await self._bucket.has(record_key(upload.id)):
            await self._drop(content)
            return UploadRefusal.UNKNOWN_UPLOAD  # it was abandoned at this moment
        await self._drop_smaller(digest)
        return digest

    async def _digest_of_whole(self, upload: S3UploadState) -> Digest | UploadRefusal:
        """The digest of the object that is, or now becomes, the whole upload. It is noted beside it, so that this
        happens once."""
        names = await self._bucket.names(f"wholes/{upload.id}/")
        for name in names:
            if isinstance(digest := read_digest(name), Digest):
                return digest
        length_bytes = upload.plan.length_bytes
        is_whole = names.get("bytes") == length_bytes
        text = None if is_whole else await join(self._bucket, upload, self._hashed_of(upload.id))
        text = text or await read_back(self._bucket, self._threads, whole_key(upload.id), length_bytes)
        if text is None:
            return UploadRefusal.UPLOAD_BUSY  # its parts changed under our hands
        await self._bucket.put(f"wholes/{upload.id}/{text}", b"")
        return Digest(text)

    async def _complete_contents(self, digest: Digest) -> Sequence[S3Content]:
        """The contents of a digest whose bytes are complete, the newest first."""
        return [content for content in await self._all_contents(digest) if await self._is_whole(content)]

    async def _all_contents(self, digest: Digest) -> Sequence[S3Content]:
        """Every content of a digest, the newest first. One whose request broke off has no bytes."""
        contents = [
            content_of_key(listed.key, listed.size_bytes) async for listed in self._bucket.list(contents_of(digest))
        ]
        return sorted((content for content in contents if content), reverse=True)

    async def _is_whole(self, content: S3Content) -> bool:
        return content.here or await self._bucket.size(content.bytes_key) == content.length_bytes

    async def _drop_smaller(self, digest: Digest, older_than: Instant = _NEVER) -> None:
        """Drop the names that are older than the newest complete one. A newer name without its bytes goes, too, once it
        is so old that nobody is writing it any more."""
        contents = await self._all_contents(digest)
        for number, content in enumerate(contents):
            if await self._is_whole(content):
                broken_off = (other for other in contents[:number] if other.finished_at < older_than)
                for other in (*broken_off, *contents[number + 1 :]):
                    await self._drop(other)
                return

    async def _drop(self, content: S3Content) -> None:
        if not content.here:
            await self._note_leaving(content.upload_id)
        await self._bucket.delete(content.key)
        if not content.here:
            await self._settle(content.upload_id)

    async def _note_leaving(self, upload_id: UUID) -> None:
        await self._bucket.put(f"leaving/{upload_id}", b"")

    async def _settle(self, upload_id: UUID) -> None:
        """Remove the bytes of a large upload if nothing needs them any more."""
        if not await self._is_needed(upload_id):
            async for listed in self._bucket.list(f"wholes/{upload_id}/"):
                await self._bucket.delete(listed.key)
        await self._bucket.delete(f"leaving/{upload_id}")

    async def _is_needed(self, upload_id: UUID) -> bool:
        if await self._bucket.has(record_key(upload_id)):
            return True
        for name in await self._bucket.names(f"wholes/{upload_id}/"):
            digest = read_digest(name)
            if isinstance(digest, Digest) and any(
                content.upload_id == upload_id for content in await self._all_contents(digest)
            ):
                return True
        return False

    async def _sweep_uploads(self, older_than: Instant, known: ArtefactRegistry) -> int:
        batch: set[UUID] = set()
        swept = 0
        async for listed in self._bucket.list("uploads/"):
            upload_id = _read_id(listed.key.split("/")[1])
            if upload_id and made_at(upload_id) < older_than:
                batch.add(upload_id)
            if len(batch) == _BATCH:
                swept += await self._abandon_unknown(batch, known)
        return swept + await self._abandon_unknown(batch, known)

    async def _abandon_unknown(self, batch: set[UUID], known: ArtefactRegistry) -> int:
        unknown = batch - set(await known.uploads(sorted(batch)))
        batch.clear()
        for upload_id in unknown:
            await self.abandon(upload_id)
        return len(unknown)

    async def _sweep_contents(self, older_than: Instant, known: ArtefactRegistry) -> int:
        batch: dict[Digest, int] = {}
        swept = 0
        async for listed in self._bucket.list("contents/"):
            content = content_of_key(listed.key, listed.size_bytes)
            if content and content.finished_at < older_than:
                batch[content.digest] = batch.get(content.digest, 0) + 1
            if len(batch) == _BATCH:
                swept += await self._delete_unknown(batch, older_than, known)
        return swept + await self._delete_unknown(batch, older_than, known)

    async def _delete_unknown(self, batch: dict[Digest, int], older_than: Instant, known: ArtefactRegistry) -> int:
        """Delete unknown digests, and of known ones the names that a killed process has left beside a newer one."""
        kept = set(await known.digests(sorted(batch)))
        swept = 0
        for digest, names in batch.items():
            if digest not in kept:
                swept += await self.delete(digest, older_than)
            elif names > 1:
                await self._drop_smaller(digest, older_than)
        batch.clear()
        return swept

    @contextmanager
    def _alone(self, upload_id: UUID) -> Iterator[bool]:
        """Whether nobody else in this process works on the upload. Other processes do no harm."""
        free = upload_id not in self._busy
        self._busy.add(upload_id)
        try:
            yield free
        finally:
            if free:
                self._busy.discard(upload_id)

    def _hashed_of(self, upload_id: UUID) -> HashedParts:
        return self._hashed.get(upload_id) or HashedParts()

    def _remember(self, upload_id: UUID, hashed: HashedParts) -> None:
        self._hashed[upload_id] = hashed
        self._hashed.move_to_end(upload_id)
        if len(self._hashed) > _HASHED_MAX:
            self._hashed.popitem(last=False)


def _read_id(name: str) -> UUID | None:
    try:
        return UUID(name)
    except ValueError:
        return None
