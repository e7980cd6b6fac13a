"""Cleans storage: overdue uploads, contents without a reference, and contents that the database does not know.

Contents of an artefact are never touched. The database is asked first, then storage deletes; if a process dies between
the two, the next sweep finds the rest.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

import structlog

from tidemill.artefacts.store import ArtefactStore
from tidemill.control.loops.duty import Duty
from tidemill.control.parts import Parts
from tidemill.core.artefacts.access import AccountCaller
from tidemill.core.artefacts.artefact import Digest
from tidemill.core.artefacts.retention import deletable
from tidemill.core.clock import HOUR, SECOND, Instant
from tidemill.core.refusals import Refusal
from tidemill.store.artefacts import artefact_grants, artefacts, uploads
from tidemill.store.artefacts.artefacts import Deletion
from tidemill.store.database import Database

log = structlog.get_logger()

SWEEP_OLDER_US = 2 * HOUR
"""Contents that are older than this are in the database by now, if they ever will be."""


class ArtefactDuty(Duty):
    """Ends overdue uploads, forgets expired grants, and deletes bytes that nothing refers to any more."""

    name = "artefacts"

    def __init__(self, parts: Parts, store: ArtefactStore) -> None:
        super().__init__(parts, period_s=60.0)
        self._store = store
        self._keep_us = int(parts.settings.artefacts.unreferenced_keep_s * SECOND)
        self._batch_max = parts.settings.loops.batch_max

    async def perform(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            forgotten = await artefact_grants.forget(connection, now, self._batch_max)
        ended, deleted = await self._end_overdue(now), await self._delete_ownerless(now)
        return forgotten + ended + deleted + await self._delete_idle(now)

    async def _end_overdue(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            overdue = await uploads.overdue(connection, now, self._batch_max)
        for upload in overdue:
            async with self.parts.loop_database.transaction() as transaction:
                is_over = await uploads.end(transaction, upload, overdue_at=now)
            if is_over:
                await self._store.abandon(upload.id)
        return len(overdue)

    async def _delete_ownerless(self, now: Instant) -> int:
        """Delete the artefacts of deleted accounts."""
        async with self.parts.loop_database.connection() as connection:
            ownerless = await artefacts.of_deleted_accounts(connection, self._batch_max)
        for artefact_id, owner_id in ownerless:
            deleting = Deletion(AccountCaller(owner_id), f"account:{owner_id}")
            async with self.parts.loop_database.transaction() as transaction:
                gone = await artefacts.delete(transaction, artefact_id, deleting, self.parts.ids, now)
            if isinstance(gone, Refusal):
                log.info("artefact of a deleted account stays", artefact_id=str(artefact_id), code=gone.code)
        return len(ownerless)

    async def _delete_idle(self, now: Instant) -> int:
        before = Instant(now - self._keep_us)
        async with self.parts.loop_database.connection() as connection:
            idle = deletable(await artefacts.idle(connection, before, self._batch_max), self._keep_us, now)
        for content in idle:
            deleted = await self._store.delete(content.digest, older_than=before)
            if deleted or await self._store.size(content.digest) is None:
                async with self.parts.loop_database.connection() as connection:
                    await artefacts.forget(connection, content.digest, before)
        return len(idle)


class SweepDuty(Duty):
    """Searches all of storage for contents that the database does not know: left behind by killed processes."""

    name = "artefact_sweep"

    def __init__(self, parts: Parts, store: ArtefactStore) -> None:
        super().__init__(parts, period_s=3600.0)
        self._store = store

    async def perform(self, now: Instant) -> int:
        swept = await self._store.sweep(Instant(now - SWEEP_OLDER_US), _KnownContents(self.parts.loop_database))
        if swept.uploads or swept.contents:
            log.info("storage swept", uploads=swept.uploads, contents=swept.contents)
        return swept.uploads + swept.contents


class _KnownContents:
    """The uploads and contents that should be in storage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def uploads(self, among: Sequence[UUID]) -> Collection[UUID]:
        async with self._database.connection() as connection:
            return await uploads.known(connection, among)

    async def digests(self, among: Sequence[Digest]) -> Collection[Digest]:
        async with self._database.connection() as connection:
            return await artefacts.known(connection, among)
