"""What attempts print, stored piece by piece, up to a number of lines per attempt."""

from collections.abc import Sequence
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.ids import Ids
from tidemill.core.jobs.attempt_reports import OutputReport
from tidemill.store.query import Connection, Query

_PRINT = Query("jobs/lease/print", by_key=True)

LINES_MAX = 10_000
PIECE_MAX = 65_536


async def keep(transaction: Connection, printed: Sequence[tuple[UUID, OutputReport]], ids: Ids, now: Instant) -> None:
    """Store what nodes report that their attempts print."""
    pieces = [
        (node_id, report.of, text)
        for node_id, report in printed
        if report.first < LINES_MAX and (text := _text(report.lines))
    ]
    if pieces:
        await _PRINT.run(
            transaction,
            ids=[ids.new(now) for _ in pieces],
            attempt_ids=[of.attempt_id for _, of, _ in pieces],
            node_ids=[node_id for node_id, _, _ in pieces],
            leases=[of.lease for _, of, _ in pieces],
            texts=[text for _, _, text in pieces],
            now=now,
        )


def _text(lines: Sequence[str]) -> str:
    """The lines as PostgreSQL can store them: its text has no zero character."""
    return "\n".join(lines).replace("\0", "\N{REPLACEMENT CHARACTER}")[:PIECE_MAX]
