"""The registry of control processes: which run, which have stopped, which are lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import ProcessLost, ProcessReturned, ProcessStarted, ProcessStopped
from tidemill.core.ids import Ids
from tidemill.store.database import Database
from tidemill.store.events import events
from tidemill.store.query import Connection, Query


class ProcessState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    LOST = "lost"


@dataclass(frozen=True)
class Process:
    """One control process. `settings` is the fingerprint of the pool's settings as it sees them."""

    id: UUID
    host: str
    pid: int
    version: str
    settings: str
    started_at: Instant
    seen_at: Instant
    state: ProcessState = ProcessState.RUNNING

    @property
    def is_running(self) -> bool:
        return self.state is ProcessState.RUNNING


_REGISTER = Query("operations/process/register")
_SEEN = Query("operations/process/seen", ProcessState)
_LOSE = Query("operations/process/lose", UUID)
_STOP = Query("operations/process/stop", UUID)
_LIST = Query("operations/process/list", Process)
_FORGET = Query("operations/process/forget", UUID)
_SHOW_LIFE = Query("operations/process/show_life", bool)


async def register(database: Database, process: Process, ids: Ids) -> None:
    async with database.transaction() as transaction:
        await _REGISTER.run(
            transaction,
            id=process.id,
            host=process.host,
            pid=process.pid,
            version=process.version,
            settings=process.settings,
            now=process.started_at,
        )
        started = ProcessStarted(process.id, process.host, process.version)
        await events.append(transaction, [started], ids, process.started_at)


async def show_life(connection: Connection, process_id: UUID) -> None:
    """Show that a process lives, for as long as it keeps this connection. Its links count only so long."""
    held = await _SHOW_LIFE.only(connection, id=process_id)
    assert held, "a shared lock is refused to nobody"


async def seen(database: Database, process_id: UUID, ids: Ids, now: Instant) -> None:
    """Note that a process is alive; a lost one is back."""
    async with database.transaction() as transaction:
        if await _SEEN.row(transaction, id=process_id, now=now) is ProcessState.LOST:
            await events.append(transaction, [ProcessReturned(process_id)], ids, now)


async def lose(database: Database, silent_since: Instant, limit: int, ids: Ids, now: Instant) -> Sequence[UUID]:
    """Mark silent processes as lost, with one event each."""
    async with database.transaction() as transaction:
        lost = await _LOSE.rows(transaction, silent_since=silent_since, limit=limit)
        if lost:
            await events.append(transaction, [ProcessLost(process_id) for process_id in lost], ids, now)
        return lost


async def stop(database: Database, process_id: UUID, ids: Ids, now: Instant) -> None:
    async with database.transaction() as transaction:
        if await _STOP.row(transaction, id=process_id, now=now):
            await events.append(transaction, [ProcessStopped(process_id)], ids, now)


async def forget(database: Database, seen_before: Instant, limit: int) -> int:
    """Delete processes that are long gone. Returns how many."""
    async with database.connection() as connection:
        return len(await _FORGET.rows(connection, seen_before=seen_before, limit=limit))


async def listed(database: Database, after: UUID | None, limit: int) -> Sequence[Process]:
    async with database.connection() as connection:
        return await _LIST.rows(connection, after=after, limit=limit)
