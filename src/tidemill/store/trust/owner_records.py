"""What owners' attempts came to. Whoever ends attempts counts them: see `store.jobs.work_plans`."""

from uuid import UUID

from tidemill.core.trust.owner_record import AttemptCounts
from tidemill.store.query import Connection, Query

_FIND = Query("trust/owner_record/find", AttemptCounts)


async def find(connection: Connection, owner_id: UUID) -> AttemptCounts:
    return await _FIND.row(connection, owner_id=owner_id) or AttemptCounts()
