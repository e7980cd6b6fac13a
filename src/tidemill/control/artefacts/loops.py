"""Keeping storage in order: what waited too long, what nobody refers to, and what nobody knows of is given up.

Nothing that an artefact refers to is ever touched. The database is asked first and storage deletes after; whatever is
left between the two when a process dies is found by the next sweep.
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
"""What storage finished longer ago than this is in the database by now, if it ever will be."""


class ArtefactDuty(Duty):
    """Ends overdue uploads, forgets grants that are over, and gives up bytes that nothing refers to any more."""

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
        return forgotten + ended + deleted + await self._give_up_idle(now)

    async def _end_overdue(self, now: Instant) -> int:
        async with self.parts.loop_database.connection() as connection:
            found = await uploads.overdue(connection, now, self._batch_max)
        for upload in found:
            async with self.parts.loop_database.transaction() as transaction:
                is_over = await uploads.end(transaction, upload, overdue_at=now)
            if is_over:
                await self._store.abandon(upload.id)
        return len(found)

    async def _delete_ownerless(self, now: Instant) -> int:
        """Whoever deleted their account has deleted what it kept."""
        async with self.parts.loop_database.connection() as connection:
            found = await artefacts.of_deleted_accounts(connection, self._batch_max)
        for artefact_id, owner_id in found:
            deleting = Deletion(AccountCaller(owner_id), f"account:{owner_id}")
            async with self.parts.loop_database.transaction() as transaction:
                gone = await artefacts.delete(transaction, artefact_id, deleting, self.parts.ids, now)
            if isinstance(gone, Refusal):
                log.info("artefact of a deleted account stays", artefact_id=str(artefact_id), code=gone.code)
        return len(found)

    async def _give_up_idle(self, now: Instant) -> int:
        before = Instant(now - self._keep_us)
        async with self.parts.loop_database.connection() as connection:
            found = deletable(await artefacts.idle(connection, before, self._batch_max), self._keep_us, now)
        for content in found:
            deleted = await self._store.delete(content.digest, older_than=before)
            if deleted or await self._store.size(content.digest) is None:
                async with self.parts.loop_database.connection() as connection:
                    await artefacts.forget(connection, content.digest, before)
        return len(found)


class SweepDuty(Duty):
    """Looks through all of storage for what nobody knows of: the rest of what was killed in the middle."""

    name = "artefact_sweep"

    def __init__(self, parts: Parts, store: ArtefactStore) -> None:
        super().__init__(parts, period_s=3600.0)
        self._store = store

    async def perform(self, now: Instant) -> int:
        swept = await self._store.sweep(Instant(now - SWEEP_OLDER_US), _InDatabase(self.parts.loop_database))
        if swept.uploads or swept.contents:
            log.info("storage swept", uploads=swept.uploads, contents=swept.contents)
        return swept.uploads + swept.contents


class _InDatabase:
    """What should be in storage."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def uploads(self, among: Sequence[UUID]) -> Collection[UUID]:
        async with self._database.connection() as connection:
            return await uploads.known(connection, among)

    async def digests(self, among: Sequence[Digest]) -> Collection[Digest]:
        async with self._database.connection() as connection:
            return await artefacts.known(connection, among)
