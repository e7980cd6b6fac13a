"""Reports go to the registry in batches: of each node what has gathered while its last batch was decided, in its order.

Two batches of different nodes are decided at a time, so that one is read while the other waits for the disk. A registry
that cannot answer is asked again, with fewer and with others first: should it be for what one node said, the others do
not wait for that. A node of which much waits is not read, so nothing grows.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from random import Random
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidemill.core.faults import Fault
from tidemill.core.pace import Backoff
from tidemill.link.held.connection import HeldConnection, ReadPause
from tidemill.link.held.registry import LinkGeneration, Registry, ReportsAnswer, ReportsArrival
from tidemill.wire.messages import FRAME_MAX, Facts, LogLines, ReceiptsMessage, Reports

BATCH_MAX = 200
BATCH_MAX_BYTES = 256 * 1024
"""A batch has at least what one node said, and beyond that about so much: whatever waits for it waits not for long."""

AT_ONCE = 2

_WAITING_MAX_BYTES = 4 * FRAME_MAX
_FRAMES_MAX = 256
"""The most that waits of one node; then it is read no more."""

_ITEMS_MAX = 1_000
_ITEM_BYTES = 64

_AGAIN = Backoff(first_s=0.2, most_s=5)


_Sized: TypeAlias = tuple[Reports, int]


class _Gathered(NamedTuple):
    """What one node said in so many frames."""

    connection: HeldConnection
    reports: Reports
    frames: int
    size_bytes: int


class Deliveries:
    """The frames that wait, by connection, and the connections in the order of their turns."""

    def __init__(
        self, registry: Registry, answer: Callable[[HeldConnection, ReportsAnswer], None], chance: Random
    ) -> None:
        self._registry = registry
        self._answer = answer
        self._chance = chance
        self._waiting: dict[HeldConnection, deque[_Sized]] = {}
        self._under_way: set[UUID] = set()
        self._most = BATCH_MAX
        self._failures = 0
        self._wanted = asyncio.Event()

    def add(self, connection: HeldConnection, reports: Reports) -> None:
        frames = self._waiting.setdefault(connection, deque())
        frames.append((reports, _size_bytes(reports)))
        if len(frames) >= _FRAMES_MAX or sum(size_bytes for _, size_bytes in frames) >= _WAITING_MAX_BYTES:
            connection.unread(ReadPause.UNDECIDED)
        self._wanted.set()

    def forget(self, connection: HeldConnection) -> None:
        """The agent sends again on its next link what was not acknowledged on this one."""
        self._waiting.pop(connection, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._keep_delivering())

    async def _keep_delivering(self) -> None:
        while True:
            await self._wanted.wait()
            if batch := self._next():
                nodes = {_held(one.connection).node_id for one in batch}
                self._under_way |= nodes
                try:
                    await self._deliver(batch)
                finally:
                    self._under_way -= nodes
                    self._wanted.set()  # of these something may have come meanwhile
            else:
                self._wanted.clear()

    def _next(self) -> Sequence[_Gathered]:
        batch: list[_Gathered] = []
        left_bytes = BATCH_MAX_BYTES
        free = ((one, frames) for one, frames in self._waiting.items() if _held(one).node_id not in self._under_way)
        for connection, frames in islice(free, self._most):
            if left_bytes <= 0:
                break
            gathered = _gathered(connection, frames, left_bytes)
            left_bytes -= gathered.size_bytes
            batch.append(gathered)
        return batch

    async def _deliver(self, batch: Sequence[_Gathered]) -> None:
        try:
            outcomes = await self._registry.reported(
                [ReportsArrival(_held(one.connection), one.reports) for one in batch]
            )
        except Fault:
            await self._put_back(batch)
            return
        self._failures, self._most = 0, min(2 * self._most, BATCH_MAX)
        for one, outcome in zip(batch, outcomes, strict=True):
            self._done(one)
            self._answer(one.connection, outcome)

    async def _put_back(self, batch: Sequence[_Gathered]) -> None:
        self._failures, self._most = self._failures + 1, max(1, len(batch) // 2)
        for one in batch:
            if frames := self._waiting.pop(one.connection, None):
                self._waiting[one.connection] = frames
        await asyncio.sleep(_AGAIN.after(self._failures, self._chance.random()))

    def _done(self, gathered: _Gathered) -> None:
        """What came meanwhile waits behind that of all others."""
        connection = gathered.connection
        if frames := self._waiting.pop(connection, None):
            for _ in range(gathered.frames):
                frames.popleft()
            if frames:
                self._waiting[connection] = frames
            connection.read_again(ReadPause.UNDECIDED)


def _gathered(connection: HeldConnection, frames: Sequence[_Sized], most_bytes: int) -> _Gathered:
    """The first frames of a node, at least one, as if they had come in one. A gap between two is for the registry."""
    (first, size_bytes), count = frames[0], 1
    items = list(first.items)
    for reports, next_bytes in islice(frames, 1, None):
        is_next = reports.first == first.first + len(items)
        if not is_next or size_bytes + next_bytes > most_bytes or len(items) + len(reports.items) > _ITEMS_MAX:
            break
        items += reports.items
        size_bytes, count = size_bytes + next_bytes, count + 1
    return _Gathered(connection, Reports(first.first, items), count, size_bytes)


def _size_bytes(reports: Reports) -> int:
    """About how much is kept of a frame."""
    size_bytes = _ITEM_BYTES * len(reports.items)
    for one in reports.items:
        match one:
            case ReceiptsMessage(batch):
                size_bytes += len(batch)
            case Facts(_, body):
                size_bytes += len(body)
            case LogLines(lines=lines):
                size_bytes += sum(map(len, lines))
    return size_bytes


def _held(connection: HeldConnection) -> LinkGeneration:
    assert connection.node_link, "reports are heard on an open link"
    return connection.node_link
