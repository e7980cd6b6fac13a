"""Artefacts in the database: who keeps which bytes, and which bytes nobody keeps any more.

Whoever changes what an account keeps locks the row with its sums, so the sums always match the rows. A reference to
bytes is counted in the transaction that makes or ends it. The row of the bytes is written soon after storage has them,
and deleted after storage has deleted them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from tidemill.core.artefacts.access import AccountCaller, refused_deleting
from tidemill.core.artefacts.artefact import Artefact, Digest, Purpose
from tidemill.core.artefacts.events import ArtefactDeleted, ArtefactExpired, ArtefactMade, ArtefactRemoved
from tidemill.core.artefacts.refusals import ArtefactRefusal, UploadRefusal
from tidemill.core.artefacts.retention import Content, counted_bytes
from tidemill.core.artefacts.uploads import Upload
from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.reasons import checked_reason
from tidemill.core.refusals import Refusal
from tidemill.store.artefacts import artefact_grants, artefact_usage, uploads
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


class _ArtefactRow(NamedTuple):
    id: UUID
    account_id: UUID
    digest: str
    size_bytes: int
    purpose: Purpose
    name: str
    made_at: Instant
    attempt_id: UUID | None

    def artefact(self) -> Artefact:
        return Artefact(self.id, self.account_id, Digest(self.digest), *self[3:])


class ReferredContent(NamedTuple):
    """Bytes that some artefact refers to."""

    digest: str
    size_bytes: int


class _OwnedRow(NamedTuple):
    id: UUID
    account_id: UUID


class _ContentRow(NamedTuple):
    digest: str
    size_bytes: int
    refers: int
    idle_since: Instant


_FIND = Query("artefacts/artefact/find", _ArtefactRow)
_OWN = Query("artefacts/artefact/own", _ArtefactRow)
_LOCK = Query("artefacts/artefact/lock", _ArtefactRow)
_LIST = Query("artefacts/artefact/list", _ArtefactRow)
_MAKE = Query("artefacts/artefact/make")
_DELETE = Query("artefacts/artefact/delete")
_NEEDED = Query("artefacts/artefact/needed", int)
_HOLD = Query("artefacts/artefact/hold")
_LET_GO = Query("artefacts/artefact/let_go")
_OF_DELETED_ACCOUNTS = Query("artefacts/artefact/of_deleted_accounts", _OwnedRow)
_IDLE = Query("artefacts/artefact/idle", _ContentRow)
_FORGET = Query("artefacts/artefact/forget")
_KNOWN = Query("artefacts/artefact/known", str)
_REFERRED = Query("artefacts/artefact/referred", ReferredContent)
_USE = Query("artefacts/artefact/use", UUID)
_RELEASE = Query("artefacts/artefact/release")
_OF_ATTEMPT = Query("artefacts/artefact/of_attempt", _OwnedRow)


@dataclass(frozen=True)
class ArtefactFilter:
    """Which artefacts a list is about; without an owner those of all accounts."""

    owner: UUID | None = None
    purpose: Purpose | None = None
    digest: Digest | None = None


@dataclass(frozen=True)
class Deletion:
    """Who deletes, and why. Owners need no reason to delete their own artefacts."""

    caller: AccountCaller
    by: str
    reason: str = ""


async def listed(
    connection: Connection, filter_: ArtefactFilter, after_id: UUID | None, limit: int
) -> Sequence[Artefact]:
    """Artefacts, newest first."""
    rows = await _LIST.rows(
        connection,
        owner=filter_.owner,
        purpose=filter_.purpose,
        digest=filter_.digest.text if filter_.digest else None,
        after=after_id,
        limit=limit,
    )
    return [row.artefact() for row in rows]


async def get(connection: Connection, artefact_id: UUID) -> Artefact | None:
    row = await _FIND.row(connection, id=artefact_id)
    return row.artefact() if row else None


async def own(connection: Connection, artefact_ids: Sequence[UUID], account_id: UUID) -> Mapping[UUID, Artefact]:
    """Those of these artefacts that an account has. Another's are left out, as if they did not exist."""
    if not artefact_ids:
        return {}
    rows = await _OWN.rows(connection, ids=artefact_ids, account_id=account_id)
    return {row.id: row.artefact() for row in rows}


async def locked(transaction: Connection, artefact_id: UUID) -> Artefact | None:
    """One artefact, locked until the transaction ends."""
    row = await _LOCK.row(transaction, id=artefact_id)
    return row.artefact() if row else None


async def keep(transaction: Connection, upload: Upload, digest: Digest, ids: Ids, now: Instant) -> UUID | UploadRefusal:
    """Keep finished bytes as an artefact. A repeated call returns the same artefact."""
    await artefact_usage.room(transaction, upload.account_id)
    if upload.attempt_id is not None:
        await artefact_grants.use_up(transaction, upload.attempt_id)
    artefact_id = ids.new(now)
    finished = await uploads.finish(transaction, upload.id, artefact_id, now)
    if finished is None:
        finished_before = await uploads.get(transaction, upload.id)
        return (
            finished_before.artefact_id
            if finished_before and finished_before.artefact_id
            else UploadRefusal.UNKNOWN_UPLOAD
        )
    size_bytes = finished.length_bytes
    counted = counted_bytes(size_bytes)
    await artefact_usage.count(transaction, finished.account_id, used=counted, reserved=-counted)
    await _HOLD.run(transaction, digest=digest.text, size_bytes=size_bytes)
    await _MAKE.run(
        transaction,
        id=artefact_id,
        account_id=finished.account_id,
        digest=digest.text,
        size_bytes=size_bytes,
        purpose=finished.purpose,
        name=finished.name,
        attempt_id=finished.attempt_id,
        now=now,
    )
    event = ArtefactMade(
        finished.account_id, artefact_id, digest.text, size_bytes, finished.purpose.value, finished.name
    )
    await events.append(transaction, [event], ids, now)
    return artefact_id


async def delete(
    transaction: Connection, artefact_id: UUID, deleting: Deletion, ids: Ids, now: Instant
) -> Artefact | Refusal:
    """Delete an artefact that nothing needs. Its bytes stay for a while, and for others who keep them, too."""
    unlocked = await get(transaction, artefact_id)
    if unlocked is None:
        return ArtefactRefusal.UNKNOWN_ARTEFACT
    await artefact_usage.room(transaction, unlocked.account_id)
    artefact = await locked(transaction, artefact_id)
    if artefact is None:
        return ArtefactRefusal.UNKNOWN_ARTEFACT
    if refusal := refused_deleting(artefact, deleting.caller, await _NEEDED.only(transaction, id=artefact_id)):
        return refusal
    own = deleting.caller.account_id == artefact.account_id
    reason = "" if own else checked_reason(deleting.reason)
    if isinstance(reason, Refusal):
        return reason
    await _delete(transaction, artefact, now)
    event = (
        ArtefactDeleted(artefact.account_id, artefact.id, artefact.digest.text, artefact.name)
        if own
        else ArtefactRemoved(artefact.account_id, artefact.id, artefact.digest.text, artefact.name, reason, deleting.by)
    )
    await events.append(transaction, [event], ids, now)
    return artefact


async def expire(transaction: Connection, artefact_id: UUID, ids: Ids, now: Instant) -> bool:
    """Delete an artefact that nobody pays for, unless something needs it by now. Returns whether it is gone."""
    unlocked = await get(transaction, artefact_id)
    if unlocked is None:
        return False
    await artefact_usage.room(transaction, unlocked.account_id)
    artefact = await locked(transaction, artefact_id)
    if artefact is None or await _NEEDED.only(transaction, id=artefact_id):
        return False
    await _delete(transaction, artefact, now)
    event = ArtefactExpired(artefact.account_id, artefact.id, artefact.digest.text, artefact.name)
    await events.append(transaction, [event], ids, now)
    return True


async def of_deleted_accounts(connection: Connection, limit: int) -> Sequence[tuple[UUID, UUID]]:
    """Artefacts of deleted accounts that nothing needs, each with its former owner."""
    return await _OF_DELETED_ACCOUNTS.rows(connection, limit=limit)


async def use(transaction: Connection, needs: Sequence[tuple[UUID, UUID]]) -> Collection[UUID]:
    """Note which artefacts unfinished tasks need, as pairs of task and artefact ids. Returns the artefacts that exist;
    none of them can be deleted from now on."""
    task_ids, artefact_ids = [task for task, _ in needs], [artefact for _, artefact in needs]
    return set(await _USE.rows(transaction, task_ids=task_ids, artefact_ids=artefact_ids))


async def release(connection: Connection, task_ids: Sequence[UUID]) -> None:
    """Note that these tasks ended and need no artefact any more."""
    await _RELEASE.run(connection, task_ids=task_ids)


async def let_go_of_result(transaction: Connection, attempt_id: UUID, now: Instant) -> None:
    """Delete what an attempt uploaded, because nobody wants it any more."""
    owned = await _OF_ATTEMPT.row(transaction, attempt_id=attempt_id)
    if owned is None:
        return
    await artefact_usage.room(transaction, owned.account_id)
    artefact = await locked(transaction, owned.id)
    if artefact is not None:
        await _delete(transaction, artefact, now)


async def referred(connection: Connection, after: str, limit: int) -> Sequence[ReferredContent]:
    """The next bytes that some artefact refers to, in the order of their digests."""
    return await _REFERRED.rows(connection, after=after, limit=limit)


async def idle(connection: Connection, before: Instant, limit: int) -> Sequence[Content]:
    """Bytes without a reference since before an instant."""
    rows = await _IDLE.rows(connection, before=before, limit=limit)
    return [Content(Digest(row.digest), *row[1:]) for row in rows]


async def forget(connection: Connection, digest: Digest, before: Instant) -> None:
    """Forget bytes that storage has deleted."""
    await _FORGET.run(connection, digest=digest.text, before=before)


async def known(connection: Connection, among: Sequence[Digest]) -> Collection[Digest]:
    """Which of these digests the pool knows."""
    return [Digest(text) for text in await _KNOWN.rows(connection, digests=[digest.text for digest in among])]


async def _delete(transaction: Connection, artefact: Artefact, now: Instant) -> None:
    await _DELETE.run(transaction, id=artefact.id)
    await _LET_GO.run(transaction, digest=artefact.digest.text, account_id=artefact.account_id, now=now)
    await artefact_usage.count(transaction, artefact.account_id, used=-counted_bytes(artefact.size_bytes))
