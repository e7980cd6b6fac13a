"""Connections: a bounded pool as the program's role, with our types on the wire and our faults for its errors.

Instants travel as integers, JSON as Python values. Every failure of PostgreSQL or the network becomes a
`DatabaseFault`; only a mistake in our own SQL stays the driver's error, because that is a bug.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Self, cast
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.faults import DatabaseFault, DiskFull
from tidemill.store.query import Connection, PlainConnection

_EPOCH_2000_US = 946_684_800 * 1_000_000
_ACQUIRE_S = 10.0
_IDLE_MS = 15_000
"""A process that hangs in a transaction blocks others with its locks for this long, and no longer."""

_UNAVAILABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.InternalClientError,
)


@dataclass(frozen=True)
class DatabaseLimits:
    """What one process may take of the server."""

    connections: int
    statement_s: float
    lock_s: float


class Database:
    """The pool of connections of one process."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", url: str, session: Mapping[str, str]) -> None:
        self._pool = pool
        self._url = url
        self._session = session
        self.on_appended: Callable[[Sequence[UUID]], None] = lambda _: None
        """Called after each commit that appended events, with the accounts they concern, to tell other processes."""

    @classmethod
    async def open(cls, url: str, limits: DatabaseLimits, name: str) -> Self:
        session = _session(limits, name)
        with faults():
            pool = await asyncpg.create_pool(
                url,
                min_size=0,
                max_size=limits.connections,
                connection_class=Connection,
                init=_prepare,
                server_settings=session,
                timeout=_ACQUIRE_S,
            )
        return cls(pool, url, session)

    async def close(self) -> None:
        """Wait for the connections in use, but not for ever."""
        try:
            async with asyncio.timeout(5):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for single statements."""
        with faults():
            async with self._pool.acquire(timeout=_ACQUIRE_S) as acquired:
                connection = cast(Connection, acquired)
                itself = connection.itself()
                try:
                    yield connection
                except BaseException:
                    itself.mark_failed()
                    raise

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A connection inside one transaction: everything in it happens, or nothing does."""
        async with self.connection() as connection:
            connection.mark_begun()
            async with connection.transaction():
                yield connection
            if (accounts := connection.take_appended()) is not None:
                self.on_appended(accounts)

    @property
    def in_use(self) -> int:
        return self._pool.get_size() - self._pool.get_idle_size()

    async def own_connection(self) -> Connection:
        """A connection outside the pool, for callers who keep one: to listen, or to remember what they read on it."""
        return await connect(self._url, self._session)


async def connect(url: str, session: Mapping[str, str] | None = None) -> Connection:
    """One connection with our types, for migrations and tools."""
    with faults():
        connection = await asyncpg.connect(
            url, timeout=_ACQUIRE_S, connection_class=Connection, server_settings=dict(session or {})
        )
        await _prepare(connection)
        return connection


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Connection]:
    """One connection for as long as it is needed. The server may go away at any time."""
    with faults():
        connection = await connect(url)
        try:
            yield connection
        finally:
            await connection.close()


@contextmanager
def faults() -> Iterator[None]:
    """Turn failures of the world into faults. Our own mistakes stay errors."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise DiskFull("The database's disk is full: free some space there, and try again.") from error
    except asyncpg.CheckViolationError as error:
        if "no partition" not in str(error):
            raise
        raise DatabaseFault("The partition for this moment is just being made: try again.") from error
    except asyncpg.ForeignKeyViolationError as error:
        if 'not present in table "data_key"' not in str(error.detail):
            raise
        raise DatabaseFault("The keys of the pool's secrets were changed at this moment: try again.") from error
    except asyncpg.QueryCanceledError as error:
        raise DatabaseFault(
            "The database took too long to answer: try again, or look at what keeps it busy."
        ) from error
    except (asyncpg.TransactionRollbackError, asyncpg.LockNotAvailableError) as error:
        raise DatabaseFault("Somebody else is changing the same thing at this moment: try again.") from error
    except _UNAVAILABLE as error:
        cause = str(error) or type(error).__name__
        raise DatabaseFault(f"The database cannot be reached ({cause}): it may be restarting; try again.") from error


def _session(limits: DatabaseLimits, name: str) -> dict[str, str]:
    return {
        "application_name": name,
        "timezone": "UTC",
        "statement_timeout": str(int(limits.statement_s * 1000)),
        "lock_timeout": str(int(limits.lock_s * 1000)),
        "idle_in_transaction_session_timeout": str(_IDLE_MS),
    }


async def _prepare(connection: PlainConnection) -> None:
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", encoder=_instant_out, decoder=_instant_in, format="tuple"
    )
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)


def _instant_out(instant: Instant) -> tuple[int]:
    return (instant - _EPOCH_2000_US,)


def _instant_in(value: tuple[int]) -> Instant:
    return Instant(value[0] + _EPOCH_2000_US)
