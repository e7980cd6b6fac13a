"""Everything that must hold in a pool's database, checked on request. Reads only; may run beside live traffic."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from tidemill.core.clock import DAY, Instant
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import first_id_at
from tidemill.store.address import DatabaseUrls, role_of
from tidemill.store.clock import read_clock
from tidemill.store.database import connect, faults
from tidemill.store.migrate import known, pending
from tidemill.store.query import Connection, Query

_AHEAD_US = 7 * DAY


class _EventRow(NamedTuple):
    events: int
    wrong: int


class _WorkRow(NamedTuple):
    opened: int
    adrift: int
    miscounted: int
    held: int


_TABLES = Query("check/tables", str)
_PARTITIONS = Query("check/missing_partitions", str)
_INDEXES = Query("check/invalid_indexes", str)
_RIGHTS = Query("check/forbidden_rights", str)
_ORDER = Query("check/event_order", _EventRow)
_WORK = Query("check/work", _WorkRow)


@dataclass(frozen=True)
class DatabaseCheck:
    """One thing that must hold, and the result of checking it."""

    name: str
    ok: bool
    detail: str


async def checks(urls: DatabaseUrls) -> list[DatabaseCheck]:
    """Run every check, in order; a check that cannot run has failed."""
    connection = await connect(urls.owner)
    try:
        schema = await _checked("schema", lambda: _schema(connection))
        if not schema.ok:
            return [schema]
        now = await read_clock(connection)
        return [
            schema,
            await _checked("partitions", lambda: _partitions(connection, now)),
            await _checked("indexes", lambda: _indexes(connection)),
            await _checked("rights", lambda: _rights(connection, urls)),
            await _checked("tables", lambda: _tables(connection)),
            await _checked("events", lambda: _events(connection)),
            await _checked("work", lambda: _work(connection)),
        ]
    finally:
        await connection.close()


async def _checked(name: str, look: Callable[[], Awaitable[tuple[bool, str]]]) -> DatabaseCheck:
    try:
        with faults():
            return DatabaseCheck(name, *await look())
    except DatabaseFault as fault:
        return DatabaseCheck(name, ok=False, detail=str(fault))


async def _schema(connection: Connection) -> tuple[bool, str]:
    missing = await pending(connection)
    if missing:
        return False, f"{len(missing)} migrations are missing: start the pool once with `tidemill up`."
    return True, f"At migration {known()[-1].number}, the newest this program knows."


async def _partitions(connection: Connection, now: Instant) -> tuple[bool, str]:
    needed = [first_id_at(now), first_id_at(Instant(now + _AHEAD_US))]
    missing = await _PARTITIONS.rows(connection, ids=needed)
    return not missing, f"Missing for the coming week: {', '.join(missing)}." if missing else "Made ahead."


async def _indexes(connection: Connection) -> tuple[bool, str]:
    invalid = await _INDEXES.rows(connection)
    return not invalid, f"Invalid, to be rebuilt with REINDEX: {', '.join(invalid)}." if invalid else "All valid."


async def _rights(connection: Connection, urls: DatabaseUrls) -> tuple[bool, str]:
    program = role_of(urls.program)
    if program == role_of(urls.owner):
        return False, "One role owns the schema and runs the program: set TIDEMILL_DATABASE_OWNER_URL to another role."
    forbidden = await _RIGHTS.rows(connection, program=program)
    return not forbidden, f"{program} may rewrite {', '.join(forbidden)}." if forbidden else "The program only appends."


async def _tables(connection: Connection) -> tuple[bool, str]:
    """Reading every row makes PostgreSQL verify every page's checksum."""
    tables = await _TABLES.rows(connection)
    rows = sum([await connection.fetchval(f"SELECT count(t.*) FROM {table} AS t") for table in tables])  # noqa: S608
    return True, f"Read {rows} rows of {len(tables)} tables."


async def _events(connection: Connection) -> tuple[bool, str]:
    events, wrong = await _ORDER.only(connection)
    return not wrong, f"{wrong} events are numbered against their generation." if wrong else f"{events} in order."


async def _work(connection: Connection) -> tuple[bool, str]:
    """Nothing of a job is stuck: an open task waits or has a lease, and no money is held for a job that is over."""
    work = await _WORK.only(connection)
    wrong = {
        "tasks are neither waiting nor anybody's, or both": work.adrift,
        "jobs have counted their tasks wrongly": work.miscounted,
        "jobs are over and still hold money": work.held,
    }
    sentences = [f"{count} {sentence}" for sentence, count in wrong.items() if count]
    return (
        not sentences,
        f"{'; '.join(sentences)}." if sentences else f"{work.opened} tasks are open, each in one place.",
    )
