"""The daily backup of the database and the artefacts, with retention. An event records whether it worked."""

import asyncio
from pathlib import Path

import structlog

from tidemill.control.loops.duty import Duty
from tidemill.control.operations.pool_backup import back_up, forget_unlisted
from tidemill.control.parts import Parts
from tidemill.core.clock import Instant
from tidemill.core.events.log import BackupFailed, BackupMade, Event
from tidemill.core.faults import Fault
from tidemill.core.operations.backups import backup_name, superfluous
from tidemill.store.events import events
from tidemill.store.operations.backup import DRAFT

log = structlog.get_logger()


class BackupDuty(Duty):
    """One process of the pool makes the backup, where the pool keeps its files."""

    name = "backup"
    retry_s = 900.0

    def __init__(self, parts: Parts, owner_url: str, folder: Path) -> None:
        super().__init__(parts, period_s=parts.settings.database.backup_every_s)
        self._owner_url = owner_url
        self._folder = folder

    async def perform(self, now: Instant) -> int:
        file = self._folder / backup_name(now)
        for left_over in self._folder.glob(f".*{DRAFT}"):
            left_over.unlink(missing_ok=True)
        try:
            made = await back_up(self._owner_url, file, self.parts.settings)
        except Fault as fault:
            await self._append_event(BackupFailed(str(fault)), now)
            raise
        kept = made.artefacts
        await self._append_event(BackupMade(file.name, made.size_bytes, kept.contents, kept.missing), now)
        log.info("backup made", file=str(file), size_bytes=made.size_bytes, artefacts=kept.contents)
        self._delete_superfluous(new_name=file.name)
        await asyncio.to_thread(forget_unlisted, self._folder)
        return 1

    def _delete_superfluous(self, new_name: str) -> None:
        """Delete old backups, never the new one: files dated by a clock that ran ahead may seem newer."""
        names = [entry.name for entry in self._folder.iterdir()]
        keep = self.parts.settings.database
        for name in superfluous(names, keep_daily=keep.backup_keep_daily, keep_weekly=keep.backup_keep_weekly):
            if name != new_name:
                (self._folder / name).unlink(missing_ok=True)

    async def _append_event(self, event: Event, now: Instant) -> None:
        async with self.parts.loop_database.transaction() as transaction:
            await events.append(transaction, [event], self.parts.ids, now)
