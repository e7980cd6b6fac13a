"""Reports go to the registry in batches, at most one frame of a node at a time, so that they stay in order.

A registry that cannot answer is asked again, with fewer and with others first: should it be for what one node said, the
others do not wait for that. A node whose frames wait is not read, so nothing grows.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from random import Random

from tidemill.core.faults import Fault
from tidemill.core.pace import Backoff
from tidemill.link.connection import Connection, Unread
from tidemill.link.registry import HeardReports, Held, Outcome, Registry
from tidemill.wire.messages import Reports

BATCH_MAX = 200
_FRAMES_MAX = 4
"""The most frames of one node that wait; each is as long as a frame may be."""

_AGAIN = Backoff(first_s=0.2, most_s=5)


class Deliveries:
    """The frames that wait, by connection, and the connections in the order of their turns."""

    def __init__(self, registry: Registry, answer: Callable[[Connection, Outcome], None], chance: Random) -> None:
        self._registry = registry
        self._answer = answer
        self._chance = chance
        self._waiting: dict[Connection, deque[Reports]] = {}
        self._most = BATCH_MAX
        self._failures = 0
        self._wanted = asyncio.Event()

    def add(self, connection: Connection, reports: Reports) -> None:
        frames = self._waiting.setdefault(connection, deque())
        frames.append(reports)
        if len(frames) >= _FRAMES_MAX:
            connection.unread(Unread.UNDECIDED)
        self._wanted.set()

    def forget(self, connection: Connection) -> None:
        """The agent sends again on its next link what was not acknowledged on this one."""
        self._waiting.pop(connection, None)

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            if batch := self._next():
                await self._deliver(batch)
            else:
                self._wanted.clear()

    def _next(self) -> Sequence[tuple[Connection, Reports]]:
        return [(connection, frames[0]) for connection, frames in islice(self._waiting.items(), self._most)]

    async def _deliver(self, batch: Sequence[tuple[Connection, Reports]]) -> None:
        try:
            outcomes = await self._registry.reported([HeardReports(_held(one), reports) for one, reports in batch])
        except Fault:
            await self._put_back(batch)
            return
        self._failures, self._most = 0, min(2 * self._most, BATCH_MAX)
        for (connection, _), outcome in zip(batch, outcomes, strict=True):
            self._done(connection)
            self._answer(connection, outcome)

    async def _put_back(self, batch: Sequence[tuple[Connection, Reports]]) -> None:
        self._failures, self._most = self._failures + 1, max(1, len(batch) // 2)
        for connection, _ in batch:
            if frames := self._waiting.pop(connection, None):
                self._waiting[connection] = frames
        await asyncio.sleep(_AGAIN.after(self._failures, self._chance.random()))

    def _done(self, connection: Connection) -> None:
        """Its next frame waits behind those of all others."""
        if frames := self._waiting.pop(connection, None):
            frames.popleft()
            if frames:
                self._waiting[connection] = frames
            connection.read_again(Unread.UNDECIDED)


def _held(connection: Connection) -> Held:
    assert connection.held, "reports are heard on an open link"
    return connection.held
