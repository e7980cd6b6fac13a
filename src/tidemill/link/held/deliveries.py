"""Reports go to the registry in batches. A node's reports that arrive during one batch go into a later one, in order.

Two batches of different nodes are decided at a time, so that one is read while the other waits for the disk. When the
registry fails, the next batch is smaller and begins with other nodes: if the reports of one node are the cause, the
others do not wait for it. A node with much waiting is not read, so nothing grows.
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
"""A batch has the reports of at least one node and else about this size, so that nothing waits long for it."""

AT_ONCE = 2

_WAITING_MAX_BYTES = 4 * FRAME_MAX
_FRAMES_MAX = 256
"""How much of one node may wait; above this the node is not read."""

_ITEMS_MAX = 1_000
_ITEM_BYTES = 64

_AGAIN = Backoff(first_s=0.2, most_s=5)


_SizedReports: TypeAlias = tuple[Reports, int]


class _GatheredReports(NamedTuple):
    """The reports of one node from so many frames."""

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
        self._waiting: dict[HeldConnection, deque[_SizedReports]] = {}
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
        """Drop what waits: the agent sends unacknowledged reports again on its next link."""
        self._waiting.pop(connection, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._keep_delivering())

    async def _keep_delivering(self) -> None:
        while True:
            await self._wanted.wait()
            if batch := self._next_batch():
                nodes = {_link_of(gathered.connection).node_id for gathered in batch}
                self._under_way |= nodes
                try:
                    await self._deliver(batch)
                finally:
                    self._under_way -= nodes
                    self._wanted.set()  # more reports of these nodes may have come meanwhile
            else:
                self._wanted.clear()

    def _next_batch(self) -> Sequence[_GatheredReports]:
        batch: list[_GatheredReports] = []
        left_bytes = BATCH_MAX_BYTES
        free = (
            (connection, frames)
            for connection, frames in self._waiting.items()
            if _link_of(connection).node_id not in self._under_way
        )
        for connection, frames in islice(free, self._most):
            if left_bytes <= 0:
                break
            gathered = _gather(connection, frames, left_bytes)
            left_bytes -= gathered.size_bytes
            batch.append(gathered)
        return batch

    async def _deliver(self, batch: Sequence[_GatheredReports]) -> None:
        try:
            outcomes = await self._registry.reported(
                [ReportsArrival(_link_of(gathered.connection), gathered.reports) for gathered in batch]
            )
        except Fault:
            await self._put_back(batch)
            return
        self._failures, self._most = 0, min(2 * self._most, BATCH_MAX)
        for gathered, outcome in zip(batch, outcomes, strict=True):
            self._remove_delivered(gathered)
            self._answer(gathered.connection, outcome)

    async def _put_back(self, batch: Sequence[_GatheredReports]) -> None:
        self._failures, self._most = self._failures + 1, max(1, len(batch) // 2)
        for gathered in batch:
            if frames := self._waiting.pop(gathered.connection, None):
                self._waiting[gathered.connection] = frames
        await asyncio.sleep(_AGAIN.after(self._failures, self._chance.random()))

    def _remove_delivered(self, gathered: _GatheredReports) -> None:
        """Remove what was delivered. Reports that came meanwhile queue behind those of all other nodes."""
        connection = gathered.connection
        if frames := self._waiting.pop(connection, None):
            for _ in range(gathered.frames):
                frames.popleft()
            if frames:
                self._waiting[connection] = frames
            connection.read_again(ReadPause.UNDECIDED)


def _gather(connection: HeldConnection, frames: Sequence[_SizedReports], most_bytes: int) -> _GatheredReports:
    """Join the first frames of a node, at least one, into one. It stops at a gap: that is for the registry to judge."""
    (first, size_bytes), count = frames[0], 1
    items = list(first.items)
    for reports, next_bytes in islice(frames, 1, None):
        is_next = reports.first == first.first + len(items)
        if not is_next or size_bytes + next_bytes > most_bytes or len(items) + len(reports.items) > _ITEMS_MAX:
            break
        items += reports.items
        size_bytes, count = size_bytes + next_bytes, count + 1
    return _GatheredReports(connection, Reports(first.first, items), count, size_bytes)


def _size_bytes(reports: Reports) -> int:
    """About how much memory a frame's reports take."""
    size_bytes = _ITEM_BYTES * len(reports.items)
    for report in reports.items:
        match report:
            case ReceiptsMessage(batch):
                size_bytes += len(batch)
            case Facts(_, body):
                size_bytes += len(body)
            case LogLines(lines=lines):
                size_bytes += sum(map(len, lines))
    return size_bytes


def _link_of(connection: HeldConnection) -> LinkGeneration:
    assert connection.node_link, "reports are heard on an open link"
    return connection.node_link
