"""An account's whole statement as CSV, page by page: however long it is, one page is in memory.

Each page has a connection for itself, so that none is kept while a slow client reads. Lines that are posted meanwhile
have higher numbers than the first page and are left out: what is sent is the statement of one moment.
"""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence

import structlog

from tidemill.control.context import Control
from tidemill.core.clock import as_datetime
from tidemill.core.currency import shown_currency
from tidemill.core.faults import DatabaseFault
from tidemill.core.ledger.spreadsheets import harmless
from tidemill.core.money import credits_of
from tidemill.store.ledger import books
from tidemill.store.ledger.books import Balance, StatementLine

log = structlog.get_logger()

COLUMNS = ("number", "id", "at", "kind", "cause", "counterpart", "amount", "currency")
_TRIES_MAX = 10


async def statement_csv(control: Control, account: Balance) -> AsyncIterator[str]:
    yield _rows([COLUMNS])
    before: int | None = None
    currency = shown_currency(account.currency, control.settings.money)
    while lines := await _page(control, account, before):
        before = lines[-1].number
        yield _rows(_cells(line, currency) for line in lines)


async def _page(control: Control, account: Balance, before: int | None) -> Sequence[StatementLine]:
    """The next lines. If the database is away for a moment, wait for it. If it stays away, the answer breaks off, so
    that nobody takes a part for the whole."""
    tries = 0
    while True:
        try:
            async with control.route_database.connection() as connection:
                return await books.statement(connection, account.id, before, control.settings.http.page_limit_max)
        except DatabaseFault as fault:
            tries += 1
            if tries == _TRIES_MAX:
                raise
            log.warning("statement waits", cause=str(fault))
            await asyncio.sleep(control.settings.loops.poll_s)


def _rows(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


def _cells(line: StatementLine, currency: str) -> tuple[str, ...]:
    return (
        str(line.number),
        str(line.id),
        as_datetime(line.at).isoformat(),
        harmless(line.kind),
        harmless(line.cause),
        str(line.counterpart_id),
        credits_of(line.amount_uc),
        harmless(currency),
    )
