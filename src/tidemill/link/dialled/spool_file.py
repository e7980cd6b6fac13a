"""The spool's file: reports with their numbers, in SQLite. One process has it open, and one thread of it uses it.

Numbers have no gaps. A dropped report leaves its number behind; neighbouring dropped reports share one row, so that a
full spool does not grow further. When a call returns, its work is on the disk. A damaged file is set aside.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tidemill.core.faults import AgentFault, DiskFull

FORMAT = 1
ROW_BYTES = 40
"""About how many bytes a row takes besides its body."""

_READ_MAX = 1_000
_FULL_TO = 0.9
_SETTINGS = (
    "PRAGMA locking_mode = EXCLUSIVE",  # no second process, and no shared memory beside the file
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # a number that the pool has seen must not be given twice after a power cut
    "PRAGMA journal_size_limit = 4194304",
)
_TABLES = """
BEGIN IMMEDIATE;
CREATE TABLE report (
    number    INTEGER PRIMARY KEY,
    reports   INTEGER NOT NULL,  -- how many numbers the row stands for: more than one only where they were dropped
    droppable INTEGER NOT NULL,
    checksum  INTEGER NOT NULL,
    body      BLOB NOT NULL      -- empty where it was dropped
);
CREATE INDEX report_droppable ON report (number) WHERE droppable;
CREATE TABLE spool (last_number INTEGER NOT NULL, met INTEGER NOT NULL);
INSERT INTO spool VALUES (0, 0);
PRAGMA user_version = 1;
COMMIT;
"""


class SpoolDamage(Exception):
    """The file does not hold what was written to it."""


@dataclass(frozen=True)
class SpooledReport:
    """A report as it was kept. Without a body it was dropped, with all from `first` to `last`."""

    number: int
    body: bytes | None
    first: int
    last: int
    intact: bool


@dataclass(frozen=True)
class SpoolStanding:
    """What is in the file. `met` says whether the pool has seen these numbers."""

    last_number: int
    first_number: int
    size_bytes: int
    met: bool


class SpoolFile:
    """An open file."""

    def __init__(self, file: Path, most_bytes: int) -> None:
        self._file = file
        self._most_bytes = most_bytes
        self._connection = _connect(file)
        try:
            self.standing = self._checked_standing()
        except BaseException:
            self._connection.close()
            raise

    @property
    def has_room(self) -> bool:
        return self.standing.size_bytes < self._most_bytes

    @property
    def is_overfull(self) -> bool:
        return self.standing.size_bytes >= 2 * self._most_bytes

    def append(self, reports: Sequence[tuple[bytes, bool]], received: int = 0) -> int:
        """Keep reports, each with whether it may be dropped, and forget what was received. Answers the last number."""
        before = self.standing
        last = before.last_number + len(reports)
        rows = [
            (number, droppable, zlib.crc32(body), body)
            for number, (body, droppable) in enumerate(reports, start=before.last_number + 1)
        ]
        with self._transaction():
            size_bytes = before.size_bytes - self._forget(received) + sum(len(row[3]) + ROW_BYTES for row in rows)
            self._connection.executemany("INSERT INTO report VALUES (?, 1, ?, ?, ?)", rows)
            self._connection.execute("UPDATE spool SET last_number = ?", (last,))
            size_bytes -= self._make_room(size_bytes)
        self.standing = SpoolStanding(last, max(before.first_number, received + 1), size_bytes, before.met)
        return last

    def read(self, after: int, most_bytes: int) -> list[SpooledReport]:
        """The reports after a number, in order, up to so many bytes; at least one if there is any."""
        page: list[SpooledReport] = []
        room = most_bytes
        for report in self._following(after + 1):
            room -= ROW_BYTES + len(report.body or b"")
            if page and (room < 0 or len(page) == _READ_MAX):
                break
            page.append(report)
        return page

    def begin_at(self, received: int) -> None:
        """Give the waiting reports the numbers after the pool's last received one, unless they have them already."""
        before = self.standing
        is_ours = before.met and before.first_number - 1 <= received <= before.last_number
        shift = 0 if is_ours else received + 1 - before.first_number
        with self._transaction():
            freed = self._forget(received) if is_ours else 0
            if shift:
                self._renumber(shift)
            self._connection.execute("UPDATE spool SET met = 1")
        self.standing = SpoolStanding(before.last_number + shift, received + 1, before.size_bytes - freed, met=True)

    def close(self) -> None:
        self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing, and durable at the end."""
        with _faults(self._file):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have done so itself
                    self._connection.execute("ROLLBACK")
                raise

    def _forget(self, received: int) -> int:
        """Remove reports that the pool has. Answers how many bytes that frees."""
        if received < self.standing.first_number:
            return 0
        row = self._connection.execute(
            "SELECT number, reports FROM report WHERE number <= ? ORDER BY number DESC LIMIT 1", (received,)
        ).fetchone()
        if row and row[0] + row[1] - 1 > received:
            remaining = row[0] + row[1] - 1 - received
            self._connection.execute(
                "UPDATE report SET number = ?, reports = ? WHERE number = ?", (received + 1, remaining, row[0])
            )
        freed: int = self._connection.execute(
            "SELECT coalesce(sum(length(body) + ?), 0) FROM report WHERE number <= ?", (ROW_BYTES, received)
        ).fetchone()[0]
        self._connection.execute("DELETE FROM report WHERE number <= ?", (received,))
        return freed

    def _renumber(self, shift: int) -> None:
        """Go by way of negative numbers, since a number must be unique at every moment."""
        self._connection.execute("UPDATE report SET number = -number - ?", (shift,))
        self._connection.execute("UPDATE report SET number = -number")
        self._connection.execute("UPDATE spool SET last_number = last_number + ?", (shift,))

    def _make_room(self, size_bytes: int) -> int:
        """Drop the oldest droppable reports, some more than needed, so that not every append has to drop."""
        freed = 0
        while size_bytes > self._most_bytes and size_bytes - freed > self._most_bytes * _FULL_TO:
            oldest = self._connection.execute(
                "SELECT number FROM report WHERE droppable ORDER BY number LIMIT 1"
            ).fetchone()
            if oldest is None:
                break
            freed += self._drop(oldest[0])
        return freed

    def _drop(self, number: int) -> int:
        """Keep only the number, in one row with the dropped ones next to it. Answers how many bytes that frees."""
        before = self._connection.execute(
            "SELECT number, length(body) FROM report WHERE number < ? ORDER BY number DESC LIMIT 1", (number,)
        ).fetchone()
        behind = self._connection.execute(
            "SELECT number + reports - 1 FROM report WHERE number = ? AND length(body) = 0", (number + 1,)
        ).fetchone()
        first = before[0] if before and before[1] == 0 else number
        last = behind[0] if behind else number
        rows, size_bytes = self._connection.execute(
            "SELECT count(*), sum(length(body)) FROM report WHERE number BETWEEN ? AND ?", (first, last)
        ).fetchone()
        self._connection.execute("DELETE FROM report WHERE number BETWEEN ? AND ?", (first, last))
        self._connection.execute("INSERT INTO report VALUES (?, ?, 0, 0, x'')", (first, last - first + 1))
        return int(size_bytes + (rows - 1) * ROW_BYTES)

    def _following(self, number: int) -> Iterator[SpooledReport]:
        with _faults(self._file):
            rows = self._connection.execute(
                "SELECT number, reports, checksum, CAST(body AS BLOB) FROM report "
                "WHERE number >= coalesce((SELECT max(number) FROM report WHERE number <= ?), 0) ORDER BY number",
                (number,),
            )
            for first, reports, checksum, body in rows:
                last = first + reports - 1
                intact = zlib.crc32(body) == checksum
                for report_number in range(max(first, number), last + 1):
                    yield SpooledReport(report_number, body or None, first, last, intact)

    def _checked_standing(self) -> SpoolStanding:
        """Check a file that was just opened: is everything there, and in order?"""
        version: int = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            self._connection.executescript(_TABLES)
        elif version > FORMAT:
            raise AgentFault(f"{self._file} was written by a newer agent: install that one again.")
        if self._connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise SpoolDamage
        gap = self._connection.execute(
            "SELECT 1 FROM "
            "(SELECT number, reports, lag(number + reports) OVER (ORDER BY number) AS expected FROM report) "
            "WHERE number <> expected OR typeof(reports) <> 'integer' OR reports < 1 LIMIT 1"
        ).fetchone()
        end = self._connection.execute("SELECT max(number + reports) - 1 FROM report").fetchone()[0]
        standing = self._count_standing()
        if gap or (end is not None and end != standing.last_number):
            raise SpoolDamage
        return standing

    def _count_standing(self) -> SpoolStanding:
        rows = self._connection.execute(
            "SELECT last_number, met, (SELECT min(number) FROM report), "
            "(SELECT sum(length(body) + ?) FROM report) FROM spool",
            (ROW_BYTES,),
        ).fetchall()
        if len(rows) != 1:
            raise SpoolDamage
        last, met, first, size_bytes = rows[0]
        return SpoolStanding(last, last + 1 if first is None else first, size_bytes or 0, bool(met))


def open_spool_file(file: Path, most_bytes: int) -> tuple[SpoolFile, Path | None]:
    """Open the file, or make it. A damaged file is set aside; answers its new path, too."""
    try:
        with _faults(file, when_damaged=SpoolDamage()):
            return SpoolFile(file, most_bytes), None
    except SpoolDamage:
        aside = _set_aside(file)
        with _faults(file):
            return SpoolFile(file, most_bytes), aside


def _connect(file: Path) -> sqlite3.Connection:
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(file, timeout=1, isolation_level=None, check_same_thread=False)
    try:
        for setting in _SETTINGS:
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_aside(file: Path) -> Path:
    """Move the file and its journal away. Only the last damaged one is kept, so that a bad disk does not fill up."""
    aside = file.with_name(file.name + ".damaged")
    for end in ("-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.replace(f"{file}{end}", f"{aside}{end}")
    os.replace(file, aside)
    return aside


@contextmanager
def _faults(file: Path, when_damaged: Exception | None = None) -> Iterator[None]:
    """Turn errors of SQLite and the disk into faults."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_FULL":
            raise DiskFull(f"The disk that holds {file} is full: make space there.") from error
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise AgentFault(f"Another process uses {file}: stop it first.") from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or name in ("SQLITE_ERROR", "SQLITE_MISMATCH"):
            damaged = AgentFault(f"{file} is damaged: restart the agent, which sets it aside and begins a new one.")
            raise when_damaged or damaged from error
        raise AgentFault(
            f"{file} cannot be used ({error}): look at the disk, its space and its permissions."
        ) from error
    except OSError as error:
        raise AgentFault(f"{file} cannot be used ({error.strerror}): look at the disk and its permissions.") from error
