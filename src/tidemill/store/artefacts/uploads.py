"""Uploads in the database: who owns them, how much room they will need, and until when they wait.

Room is reserved in the transaction that begins an upload and given back in the one that ends it. A finished upload is
kept until it expires, so that a client that missed the answer can ask for the result.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.artefacts.artefact import Digest, Purpose
from tidemill.core.artefacts.grants import refused_result
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.retention import OverQuota, counted_bytes, refused_room
from tidemill.core.artefacts.uploads import FINISHED_KEEP_US, UPLOADS_MAX, Upload, expires_at
from tidemill.core.clock import Instant
from tidemill.store.artefacts import artefact_grants, artefact_usage
from tidemill.store.query import Connection, Query


class _UploadRow(NamedTuple):
    id: UUID
    account_id: UUID
    begun_by: UUID
    purpose: Purpose
    name: str
    length_bytes: int
    expected: str | None
    expires_at: Instant
    attempt_id: UUID | None
    artefact_id: UUID | None

    def upload(self) -> Upload:
        return Upload(*self[:6], Digest(self.expected) if self.expected else None, *self[7:])


class _EndedRow(NamedTuple):
    account_id: UUID
    length_bytes: int
    artefact_id: UUID | None


_BEGIN = Query("artefacts/upload/begin")
_UNDER_WAY = Query("artefacts/upload/under_way", int)
_FIND = Query("artefacts/upload/find", _UploadRow)
_OF_ATTEMPT = Query("artefacts/upload/of_attempt", UUID)
_TOUCH = Query("artefacts/upload/touch")
_FINISH = Query("artefacts/upload/finish", _UploadRow)
_END = Query("artefacts/upload/end", _EndedRow)
_OVERDUE = Query("artefacts/upload/overdue", _UploadRow)
_KNOWN = Query("artefacts/upload/known", UUID)

BeginRefusal: TypeAlias = OverQuota | ArtefactRefusal | UploadRefusal


@dataclass(frozen=True)
class SizeRules:
    """The largest artefact, and the most that one account may keep."""

    size_max_bytes: int
    quota_bytes: int


async def begin(transaction: Connection, upload: Upload, rules: SizeRules) -> BeginRefusal | None:
    """Begin an upload of an account, if there is room for its declared length."""
    room = await artefact_usage.room(transaction, upload.account_id, rules.quota_bytes)
    if refusal := refused_room(room, upload.length_bytes, rules.size_max_bytes):
        return refusal
    if await _UNDER_WAY.only(transaction, account_id=upload.account_id) >= UPLOADS_MAX:
        return UploadRefusal.TOO_MANY_UPLOADS
    await _begin(transaction, upload)
    return None


async def begin_result(
    transaction: Connection, upload: Upload, attempt_id: UUID, now: Instant
) -> tuple[Upload, UUID | None] | ArtefactRefusal | UploadRefusal:
    """Begin the upload of an attempt's result, by its node. It belongs to the account that the attempt works for.

    An attempt has one upload: if one is under way, it ends, and its id is returned, so that storage can remove it.
    """
    grant = await artefact_grants.of_result(transaction, upload.begun_by, attempt_id)
    if refusal := refused_result(grant, upload.length_bytes, now):
        return refusal
    assert grant
    await artefact_usage.room(transaction, grant.account_id)
    if not await artefact_grants.still(transaction, grant):
        return UploadRefusal.UPLOAD_NOT_GRANTED
    result = replace(upload, account_id=grant.account_id, attempt_id=attempt_id)
    earlier_id = await _OF_ATTEMPT.row(transaction, attempt_id=attempt_id)
    if earlier_id is not None:
        await _end(transaction, earlier_id, overdue_at=None)
    await _begin(transaction, result)
    return result, earlier_id


async def get(connection: Connection, upload_id: UUID) -> Upload | None:
    row = await _FIND.row(connection, id=upload_id)
    return row.upload() if row else None


async def touch(connection: Connection, upload_id: UUID, expires_at: Instant, now: Instant) -> None:
    """Extend an upload that has received bytes."""
    await _TOUCH.run(connection, id=upload_id, expires_at=expires_at, now=now)


async def finish(transaction: Connection, upload_id: UUID, artefact_id: UUID, now: Instant) -> Upload | None:
    """Mark an upload as finished; None if it is not under way. The caller holds the account's sums."""
    row = await _FINISH.row(
        transaction, id=upload_id, artefact_id=artefact_id, until=expires_at(now, FINISHED_KEEP_US), now=now
    )
    return row.upload() if row else None


async def end(transaction: Connection, upload: Upload, overdue_at: Instant | None = None) -> bool:
    """End an upload, or delete a finished one; with a time, only if it is overdue by then. Returns whether it is over
    now."""
    await artefact_usage.room(transaction, upload.account_id)
    return await _end(transaction, upload.id, overdue_at=overdue_at)


async def overdue(connection: Connection, now: Instant, limit: int) -> Sequence[Upload]:
    """Uploads that have waited too long, and finished ones that nobody asks about any more."""
    return [row.upload() for row in await _OVERDUE.rows(connection, now=now, limit=limit)]


async def known(connection: Connection, among: Sequence[UUID]) -> Collection[UUID]:
    """Which of these uploads are under way."""
    return await _KNOWN.rows(connection, ids=list(among))


async def _begin(transaction: Connection, upload: Upload) -> None:
    await artefact_usage.count(transaction, upload.account_id, reserved=counted_bytes(upload.length_bytes))
    await _BEGIN.run(
        transaction,
        id=upload.id,
        account_id=upload.account_id,
        begun_by=upload.begun_by,
        purpose=upload.purpose,
        name=upload.name,
        length_bytes=upload.length_bytes,
        expected=upload.expected.text if upload.expected else None,
        attempt_id=upload.attempt_id,
        expires_at=upload.expires_at,
    )


async def _end(transaction: Connection, upload_id: UUID, *, overdue_at: Instant | None) -> bool:
    ended = await _END.row(transaction, id=upload_id, overdue_at=overdue_at)
    if ended is None:
        return False
    if ended.artefact_id is None:
        await artefact_usage.count(transaction, ended.account_id, reserved=-counted_bytes(ended.length_bytes))
    return True
