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
"""An offline agent keeps one beat a minute: enough for a curve, and a week of them fits a small disk."""

_GROUP_MAX = 2_000
_GROUP_BYTES = 4 * 1024 * 1024

T = TypeVar("T")

_decoder: msgspec.msgpack.Decoder[Report] = msgspec.msgpack.Decoder(Report)


@dataclass(frozen=True)
class _PendingAppend:
    body: bytes
    droppable: bool
    number: asyncio.Future[int]


class Spool:
    """An open spool. Any tasks of one event loop may call its methods at the same time."""

    def __init__(self, thread: ThreadPoolExecutor, file: SpoolFile, set_aside: Path | None) -> None:
        self.set_aside = set_aside
        self._thread = thread
        self._file = file
        self._appends: deque[_PendingAppend] = deque()
        self._received = 0
        self._forgotten: list[asyncio.Future[int]] = []
        self._writing: asyncio.Task[None] | None = None
        self._beat_kept_at: Instant | None = None
        self._closed = False

    @classmethod
    async def open(cls, file: Path, most_bytes: int) -> "Spool":
        """Open a spool, or make one. `set_aside` is the path of a damaged file that a new one has replaced."""
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
        """Whether the pool knows these numbers. Those of a new file are provisional until `begin_at`."""
        return self._file.standing.met

    @property
    def has_room(self) -> bool:
        """Whether the spool is below its limit. An agent without room takes no new work."""
        return self._file.has_room

    @property
    def is_overfull(self) -> bool:
        """Whether the reports that may not be dropped fill twice the limit."""
        return self._file.is_overfull

    async def append(self, report: Report) -> int:
        """Keep a report. Answers its number when it is on the disk; a fault means that it was not kept."""
        assert not self._closed, "a closed spool keeps nothing"
        pending = _PendingAppend(encode(report), is_droppable(report), asyncio.get_running_loop().create_future())
        self._appends.append(pending)
        self._write_soon()
        return await pending.number

    async def keep_beat(self, beat: BeatMessage, now: Instant) -> int | None:
        """Keep a beat that cannot be sent, unless one of the same minute was kept."""
        kept_at = self._beat_kept_at
        if kept_at is not None and 0 <= now - kept_at < BEAT_EVERY_US:
            return None
        self._beat_kept_at = now
        return await self.append(as_facts(PastBeatReport(now, beat)))

    async def read(self, after: int, most_bytes: int) -> Sequence[tuple[int, Report]]:
        """The numbered reports after a number, up to so many bytes; at least one if there is any."""
        return [
            (spooled.number, _report(spooled))
            for spooled in await self._run(lambda: self._file.read(after, most_bytes))
        ]

    async def safe(self, received: int) -> None:
        """Forget what the pool has."""
        assert received <= self.last_number, "the pool has what was never kept"
        forgotten = asyncio.get_running_loop().create_future()
        self._received = max(self._received, received)
        self._forgotten.append(forgotten)
        self._write_soon()
        await forgotten

    async def begin_at(self, received: int) -> None:
        """Continue after the pool's last received number. Call it on each new link, before anything is read for it.

        Reports that the pool has are forgotten. If the pool's number is none of ours (this file is new, or an old copy
        of it or of the pool's database was restored), the waiting reports get the numbers after it: nothing is lost.
        """
        self._received = 0  # numbers of an older link no longer count: they may stand for other reports now
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
        """Write one group after the other. Appends that come during a write share the next one."""
        while self._appends or self._forgotten:
            group = self._next_group()
            forgotten, self._forgotten = self._forgotten, []
            outcome = await self._store(group)
            if isinstance(outcome, Fault) and any(append.droppable for append in group):
                # A full disk costs log lines first: try the reports that may not be dropped once more, alone.
                _settle([append.number for append in group if append.droppable], outcome)
                group = [append for append in group if not append.droppable]
                outcome = await self._store(group)
            _settle(forgotten, outcome)
            _settle([append.number for append in group], outcome)

    async def _store(self, group: Sequence[_PendingAppend]) -> int | BaseException:
        """Write a group. Answers the number before its first report, or what went wrong."""
        reports = [(append.body, append.droppable) for append in group]
        # Read `_received` only when the write runs: `begin_at` may have come in between.
        written = self._run(lambda: self._file.append(reports, self._received))
        (outcome,) = await asyncio.gather(written, return_exceptions=True)
        return outcome if isinstance(outcome, BaseException) else outcome - len(group)

    def _next_group(self) -> list[_PendingAppend]:
        group: list[_PendingAppend] = []
        size_bytes = 0
        while self._appends and len(group) < _GROUP_MAX and size_bytes < _GROUP_BYTES:
            group.append(self._appends.popleft())
            size_bytes += len(group[-1].body)
        return group

    async def _run(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, act)


def _settle(futures: Sequence[asyncio.Future[int]], outcome: int | BaseException) -> None:
    """Answer the callers that wait. A cancelled caller no longer does; its report is kept all the same."""
    for position, future in enumerate(futures, start=1):
        if future.done():
            continue
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome + position)


def _report(spooled: SpooledReport) -> Report:
    if spooled.body is None:
        return as_facts(SpoolGap(spooled.first, spooled.last, "full"))
    try:
        if spooled.intact:
            return _decoder.decode(spooled.body)
    except msgspec.MsgspecError:
        pass  # written by an agent of another version, or changed by a bad disk
    return as_facts(SpoolGap(spooled.number, spooled.number, "damaged"))
