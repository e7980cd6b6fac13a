"""Gathers what the callers of one process post, so that many small posts share one batch and one commit.

A caller waits for its batch; while one batch is being posted, the next one fills. When the database fails, every caller
of the batch gets the fault: posting the same ids again then tells whether they were posted.

The poster remembers the books as its last batch left them. As long as nobody else posts, it decides a batch without
reading, and posts it with one statement; the ledger's number shows when somebody else has posted.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from tidemill.core.clock import Clock
from tidemill.core.faults import DatabaseFault
from tidemill.core.ids import Ids
from tidemill.core.ledger import Books, Entry, PostingOutcome
from tidemill.store.database import Database, faults
from tidemill.store.ledger import ledger
from tidemill.store.query import Connection

BATCH_MAX = 5_000
_CLOSE_S = 5.0
_STOPPING = "The process is stopping: whether this was posted is told by posting it again."
REMEMBERED_MAX = 200_000
"""Accounts and holds; about 60 MiB."""

_PendingPost: TypeAlias = "tuple[Sequence[Entry], asyncio.Future[list[PostingOutcome]]]"


class Poster:
    """One per process. `close` posts what is waiting and ends."""

    def __init__(self, database: Database, clock: Clock, ids: Ids) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._waiting: list[_PendingPost] = []
        self._posting: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        self._closed = False
        self._books = Books()
        self._number: int | None = None

    async def post(self, entries: Sequence[Entry]) -> list[PostingOutcome]:
        """Post entries, in order and in one transaction, together with those of other callers. The last entry links to
        none."""
        assert entries, "there is nothing to post"
        assert not self._closed, "a closed poster posts nothing"
        answer: asyncio.Future[list[PostingOutcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append((_closed(entries), answer))
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post_waiting())
        return await answer

    async def close(self) -> None:
        self._closed = True
        try:
            async with asyncio.timeout(_CLOSE_S):
                if self._posting is not None:
                    await self._posting
                if self._connection is not None:
                    with faults():
                        await self._connection.close()
        except (TimeoutError, DatabaseFault):
            if self._connection is not None:
                self._connection.terminate()

    async def _post_waiting(self) -> None:
        try:
            while self._waiting:
                await self._post_together(self._next_batch())
        except BaseException:  # we are being stopped: nobody is left waiting
            unposted, self._waiting = self._waiting, []
            _fail(unposted, DatabaseFault(_STOPPING))
            raise

    async def _post_together(self, batch: list[_PendingPost]) -> None:
        try:
            outcomes = await self._post_batch([entry for entries, _ in batch for entry in entries])
        except DatabaseFault as fault:
            _fail(batch, fault)
        except asyncio.CancelledError:
            _fail(batch, DatabaseFault(_STOPPING))
            raise
        except Exception as error:  # noqa: BLE001  # a bug in somebody's entry, which its own caller shall raise
            if len(batch) == 1:
                _fail(batch, error)
            else:
                for pending in batch:
                    await self._post_together([pending])
        else:
            _answer(batch, outcomes)

    def _next_batch(self) -> list[_PendingPost]:
        """As many callers as fit into a batch, at least one."""
        count = entries = 0
        for posted, _ in self._waiting:
            if count and entries + len(posted) > BATCH_MAX:
                break
            count, entries = count + 1, entries + len(posted)
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    async def _post_batch(self, entries: Sequence[Entry]) -> list[PostingOutcome]:
        if len(self._books.accounts) + len(self._books.holds) > REMEMBERED_MAX:
            self._forget()
        try:
            with faults():
                connection = await self._connected()
                outcomes = await self._from_memory(connection, entries) or await self._looking(connection, entries)
        except BaseException:
            self._forget()
            raise
        if (accounts := connection.take_appended()) is not None:
            self._database.on_appended(accounts)
        return outcomes

    async def _from_memory(self, connection: Connection, entries: Sequence[Entry]) -> list[PostingOutcome] | None:
        """Post from memory. None if the memory lacks something, or the books have changed since."""
        if self._number is None or any(ledger.missing(entries, self._books)):
            return None
        now = self._clock.now()
        decision = ledger.PostingDecision.of(entries, self._books, {}, now)
        if any(outcome.refusal is not None and not outcome.written for outcome in decision.outcomes):
            self._forget()  # an id out of time, or twice in one link, may have been answered before: only looking tells
            return None
        self._number = await ledger.write(connection, self._number, decision, self._ids, now)
        return None if self._number is None else decision.outcomes

    async def _looking(self, connection: Connection, entries: Sequence[Entry]) -> list[PostingOutcome]:
        now = self._clock.now()
        async with connection.transaction():
            number = await ledger.lock(connection)
            if number != self._number:
                self._forget()
            known = await ledger.answered(connection, entries, now)
            await ledger.look(connection, entries, self._books)
            decision = ledger.PostingDecision.of(entries, self._books, known, now)
            self._number = await ledger.write(connection, number, decision, self._ids, now)
        return decision.outcomes

    async def _connected(self) -> Connection:
        """The poster's own connection: what it remembers belongs to one session of one server."""
        if self._connection is None or self._connection.is_closed():
            self._forget()
            self._connection = await self._database.own_connection()
        return self._connection

    def _forget(self) -> None:
        self._books, self._number = Books(), None


def _closed(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Unlink the last entry: a link there would reach into the next caller's entries."""
    return [*entries[:-1], replace(entries[-1], linked=False)] if entries[-1].linked else entries


def _answer(batch: Sequence[_PendingPost], outcomes: Sequence[PostingOutcome]) -> None:
    start = 0
    for entries, answer in batch:
        if not answer.done():
            answer.set_result(list(outcomes[start : start + len(entries)]))
        start += len(entries)


def _fail(batch: Sequence[_PendingPost], error: Exception) -> None:
    for _, answer in batch:
        if not answer.done():
            answer.set_exception(error)
