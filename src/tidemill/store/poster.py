"""Gathers what the callers of one process post, so that many small posts share one batch and one commit.

A caller waits for the batch it came into, and while one batch is being posted the next one fills. When the database
fails, every caller of the batch is told: whether it was posted is then answered by posting the same ids again.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from tidemill.core.clock import Clock
from tidemill.core.ids import Ids
from tidemill.core.ledger import Entry, Outcome
from tidemill.store import ledger
from tidemill.store.database import Database

BATCH_MAX = 5_000

_Asked: TypeAlias = "tuple[Sequence[Entry], asyncio.Future[list[Outcome]]]"


class Poster:
    """One a process. `close` posts what is waiting and ends."""

    def __init__(self, database: Database, clock: Clock, ids: Ids) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._waiting: list[_Asked] = []
        self._posting: asyncio.Task[None] | None = None

    async def post(self, entries: Sequence[Entry]) -> list[Outcome]:
        """Post entries, in order and in one transaction, together with those of others. The last ends its links."""
        assert entries, "there is nothing to post"
        answer: asyncio.Future[list[Outcome]] = asyncio.get_running_loop().create_future()
        self._waiting.append((_closed(entries), answer))
        if self._posting is None or self._posting.done():
            self._posting = asyncio.create_task(self._post_waiting())
        return await answer

    async def close(self) -> None:
        if self._posting is not None:
            await self._posting

    async def _post_waiting(self) -> None:
        while self._waiting:
            batch = self._next_batch()
            try:
                outcomes = await self._post_batch([entry for entries, _ in batch for entry in entries])
            except Exception as error:  # noqa: BLE001  # each caller raises it in its own place
                _fail(batch, error)
                continue
            _answer(batch, outcomes)

    def _next_batch(self) -> list[_Asked]:
        """As many callers as fit, at least one."""
        count = entries = 0
        for asked, _ in self._waiting:
            if count and entries + len(asked) > BATCH_MAX:
                break
            count, entries = count + 1, entries + len(asked)
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    async def _post_batch(self, entries: Sequence[Entry]) -> list[Outcome]:
        async with self._database.transaction() as transaction:
            return await ledger.post(transaction, entries, self._ids, self._clock.now())


def _closed(entries: Sequence[Entry]) -> Sequence[Entry]:
    """A link at the end would reach into the next caller's entries."""
    return [*entries[:-1], replace(entries[-1], linked=False)] if entries[-1].linked else entries


def _answer(batch: Sequence[_Asked], outcomes: Sequence[Outcome]) -> None:
    start = 0
    for entries, answer in batch:
        if not answer.done():
            answer.set_result(list(outcomes[start : start + len(entries)]))
        start += len(entries)


def _fail(batch: Sequence[_Asked], error: Exception) -> None:
    for _, answer in batch:
        if not answer.done():
            answer.set_exception(error)
