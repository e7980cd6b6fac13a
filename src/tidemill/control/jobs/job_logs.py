"""What a job prints, as a stream of server-sent events: until the job is over and everything was read."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from tidemill.control.context import Control
from tidemill.control.http.counted_stream import CountedStream
from tidemill.control.jobs.job_views import OutputPieceView
from tidemill.core.accounts.roles import Caller
from tidemill.core.accounts.sessions import SessionOrigin
from tidemill.core.events.log import Cursor
from tidemill.core.jobs.job import ENDED
from tidemill.store.jobs import job_views
from tidemill.store.jobs.job_views import OutputPiece

_POLL_S = 1.0
_BATCH = 500
_SILENT_ROUNDS = 10
"""After so many looks without output, send a sign of life, and check whether the reader may still read."""


@dataclass(frozen=True)
class LogFollower:
    """Who follows which job, from where on."""

    caller: Caller
    device: SessionOrigin
    job_id: UUID
    after: Cursor | None


def followed(control: Control, follower: LogFollower) -> CountedStream:
    """What the job prints, from now on; refused if there are too many streams."""
    return CountedStream(control, follower.caller, follower.device.address, stream(control, follower))


async def stream(control: Control, follower: LogFollower) -> AsyncIterator[str]:
    """Until the job is over, the reader leaves or may no longer read, or we shut down."""
    after, silent = follower.after, 0
    while not control.draining.is_set():
        batch, over = await _look(control, follower.job_id, after)
        if batch:
            after, silent = batch[-1].cursor, 0
            yield "".join(map(as_sse, batch))
        elif over:
            yield "event: end\ndata: {}\n\n"
            return
        else:
            silent += 1
            if silent % _SILENT_ROUNDS == 0:
                if not await _still_in(control, follower):
                    return
                yield ": still here\n\n"
            await asyncio.sleep(_POLL_S)


async def _look(control: Control, job_id: UUID, after: Cursor | None) -> tuple[list[OutputPiece], bool]:
    """The new output, and whether the job is over. The job is read first, so that no last output is missed."""
    async with control.route_database.connection() as connection:
        job = await job_views.get(connection, job_id, None)
        batch = await job_views.output_pieces(connection, job_id, after, _BATCH)
    return list(batch), job is None or job.state in ENDED


async def _still_in(control: Control, follower: LogFollower) -> bool:
    return await control.callers.still_in(follower.caller, follower.device.address, control.clock.now())


def as_sse(piece: OutputPiece) -> str:
    return f"id: {piece.cursor}\ndata: {OutputPieceView.model_validate(piece).model_dump_json()}\n\n"
