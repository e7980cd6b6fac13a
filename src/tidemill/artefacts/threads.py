"""Work on files, in a few threads, so that the loop never waits for a disk.

What has begun is waited for, also by a caller who is cancelled: no file is closed while a thread still writes to it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A pool of threads that is shared by everything in one storage."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="artefacts")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        future = asyncio.wrap_future(self._pool.submit(work, *args, **kwargs))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await over(future)
            raise

    def close(self) -> None:
        self._pool.shutdown()


async def over(future: asyncio.Future[Any]) -> None:
    """Wait until it is over, however often we are told to stop, and leave what it answered."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:  # the caller raises it when this is over
            continue
    future.cancelled() or future.exception()
