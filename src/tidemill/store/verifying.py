"""Results that wait to be checked, taken in hand for a while; and what comes of it, settled.

Whoever checks a result twice changes nothing the second time: its lease is over then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.dispatch.judging import Judged, used_ms
from tidemill.core.ids import Ids
from tidemill.core.receipts import Receipt, ReceiptRefusal, inclusion, read_receipt
from tidemill.store import outcomes
from tidemill.store.database import Database
from tidemill.store.outcomes import Applied, Said, Terms
from tidemill.store.query import Query
from tidemill.store.tasks import find_by_key

_JUDGE = Query("lease/judge")


@dataclass(frozen=True, slots=True)
class Case:
    """A delivered result: its receipt, the task, and what its customer expects."""

    attempt_id: UUID
    node_id: UUID
    lease: int
    body: bytes
    expected: bytes | None
    house: bool
    receipt: Receipt


async def take(database: Database, judge: UUID, limit: int, *, lease_us: int, now: Instant) -> list[Case]:
    """Results to be checked, and nobody else's for so long."""
    async with database.transaction() as transaction:
        await find_by_key(transaction)
        rows = await _JUDGE.rows(transaction, judge=judge, until=Instant(now + lease_us), limit=limit, now=now)
    return [
        Case(
            row["attempt_id"],
            row["node_id"],
            row["tries"],
            row["body"],
            row["expected"],
            row["house"],
            _receipt(row["batch"], row["place"]),
        )
        for row in rows
    ]


async def settle(
    database: Database, judged: Sequence[tuple[Case, Judged]], terms: Terms, ids: Ids, now: Instant
) -> Applied:
    """What was decided happens: paid, tried again, or given back to the customer."""
    said = [
        Said(
            *(case.attempt_id, case.lease, case.node_id, one.happenings[1:], one.reason, one.verdict),
            used_ms(case.receipt),
        )
        for case, one in judged
    ]
    async with database.transaction() as transaction:
        return await outcomes.apply(transaction, said, terms, ids, now)


def _receipt(batch: bytes, place: int) -> Receipt:
    receipt = read_receipt(inclusion(batch, place).receipt)
    assert not isinstance(receipt, ReceiptRefusal), "only what could be read was kept"
    return receipt
