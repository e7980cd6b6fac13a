"""Reports wait here until the pool has them: through a lost network, a restart, and an agent that was killed.

A report that was appended is on the disk and has a number, the next one, for good. Appends that come at the same time
share one write to the disk. When more waits than allowed, the oldest log lines, progress and telemetry are dropped, and
the pool is told which numbers they had; receipts and everything else that counts stay, even above the limit.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from tidemill.core.clock import SECOND, Instant
from tidemill.core.faults import Fault
from tidemill.link.dialled.spool_file import SpooledReport, SpoolFile, open_spool_file
from tidemill.wire.messages import BeatMessage, Report, encode
from tidemill.wire.spool_reports import PastBeatReport, SpoolGap, as_facts, is_droppable

BEAT_EVERY_US = 60 * SECOND
"""Of the beats of an agent that is offline one a minute is kept: enough for a curve, and for a week on a small disk."""

_GROUP_MAX = 2_000
_GROUP_BYTES = 4 * 1024 * 1024

T = TypeVar("T")

_decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


@dataclass(frozen=True)
class _Waiting:
    body: bytes
    droppable: bool
    number: asyncio.Future[int]


class Spool:
    """An open spool. All its methods may be called at once, by any tasks of one loop."""

    def __init__(self, thread: ThreadPoolExecutor, file: SpoolFile, set_aside: Path | None) -> None:
        self.set_aside = set_aside
        self._thread = thread
        self._file = file
        self._appends: deque[_Waiting] = deque()
        self._received = 0
        self._forgotten: list[asyncio.Future[int]] = []
        self._writing: asyncio.Task[None] | None = None
        self._beat_kept_at: Instant | None = None
        self._closed = False

    @classmethod
    async def open(cls, file: Path, most_bytes: int) -> "Spool":
        """Open a spool, or make one. `set_aside` names a damaged file in whose place a new one was begun."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="spool")
        try:
            opened, aside = await asyncio.get_running_loop().run_in_executor(thread, open_spool_file, file, most_bytes)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(thread, opened, aside)

    @property
    def last_number(self) -> int:
        """The number of the newest report that is on the disk."""
        return self._file.standing.last_number

    @property
    def first_number(self) -> int:
        """The number of the oldest report that waits, or of the next one if none does."""
        return self._file.standing.first_number

    @property
    def has_met_the_pool(self) -> bool:
        """Whether the pool knows these numbers. A new file's are only for the time being, until `begin_at`."""
        return self._file.standing.met

    @property
    def has_room(self) -> bool:
        """Whether the spool is below its limit. An agent without room takes no new work."""
        return self._file.has_room

    @property
    def is_overfull(self) -> bool:
        """Whether what may not be dropped has come to twice the limit."""
        return self._file.is_overfull

    async def append(self, report: Report) -> int:
        """Keep a report. Answers its number when it is on the disk; a fault means that it was not kept."""
        assert not self._closed, "a closed spool keeps nothing"
        waiting = _Waiting(encode(report), is_droppable(report), asyncio.get_running_loop().create_future())
        self._appends.append(waiting)
        self._write_soon()
        return await waiting.number

    async def keep_beat(self, beat: BeatMessage, now: Instant) -> int | None:
        """Keep a beat that cannot be sent, unless one of the same minute was kept."""
        kept_at = self._beat_kept_at
        if kept_at is not None and 0 <= now - kept_at < BEAT_EVERY_US:
            return None
        self._beat_kept_at = now
        return await self.append(as_facts(PastBeatReport(now, beat)))

    async def read(self, after: int, most_bytes: int) -> Sequence[tuple[int, Report]]:
        """The reports behind a number, with their own, up to so many bytes; at least one if there is any."""
        return [(kept.number, _report(kept)) for kept in await self._run(lambda: self._file.read(after, most_bytes))]

    async def safe(self, received: int) -> None:
        """Forget what the pool has."""
        assert received <= self.last_number, "the pool has what was never kept"
        forgotten = asyncio.get_running_loop().create_future()
        self._received = max(self._received, received)
        self._forgotten.append(forgotten)
        self._write_soon()
        await forgotten

    async def begin_at(self, received: int) -> None:
        """Go on behind what the pool has received: call it on each new link, before anything is read for it.

        What the pool has is forgotten. If the pool's number is none of ours (this file is new, or an old copy of it or
        of the pool's database was restored), what waits is given the numbers behind it, so that nothing is lost.
        """
        self._received = 0  # what an older link said counts no more: its numbers may mean others now
        await self._run(lambda: self._file.begin_at(received))

    async def close(self) -> None:
        """Finish what is being written, and let go of the file."""
        self._closed = True
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._run(self._file.close)
        self._thread.shutdown()

    def _write_soon(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """One write after the other; whoever comes during one shares the next."""
        while self._appends or self._forgotten:
            group = self._next_group()
            forgotten, self._forgotten = self._forgotten, []
            outcome = await self._kept(group)
            if isinstance(outcome, Fault) and any(one.droppable for one in group):
                # A full disk costs log lines first: what counts is tried once more, by itself.
                _settle([one.number for one in group if one.droppable], outcome)
                group = [one for one in group if not one.droppable]
                outcome = await self._kept(group)
            _settle(forgotten, outcome)
            _settle([one.number for one in group], outcome)

    async def _kept(self, group: Sequence[_Waiting]) -> int | BaseException:
        """The number before the first of the group, or what went wrong."""
        reports = [(one.body, one.droppable) for one in group]
        # What was received is looked at when it is the write's turn: `begin_at` may have come in between.
        written = self._run(lambda: self._file.append(reports, self._received))
        (outcome,) = await asyncio.gather(written, return_exceptions=True)
        return outcome if isinstance(outcome, BaseException) else outcome - len(group)

    def _next_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        size_bytes = 0
        while self._appends and len(group) < _GROUP_MAX and size_bytes < _GROUP_BYTES:
            group.append(self._appends.popleft())
            size_bytes += len(group[-1].body)
        return group

    async def _run(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)


def _settle(futures: Sequence[asyncio.Future[int]], outcome: int | BaseException) -> None:
    """Tell those who wait. One who was cancelled meanwhile no longer does; the report is kept all the same."""
    for place, future in enumerate(futures, start=1):
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome + place)


def _report(kept: SpooledReport) -> Report:
    if kept.body is None:
        return as_facts(SpoolGap(kept.first, kept.last, "full"))
    try:
        if kept.intact:
            return _decoder.decode(kept.body)
    except msgspec.MsgspecError:
        pass  # written by an agent of another version, or changed by a bad disk
    return as_facts(SpoolGap(kept.number, kept.number, "damaged"))
