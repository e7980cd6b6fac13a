"""The ledger in PostgreSQL: lock, look, decide, post. One batch at a time, all of it in one transaction.

What is posted or refused once keeps its answer. The decision is core's; the database checks the result once more.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

import asyncpg

from tidemill.core.clock import Instant
from tidemill.core.events import LedgerPosted
from tidemill.core.ids import Ids
from tidemill.core.ledger import (
    RULES,
    AccountState,
    Books,
    Entry,
    Hold,
    HoldState,
    Known,
    LedgerAccount,
    Outcome,
    PostingRefusal,
    Release,
    Transfer,
    decide,
)
from tidemill.store import events
from tidemill.store.query import Connection, Query

_OPEN = Query("ledger/open")
_LOCK = Query("ledger/lock")
_ACCOUNTS = Query("ledger/accounts")
_HOLDS = Query("ledger/holds")
_KNOWN = Query("ledger/known")
_KNOWN_TRANSFERS = Query("ledger/known_transfers")
_KNOWN_HOLDS = Query("ledger/known_holds")
_KNOWN_RELEASES = Query("ledger/known_releases")
_KNOWN_REFUSALS = Query("ledger/known_refusals")
_POST = Query("ledger/post")
_REFUSE = Query("ledger/refuse")
_EXPIRED = Query("ledger/expired_holds")

_SHAPES: dict[str, type[Entry]] = {"Transfer": Transfer, "Hold": Hold, "Release": Release}


async def open_accounts(connection: Connection, accounts: Sequence[LedgerAccount], now: Instant) -> int:
    """Open accounts that are not open yet. Answers how many were new."""
    row = await _OPEN.row(
        connection,
        ids=[account.id for account in accounts],
        kinds=[account.kind.value for account in accounts],
        owner_ids=[account.owner_id for account in accounts],
        names=[account.name for account in accounts],
        currencies=[account.currency for account in accounts],
        floors=[RULES[account.kind].floored for account in accounts],
        now=now,
    )
    assert row
    opened: int = row["opened"]
    return opened


async def post(transaction: Connection, batch: Sequence[Entry], ids: Ids, now: Instant) -> list[Outcome]:
    """Post a batch in the caller's transaction. One outcome an entry; what is refused changes nothing."""
    assert transaction.is_in_transaction(), "a batch is posted in a transaction, with whatever else belongs to it"
    await _LOCK.run(transaction)
    books = await _look(transaction, batch)
    outcomes = decide(batch, books, now)
    written = [(entry, outcome) for entry, outcome in zip(batch, outcomes, strict=True) if outcome.written]
    if written:
        posted = [entry for entry, outcome in written if outcome.refusal is None]
        refused = [(entry, outcome.refusal) for entry, outcome in written if outcome.refusal is not None]
        await _write(transaction, posted, refused, now)
        await events.append(transaction, [LedgerPosted(len(posted), len(refused))], ids, now)
    return outcomes


async def expired_holds(connection: Connection, now: Instant, limit: int) -> list[UUID]:
    """Holds whose time is over and of which something is left."""
    return [row["id"] for row in await _EXPIRED.rows(connection, now=now, limit=limit)]


async def _look(transaction: Connection, batch: Sequence[Entry]) -> Books:
    """Everything the books say about what the batch names."""
    answered = [row["id"] for row in await _KNOWN.rows(transaction, ids=[entry.id for entry in batch])]
    known = await _answers(transaction, answered) if answered else {}
    hold_ids = {entry.hold_id for entry in batch if not isinstance(entry, Hold) and entry.hold_id is not None}
    holds = await _HOLDS.rows(transaction, ids=list(hold_ids)) if hold_ids else []
    account_ids = _named(batch) | {row["account_id"] for row in holds}
    accounts = await _ACCOUNTS.rows(transaction, ids=list(account_ids))
    return Books(
        accounts={row["id"]: AccountState(row["currency"], row["frozen"], row["available_uc"]) for row in accounts},
        holds={row["id"]: HoldState(row["account_id"], row["left_uc"], row["expires_at"]) for row in holds},
        known=known,
    )


def _named(batch: Sequence[Entry]) -> set[UUID]:
    named: set[UUID] = set()
    for entry in batch:
        if isinstance(entry, Transfer):
            named.add(entry.debit_id)
            named.add(entry.credit_id)
        elif isinstance(entry, Hold):
            named.add(entry.account_id)
    return named


async def _answers(transaction: Connection, ids: Sequence[UUID]) -> dict[UUID, Known]:
    """What became of entries that were answered before."""
    known: dict[UUID, Known] = {}
    for query, shape in ((_KNOWN_TRANSFERS, Transfer), (_KNOWN_HOLDS, Hold), (_KNOWN_RELEASES, Release)):
        rows = await query.rows(transaction, ids=ids)
        known.update({row["id"]: Known(shape(**row), None) for row in rows})
    for row in await _KNOWN_REFUSALS.rows(transaction, ids=ids):
        known[row["id"]] = Known(_entry(row), PostingRefusal[row["refusal"].upper()])
    return known


async def _write(
    transaction: Connection, posted: Sequence[Entry], refused: Sequence[tuple[Entry, PostingRefusal]], now: Instant
) -> None:
    if posted:
        await _POST.run(transaction, now=now, **_columns(posted))
    if refused:
        await _REFUSE.run(
            transaction,
            now=now,
            ids=[entry.id for entry, _ in refused],
            entries=[_body(entry) for entry, _ in refused],
            refusals=[refusal.code for _, refusal in refused],
        )


def _columns(posted: Iterable[Entry]) -> dict[str, list[Any]]:
    transfers = [entry for entry in posted if isinstance(entry, Transfer)]
    holds = [entry for entry in posted if isinstance(entry, Hold)]
    releases = [entry for entry in posted if isinstance(entry, Release)]
    return {
        "transfer_ids": [entry.id for entry in transfers],
        "debit_ids": [entry.debit_id for entry in transfers],
        "credit_ids": [entry.credit_id for entry in transfers],
        "amounts_uc": [entry.amount_uc for entry in transfers],
        "currencies": [entry.currency for entry in transfers],
        "kinds": [entry.kind for entry in transfers],
        "causes": [entry.cause for entry in transfers],
        "hold_ids": [entry.hold_id for entry in transfers],
        "placed_ids": [entry.id for entry in holds],
        "placed_account_ids": [entry.account_id for entry in holds],
        "placed_amounts_uc": [entry.amount_uc for entry in holds],
        "placed_currencies": [entry.currency for entry in holds],
        "placed_until": [entry.expires_at for entry in holds],
        "placed_causes": [entry.cause for entry in holds],
        "release_ids": [entry.id for entry in releases],
        "released_hold_ids": [entry.hold_id for entry in releases],
        "release_causes": [entry.cause for entry in releases],
    }


def _body(entry: Entry) -> dict[str, Any]:
    fields = {name: str(value) if isinstance(value, UUID) else value for name, value in asdict(entry).items()}
    return {"shape": type(entry).__name__, **fields}


def _entry(row: asyncpg.Record) -> Entry:
    fields = dict(row["entry"])
    shape = _SHAPES[fields.pop("shape")]
    ids = {name: UUID(value) for name, value in fields.items() if name.endswith("id") and value is not None}
    return shape(**(fields | ids))
