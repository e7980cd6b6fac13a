"""Reports go to the registry in batches, at most one frame of a node at a time, so that they stay in order.

A registry that cannot answer is asked again with the same; a node whose frames wait is not read, so nothing grows.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
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
            if batch := [(connection, frames[0]) for connection, frames in self._next()]:
                outcomes = await self._delivered(batch)
                for (connection, _), outcome in zip(batch, outcomes, strict=True):
                    self._done(connection)
                    self._answer(connection, outcome)
            else:
                self._wanted.clear()

    def _next(self) -> Sequence[tuple[Connection, deque[Reports]]]:
        return [item for item, _ in zip(self._waiting.items(), range(BATCH_MAX), strict=False)]

    async def _delivered(self, batch: Sequence[tuple[Connection, Reports]]) -> Sequence[Outcome]:
        heard = [HeardReports(_held(connection), reports) for connection, reports in batch]
        failures = 0
        while True:
            try:
                return await self._registry.reported(heard)
            except Fault:
                failures += 1
                await asyncio.sleep(_AGAIN.after(failures, self._chance.random()))

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
