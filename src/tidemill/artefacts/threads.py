"""Runs work on files in a few threads, so that the loop never waits for a disk.

Work that has begun is waited for, even by a cancelled caller: no file is closed while a thread still writes to it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A pool of threads that is shared by everything in one storage."""

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="artefacts")

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await through(self._pool.submit(work, *args, **kwargs))

    def lane(self) -> "ThreadLane":
        return ThreadLane(self._pool)

    def close(self) -> None:
        self._pool.shutdown()


class ThreadLane:
    """Runs work in order, one after another, without waiting for the loop. If one fails, all work after it is skipped
    and fails in the same way."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._last: Future[None] = Future()
        self._last.set_result(None)

    def add(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> Future[None]:
        before, self._last = self._last, Future()
        after = self._last

        def begin(done: Future[None]) -> None:
            fault = done.exception()
            try:
                begun = None if fault else self._pool.submit(work, *args, **kwargs)
            except RuntimeError as closed:
                begun, fault = None, closed
            _pass_on(fault, after) if begun is None else begun.add_done_callback(end)

        def end(done: Future[None]) -> None:
            _pass_on(done.exception(), after)

        before.add_done_callback(begin)
        return after


def _pass_on(fault: BaseException | None, after: Future[None]) -> None:
    if fault:
        after.set_exception(fault)
    else:
        after.set_result(None)


async def through(future: Future[T]) -> T:
    """The result of a thread, waited for even when we are cancelled."""
    return await whole(asyncio.wrap_future(future))


async def whole(work: Awaitable[T]) -> T:
    """The result of work that has begun, or begins now. When we are cancelled, we still wait until it is over:
    otherwise it might finish after somebody else went on."""
    future = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await over(future)
        raise


async def over(future: asyncio.Future[Any]) -> None:
    """Wait until it is over, however often we are cancelled, and ignore its result."""
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:  # the caller raises it when this is over
            continue
    future.cancelled() or future.exception()
