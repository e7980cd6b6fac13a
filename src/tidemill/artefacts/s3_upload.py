"""An upload to an S3-compatible server: where it stands, adding to it, and making one object of it.

`uploads/<id>/begun` contains its length. Parts of one size go to the server as they arrive, and every confirmed offset
is an object `uploads/<id>/at-<offset>` with the bytes after the last whole part: the upload stands at the largest
offset. So a confirmed offset is never taken back, whoever else writes. An unconfirmed part is sent again; some servers
keep both, so `uploads/<id>/tags-<part>` says which ones were confirmed. When a request breaks off, some servers keep
the beginning of an object, or an empty one: an object without its full size does not count, and is written again.

Servers do not return the parts of an unfinished upload. So this process hashes parts as they arrive, and the hash
counts only for an object that is made of exactly these parts. After a restart, or when requests went to several
processes, the object is read back once, at the end: that costs one more transfer, and never gives a wrong digest.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tidemill.artefacts.s3_bucket import Bucket, UploadedPart
from tidemill.artefacts.store import Chunks
from tidemill.artefacts.threads import Threads, whole
from tidemill.core.artefacts.refusals import UploadRefusal
from tidemill.core.artefacts.uploads import Checksum, Hash, refused_part
from tidemill.core.faults import ArtefactFault

if TYPE_CHECKING:
    from hashlib import _Hash

MIB = 1024 * 1024
PART_BYTES = 8 * MIB
"""A part fits in memory, and is at least 5 MiB: the server's rule."""

PARTS_MAX = 10_000
_CONFIRM_EVERY_BYTES = 64 * MIB
_LOOKS = 5


@dataclass
class HashedParts:
    """The parts that this process hashed, from the first on. It may be dropped at any time."""

    tags: list[str] = field(default_factory=list)
    state: "_Hash" = field(default_factory=hashlib.sha256)

    def copy(self) -> "HashedParts":
        return HashedParts([*self.tags], self.state.copy())


@dataclass(frozen=True)
class S3UploadPlan:
    """What was decided when an upload began. `multipart` is the server's name of an upload in parts, if it has any."""

    length_bytes: int
    part_bytes: int
    multipart: str | None

    @property
    def parts(self) -> int:
        """How many parts there are in all."""
        return -(-self.length_bytes // self.part_bytes)

    def tail_of(self, stands_at: int) -> int:
        """How many bytes follow the last whole part."""
        return stands_at % self.part_bytes if self.multipart else stands_at

    def size_of(self, number: int) -> int:
        """How many bytes a part has."""
        return min(self.part_bytes, self.length_bytes - (number - 1) * self.part_bytes)


@dataclass(frozen=True)
class S3UploadState:
    """The state of an upload. `tail` are the bytes after the last whole part, where the caller needs them."""

    id: UUID
    plan: S3UploadPlan
    stands_at: int
    tail: bytes = b""


def record_key(upload_id: UUID) -> str:
    return f"uploads/{upload_id}/begun"


def whole_key(upload_id: UUID) -> str:
    return f"wholes/{upload_id}/bytes"


def tags_key(upload_id: UUID, number: int) -> str:
    return f"uploads/{upload_id}/tags-{number:05}"


def at_key(upload_id: UUID, offset: int) -> str:
    return f"uploads/{upload_id}/at-{offset:020}"


async def begin_upload(bucket: Bucket, upload_id: UUID, length_bytes: int, part_bytes: int) -> None:
    """Create an upload, unless it exists."""
    if await read_upload_plan(bucket, upload_id):
        return
    part_bytes = max(part_bytes, -(-length_bytes // PARTS_MAX))
    multipart = await bucket.begin_parts(whole_key(upload_id)) if length_bytes > part_bytes else None
    record = {"length_bytes": length_bytes, "part_bytes": part_bytes, "multipart": multipart}
    await bucket.put(record_key(upload_id), json.dumps(record).encode())


async def read_upload_plan(bucket: Bucket, upload_id: UUID) -> S3UploadPlan | None:
    """The plan of an upload; None if there is no such upload, or if the request that wrote it broke off."""
    record = _read_whole(await bucket.get(record_key(upload_id)))
    return None if record is None else S3UploadPlan(**record)


async def find_upload(bucket: Bucket, upload_id: UUID) -> S3UploadState | UploadRefusal:
    """Where an upload stands."""
    plan = await read_upload_plan(bucket, upload_id)
    if plan is None:
        return UploadRefusal.UNKNOWN_UPLOAD
    names = await bucket.names(f"uploads/{upload_id}/at-")
    offsets = (offset for name, size in names.items() if plan.tail_of(offset := int(name)) == size)
    return S3UploadState(upload_id, plan, max(offsets, default=0))


async def find_with_tail(bucket: Bucket, upload_id: UUID) -> S3UploadState | UploadRefusal:
    """Where an upload stands, with its tail. It may move between the two reads, by another process or by a late request
    of a killed one. Then both are read again."""
    for _ in range(_LOOKS):
        upload = await find_upload(bucket, upload_id)
        if isinstance(upload, UploadRefusal):
            return upload
        size = upload.plan.tail_of(upload.stands_at)
        tail = await bucket.get(at_key(upload_id, upload.stands_at)) if size else b""
        if tail is not None and len(tail) == size:
            return replace(upload, tail=tail)
    raise ArtefactFault(f"The upload {upload_id} is not what it was: somebody else changes the bucket.")


class PartReceiver:
    """Receives a part of an upload from one request. `hashed` covers what is confirmed."""

    def __init__(
        self, bucket: Bucket, threads: Threads, upload: S3UploadState, hashed: HashedParts, checksum: Checksum | None
    ) -> None:
        self._bucket = bucket
        self._threads = threads
        self._upload = upload
        self._plan = upload.plan
        self.hashed = hashed
        self._hashing = hashed.copy() if len(hashed.tags) == self._sent(upload.stands_at) else HashedParts()
        self._tags: list[str] = []
        self._checksum = checksum
        self._checksum_hash: Hash | None = checksum.hash() if checksum else None
        self._rest = bytearray(upload.tail)
        self._left = memoryview(b"")
        self._at = upload.stands_at
        self._confirmed = [upload.stands_at]

    async def take(self, chunks: Chunks) -> int | UploadRefusal:
        """Add chunks, and return the new offset. Nothing of a refused part is kept."""
        try:
            refusal = await self._take(chunks)
        except BaseException:
            if not self._checksum:
                self._gather()
                await whole(self._confirm(last=True))
            raise
        if not refusal and self._checksum and self._checksum_hash and not self._checksum.fits(self._checksum_hash):
            refusal = UploadRefusal.UPLOAD_CHECKSUM_WRONG
        if refusal:
            await self._forget(self._confirmed[1:])
            return refusal
        await whole(self._confirm(last=True))
        return self._at

    async def _take(self, chunks: Chunks) -> UploadRefusal | None:
        async for chunk in chunks:
            if refusal := refused_part(self._plan.length_bytes, self._at, self._at, len(chunk)):
                return refusal
            if self._checksum_hash:
                self._checksum_hash.update(chunk)
            self._left = memoryview(chunk)
            while self._left:
                self._gather()
                if len(self._rest) == self._plan.part_bytes and (refusal := await whole(self._send_part())):
                    return refusal
        return None

    def _gather(self) -> None:
        """Move received bytes to the rest, as far as a part has room."""
        taken = self._left[: self._plan.part_bytes - len(self._rest)]
        self._rest += taken
        self._at += len(taken)
        self._left = self._left[len(taken) :]

    async def _send_part(self) -> UploadRefusal | None:
        if not self._plan.multipart:
            return None
        number = self._at // self._plan.part_bytes
        body = bytes(self._rest)
        part = await self._bucket.put_part(whole_key(self._upload.id), self._plan.multipart, number, body)
        if part is None:
            return UploadRefusal.UNKNOWN_UPLOAD  # it was finished or abandoned meanwhile
        self._rest.clear()
        self._tags.append(part.tag)
        await self._threads.run(_hash, self._hashing, part, body)
        if not self._checksum and self._at - self._confirmed[-1] >= _CONFIRM_EVERY_BYTES:
            await self._confirm(last=False)
        return None

    async def _confirm(self, *, last: bool) -> None:
        """Confirm the current offset. The first offset is kept until the last call, because the upload may return to
        it."""
        if len(self._rest) > self._plan.tail_of(self._at):  # a whole part that the server did not take
            self._at -= len(self._rest)
            self._rest.clear()
        if self._at <= self._confirmed[-1]:
            return
        if self._tags:
            first = self._sent(self._at) - len(self._tags) + 1
            await self._bucket.put(tags_key(self._upload.id, first), json.dumps(self._tags).encode())
            self._tags.clear()
        await self._bucket.put(at_key(self._upload.id, self._at), bytes(self._rest))
        self.hashed = self._hashing.copy()
        outdated = self._confirmed[0 if last else 1 :]
        self._confirmed = [*self._confirmed[: 0 if last else 1], self._at]
        await self._forget(outdated)

    def _sent(self, at: int) -> int:
        """How many whole parts there are before an offset."""
        return at // self._plan.part_bytes if self._plan.multipart else 0

    async def _forget(self, offsets: list[int]) -> None:
        for offset in offsets:
            await self._bucket.delete(at_key(self._upload.id, offset))


async def join(bucket: Bucket, upload: S3UploadState, hashed: HashedParts) -> str | None:
    """Make one object of a complete upload in parts. Returns its digest's text if that is known without reading."""
    plan, key = upload.plan, whole_key(upload.id)
    assert plan.multipart
    assert upload.stands_at == plan.length_bytes
    last = await bucket.put_part(key, plan.multipart, plan.parts, upload.tail) if upload.tail else None
    wanted = hashed.tags if len(hashed.tags) == plan.parts - bool(last) else await _confirmed_tags(bucket, upload.id)
    listed = await bucket.parts(key, plan.multipart) or ()
    parts = _chosen([part for part in listed if part.size_bytes == plan.size_of(part.number)], wanted, last)
    if sum(part.size_bytes for part in parts) != plan.length_bytes:
        return None
    digest = _digest(hashed, [part.tag for part in parts], last, upload.tail)
    return digest if await bucket.join_parts(key, plan.multipart, parts) else None


async def read_back(bucket: Bucket, threads: Threads, key: str, length_bytes: int) -> str | None:
    """The digest of an object, from all its bytes; None if it does not exist."""
    answer = await bucket.read(key, 0, length_bytes)
    if answer is None:
        return None
    state, read = hashlib.sha256(), 0
    try:
        async for piece in answer.aiter_raw(MIB):
            await threads.run(state.update, piece)
            read += len(piece)
    finally:
        await answer.aclose()
    if read != length_bytes:
        raise ArtefactFault(f"{key} is shorter than it was: look at the server.")
    return state.hexdigest()


async def _confirmed_tags(bucket: Bucket, upload_id: UUID) -> list[str]:
    """The confirmed tags of whole parts, from the first on."""
    tags: list[str] = []
    for name in sorted(await bucket.names(f"uploads/{upload_id}/tags-")):
        text = await bucket.get(tags_key(upload_id, int(name)))
        tags[int(name) - 1 :] = _read_whole(text) or []
    return tags


def _read_whole(text: bytes | None) -> Any:
    """The stored JSON; None if there is none, or only its beginning."""
    try:
        return json.loads(text or b"null")
    except ValueError:
        return None


def _chosen(parts: Sequence[UploadedPart], wanted: Sequence[str], last: UploadedPart | None) -> list[UploadedPart]:
    """One part for each number: the confirmed one, where a server kept several."""
    wanted = [*wanted, last.tag] if last else wanted
    chosen: dict[int, UploadedPart] = {}
    for part in parts:
        is_wanted = part.number <= len(wanted) and wanted[part.number - 1] == part.tag
        if is_wanted or part.number not in chosen:
            chosen[part.number] = part
    return [chosen[number] for number in sorted(chosen)]


def _hash(hashed: HashedParts, part: UploadedPart, body: bytes) -> None:
    if len(hashed.tags) == part.number - 1:
        hashed.tags.append(part.tag)
        hashed.state.update(body)


def _digest(hashed: HashedParts, tags: list[str], last: UploadedPart | None, rest: bytes) -> str | None:
    """The digest, if the hashed parts are the ones that the server has."""
    if tags != hashed.tags + ([last.tag] if last else []):
        return None
    state = hashed.state.copy()
    state.update(rest)
    return state.hexdigest()
