"""Migrations: forward only, each in its own transaction, under one lock, by the first process that needs them.

A database that is newer than the program, or whose history is not ours, is refused and left as it is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from uuid import UUID

from asyncpg import LockNotAvailableError
from asyncpg.types import ServerVersion

from tidemill.core.clock import DAY, Instant
from tidemill.core.events.log import PoolCreated, PoolRestored
from tidemill.core.faults import DatabaseFault, WrongVersion
from tidemill.core.ids import Ids
from tidemill.core.ledger.posting import OLDEST_US
from tidemill.store import partitions
from tidemill.store.address import DatabaseUrls, role_of
from tidemill.store.clock import read_clock
from tidemill.store.database import connected
from tidemill.store.events import events
from tidemill.store.query import Connection, Query

_LOCK = 0x7164656D696C6C  # any number nobody else uses
_FIRST_PARTITIONS_US = 92 * DAY
_NEXT_GENERATION = Query("pool/next_generation")

_PATIENCE_S = 60
OLDEST_SERVER = 18


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


@cache
def known() -> tuple[Migration, ...]:
    """The migrations this program carries, in order."""
    folder = files("tidemill.store").joinpath("migrations")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name[:4].isdigit())
    return tuple(
        Migration(int(name[:4]), name[5:].removesuffix(".sql"), folder.joinpath(name).read_text("utf-8"))
        for name in names
    )


def plan(carried: Sequence[Migration], applied: Mapping[int, str]) -> Sequence[Migration]:
    """The migrations still to be applied, from the numbers and hashes of the applied ones."""
    changed = [step.number for step in carried if applied.get(step.number, step.sha256) != step.sha256]
    if changed:
        raise WrongVersion(
            f"Migration {changed[0]} in this database is not the one this program carries: "
            "it was made by another build of Tidemill; use that build, or make a new database."
        )
    latest = carried[-1].number
    if newest := max((number for number in applied if number > latest), default=None):
        raise WrongVersion(
            f"This database is at schema {newest}, and this program knows only up to {latest}: "
            "upgrade Tidemill to the version that wrote it, or restore a backup of this version."
        )
    return [step for step in carried if step.number not in applied]


async def pending(connection: Connection) -> Sequence[Migration]:
    """The migrations this database still lacks. Refuses a newer or foreign database."""
    if await connection.fetchval("SELECT to_regclass('public.migration') IS NULL"):
        if await connection.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"):
            raise WrongVersion(
                "This database holds tables that are not Tidemill's: give the pool a database of its own."
            )
        return known()
    applied = await connection.fetch("SELECT number, sha256 FROM migration")
    return plan(known(), dict(map(tuple, applied)))


async def migrate(urls: DatabaseUrls, ids: Ids, version: str) -> Sequence[Migration]:
    """Bring the database up to this program. Returns what was applied; usually nothing.

    Partitions are made every time: a pool that was off for months needs one before its first row.
    """
    async with connected(urls.owner) as owner:
        _check_server(owner.get_server_version())
        await _lock(owner)
        steps = await pending(owner)
        now = await read_clock(owner)
        for step in steps:
            await _apply(owner, step, now, version)
        await partitions.create(owner, Instant(now - OLDEST_US), Instant(now + _FIRST_PARTITIONS_US), now)
        if steps:
            await _grant(owner, urls)
            await _ensure_pool(owner, ids, now, version)
        return steps


async def renew(urls: DatabaseUrls, source: str, ids: Ids, version: str) -> None:
    """Make a restored database fit for use: migrated, with the program's rights, and in a new generation of events."""
    await migrate(urls, ids, version)
    async with connected(urls.owner) as owner:
        await _grant(owner, urls)
        async with owner.transaction():
            now = await read_clock(owner)
            await _NEXT_GENERATION.run(owner)
            await events.append(owner, [PoolRestored(source)], ids, now)


async def _lock(owner: Connection) -> None:
    await owner.execute(f"SET lock_timeout = '{_PATIENCE_S}s'")
    try:
        await owner.execute("SELECT pg_advisory_lock($1)", _LOCK)
    except LockNotAvailableError:
        raise DatabaseFault(
            f"Another process has been migrating this database for {_PATIENCE_S} s: wait until it is done, or end it."
        ) from None


def _check_server(version: ServerVersion) -> None:
    if version.major < OLDEST_SERVER:
        raise WrongVersion(
            f"This server runs PostgreSQL {version.major}, and Tidemill needs {OLDEST_SERVER} or newer: upgrade it."
        )


async def _apply(owner: Connection, step: Migration, now: Instant, version: str) -> None:
    async with owner.transaction():
        await owner.execute(
            "CREATE TABLE IF NOT EXISTS migration (number integer PRIMARY KEY, name text NOT NULL, "
            "sha256 text NOT NULL, version text NOT NULL, applied_at timestamptz NOT NULL)"
        )
        await owner.execute(step.sql)
        await owner.execute(
            "INSERT INTO migration VALUES ($1, $2, $3, $4, $5)", step.number, step.name, step.sha256, version, now
        )


async def _grant(owner: Connection, urls: DatabaseUrls) -> None:
    """Grant the program's role what it needs. A role that owns the schema has every right anyway."""
    program_role = role_of(urls.program)
    if program_role == role_of(urls.owner):
        return
    quoted = '"' + program_role.replace('"', '""') + '"'
    grants = files("tidemill.store").joinpath("migrations", "grants.sql").read_text("utf-8")
    async with owner.transaction():
        await owner.execute(grants.replace("{program}", quoted))


async def _ensure_pool(owner: Connection, ids: Ids, now: Instant, version: str) -> None:
    """A pool is created once; the first event of its log says so."""
    async with owner.transaction():
        created: UUID | None = await owner.fetchval(
            "INSERT INTO pool (id, created_at, generation) VALUES ($1, $2, 1) ON CONFLICT DO NOTHING RETURNING id",
            ids.new(now),
            now,
        )
        if created:
            await events.append(owner, [PoolCreated(version)], ids, now)
