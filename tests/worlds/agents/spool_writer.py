"""A process that spools until it is killed, and says which reports it was told are on the disk.

Four tasks append receipts and log lines that carry growing numbers,
from FIRST on, while a fifth forgets half of what waits. Each line on standard output is a report that was kept.
"""

import asyncio
import itertools
import os
from pathlib import Path

from tests.worlds.agents.spool_reports import lines, receipt
from tidemill.link.dialled.spool import Spool

_MOST_BYTES = 64 * 1024 * 1024


def begin(file: Path, first: int) -> None:
    asyncio.run(_spool(file, first))


async def _spool(file: Path, first: int) -> None:
    spool = await Spool.open(file, _MOST_BYTES)
    assert spool.set_aside is None
    marks = itertools.count(first)

    async def append() -> None:
        while True:
            mark = next(marks)
            number = await spool.append(lines(mark) if mark % 3 else receipt(mark))
            os.write(1, f"kept {number} {mark}\n".encode())

    async def forget() -> None:
        while True:
            received = (spool.first_number + spool.last_number) // 2
            # Said before it is done: from here on nobody may count on it.
            os.write(1, f"safe {received} 0\n".encode())
            await spool.safe(received)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(append() for _ in range(4)), forget())
