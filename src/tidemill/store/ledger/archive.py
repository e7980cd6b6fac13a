"""Archives the ledger: a month that is over goes into a file.

The database keeps a checkpoint of every account the month moved, and the ids, so that the same id gets the same answer
for ever. The owner of the schema does this, oldest month first.

The file has one entry a line, as JSON: the entry and its outcome. Its hash is stored, so that whoever has the files can
prove the books from their first day.
"""

import asyncio
import gzip
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.events.log import LedgerArchived
from tidemill.core.faults import Fault
from tidemill.core.ids import Ids, first_id_at
from tidemill.core.ledger import entry_of, fingerprint
from tidemill.core.ledger.posting import OLDEST_US
from tidemill.core.refusals import Refusal
from tidemill.host.private_files import sync_directory
from tidemill.store.checks import DatabaseCheck
from tidemill.store.events import events
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection, Query

TABLES = ("transfer", "hold", "hold_release", "refused_entry")
_CHUNK_ENTRIES = 500


class ArchiveRefusal(Refusal):
    NO_SUCH_MONTH = "There are no entries of that month in the database: it was archived, or never was."
    NOT_THE_OLDEST = "Months are archived in order: take the oldest that is still in the database first."
    NOT_OVER = "Entries of that month may still come: wait until 31 days after its end."
    HOLDS_OPEN = "Something is left of holds placed in that month: release them first, or wait until they expire."
    LATER_HOLD = "An entry of that month captures or releases a hold of a later month: archive both later."


@dataclass(frozen=True)
class Archive:
    """A month in a file. `number` is the number of the checkpoints that replace it."""

    month: str
    archived_at: Instant
    number: int
    last_at: Instant | None
    file: str
    sha256: str
    entries: int


class _ObstaclesRow(NamedTuple):
    open: int
    later: int


class _EntryRow(NamedTuple):
    id: UUID
    entry: dict[str, Any]
    became: dict[str, Any]


class _CountRow(NamedTuple):
    entries: int
    last_at: Instant | None


class _RemainderRow(NamedTuple):
    id: UUID
    archived_uc: int


_MONTHS = Query("ledger/ledger/archive_months", str)
_OBSTACLES = Query("ledger/ledger/archive_obstacles", _ObstaclesRow)
_ENTRIES = Query("ledger/ledger/archive_entries", _EntryRow)
_COUNT = Query("ledger/ledger/archive_count", _CountRow)
_NUMBER = Query("ledger/ledger/archive_number")
_CHUNK = Query("ledger/ledger/archive_chunk")
_CHECKPOINTS = Query("ledger/ledger/archive_checkpoints")
_FORGET = Query("ledger/ledger/archive_forget")
_KEEP = Query("ledger/ledger/archive_keep")
_DROP = Query("ledger/ledger/archive_drop")
_ARCHIVES = Query("ledger/ledger/archives", Archive)
_REMAINING = Query("ledger/ledger/remaining", _RemainderRow)


@dataclass(frozen=True)
class _Month:
    name: str
    first_id: UUID
    end_id: UUID
    ends_at: Instant

    @classmethod
    def named(cls, name: str) -> "_Month":
        year, month = map(int, name.split("-"))
        begins = datetime(year, month, 1, tzinfo=UTC)
        ends = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
        begins_at, ends_at = Instant(int(begins.timestamp()) * SECOND), Instant(int(ends.timestamp()) * SECOND)
        return cls(name, first_id_at(begins_at), first_id_at(ends_at), ends_at)

    @property
    def ids(self) -> dict[str, UUID]:
        return {"first_id": self.first_id, "end_id": self.end_id}


async def archives(connection: Connection) -> list[Archive]:
    return await _ARCHIVES.rows(connection)


async def archive_month(owner: Connection, name: str, folder: Path, ids: Ids, now: Instant) -> Archive | ArchiveRefusal:
    """Write a month to a file in a folder, and drop it from the database: all of it, or nothing."""
    months = await _MONTHS.rows(owner)
    if name not in months:  # those that were archived are not among them
        return ArchiveRefusal.NO_SUCH_MONTH
    if name != months[0]:
        return ArchiveRefusal.NOT_THE_OLDEST
    month = _Month.named(name)
    if now < month.ends_at + OLDEST_US + DAY:
        return ArchiveRefusal.NOT_OVER
    obstacles = await _OBSTACLES.only(owner, **month.ids)
    if obstacles.open:
        return ArchiveRefusal.HOLDS_OPEN
    if obstacles.later:
        return ArchiveRefusal.LATER_HOLD
    file = folder / f"ledger-{name}.jsonl.gz"
    async with owner.transaction():
        entries = await _write_file(owner, month, file)
        sha256 = await asyncio.to_thread(_sha256, file)
        written = Archive(name, now, 0, None, file.name, sha256, entries)
        return await _replace_by_checkpoints(owner, month, written, ids)


async def _write_file(owner: Connection, month: _Month, file: Path) -> int:
    """Write the month's entries to the file, one a line, and their ids to the database. Returns their number."""
    draft = file.with_suffix(f".{month.first_id.hex}.part")
    entries, chunk = 0, _Chunk()
    with draft.open("wb") as raw, gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as out:
        async for record in owner.cursor(_ENTRIES.sql, month.first_id, month.end_id, prefetch=2_000):
            row = _EntryRow(*record)
            out.write(json.dumps({"entry": row.entry, **row.became}, sort_keys=True).encode() + b"\n")
            chunk.add(row.id, row.entry, row.became.get("refusal"))
            entries += 1
            if len(chunk.ids) == _CHUNK_ENTRIES:
                await chunk.keep(owner)
                chunk = _Chunk()
    if chunk.ids:
        await chunk.keep(owner)
    await asyncio.to_thread(_give_name, draft, file)
    return entries


class _Chunk:
    """Ids of entries, in order, with the fingerprint and refusal of each."""

    def __init__(self) -> None:
        self.ids: list[UUID] = []
        self.fingerprints: list[bytes] = []
        self.refusals: dict[str, str] = {}

    def add(self, entry_id: UUID, entry: dict[str, Any], refusal: str | None) -> None:
        if refusal is not None:
            self.refusals[str(len(self.ids))] = refusal
        self.ids.append(entry_id)
        self.fingerprints.append(fingerprint(entry_of(entry)))

    async def keep(self, owner: Connection) -> None:
        await _CHUNK.run(
            owner,
            first_id=self.ids[0],
            last_id=self.ids[-1],
            ids=b"".join(entry_id.bytes for entry_id in self.ids),
            fingerprints=b"".join(self.fingerprints),
            refusals=self.refusals,
        )


async def _replace_by_checkpoints(owner: Connection, month: _Month, written: Archive, ids: Ids) -> Archive:
    """Replace the entries with checkpoints, under the ledger's lock, which is held only for this."""
    await owner.execute("SET LOCAL lock_timeout = '3s'")
    number = await ledger.lock(owner) + 1  # its own: no transfer and no other checkpoint has it
    await _NUMBER.run(owner, number=number)
    counted = await _COUNT.only(owner, **month.ids)
    if counted.entries != written.entries:
        raise Fault(f"Entries of {month.name} were posted while it was being archived: nothing was changed; try again.")
    kept = replace(written, number=number, last_at=counted.last_at)
    await _CHECKPOINTS.run(owner, number=number, now=kept.archived_at, **month.ids)
    await _KEEP.run(owner, **vars(kept), end_id=month.end_id)
    await _FORGET.run(owner, number=number)
    for table in TABLES:
        await _DROP.run(owner, table=table, month=month.name)
    await events.append(
        owner, [LedgerArchived(kept.month, kept.entries, kept.file, kept.sha256)], ids, kept.archived_at
    )
    return kept


async def check_archives(connection: Connection, folder: Path) -> list[DatabaseCheck]:
    """Check that the files are unchanged, and that files and tables together explain every balance."""
    known = await archives(connection)
    changed = [
        archive.file
        for archive in known
        if not await asyncio.to_thread(_is_whole, folder / archive.file, archive.sha256)
    ]
    if changed:
        return [DatabaseCheck("archives", ok=False, detail=f"Missing or not what was written: {', '.join(changed)}.")]
    sums = await asyncio.to_thread(_sums, [folder / archive.file for archive in known])
    rows = await _REMAINING.rows(connection)
    wrong = [str(row.id) for row in rows if row.archived_uc != sums[str(row.id)]]
    detail = (
        f"Wrong: {', '.join(wrong[:5])}." if wrong else f"{len(known)} files and the tables agree on every balance."
    )
    return [DatabaseCheck("archives", not wrong, detail)]


def _give_name(draft: Path, file: Path) -> None:
    """Rename the draft durably, and never over another file: it could be the only copy of a month."""
    with draft.open("rb") as whole:
        os.fsync(whole.fileno())
    try:
        os.link(draft, file)
    except FileExistsError:
        if _sha256(draft) != _sha256(file):
            raise Fault(
                f"{file} exists and holds something else: nothing was changed; choose another folder."
            ) from None
    finally:
        draft.unlink()
    sync_directory(file.parent)


def _sums(files: Sequence[Path]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for entry in _transfers(files):
        sums[entry["credit_id"]] += entry["amount_uc"]
        sums[entry["debit_id"]] -= entry["amount_uc"]
    return sums


def _transfers(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        with gzip.open(file, "rb") as lines:
            for line in lines:
                line_read = json.loads(line)
                if line_read["entry"]["shape"] == "Transfer" and "refusal" not in line_read:
                    yield line_read["entry"]


def _is_whole(file: Path, sha256: str) -> bool:
    return file.exists() and _sha256(file) == sha256


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
