"""The ledger in PostgreSQL: lock, look, decide, post. One batch at a time, each in one transaction.

A posted or refused entry keeps its answer. Core decides; the database checks the result once more.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from tidemill.core.clock import Instant
from tidemill.core.events.log import LedgerPosted
from tidemill.core.ids import Ids, first_id_at
from tidemill.core.ledger import (
    AccountState,
    Books,
    EarlierAnswer,
    Entry,
    Hold,
    HoldState,
    LedgerAccount,
    PostingOutcome,
    PostingRefusal,
    Release,
    Transfer,
    body,
    decide,
    entry_of,
)
from tidemill.core.ledger.posting import OLDEST_US
from tidemill.store.arrays import bigint_array, text_array, uuid_array
from tidemill.store.query import Connection, Query

_OPEN = Query("ledger/ledger/open")
_LOCK = Query("ledger/ledger/lock")
_ACCOUNTS = Query("ledger/ledger/accounts")
_HOLDS = Query("ledger/ledger/holds")
_KNOWN = Query("ledger/ledger/known")
_KNOWN_TRANSFERS = Query("ledger/ledger/known_transfers")
_KNOWN_HOLDS = Query("ledger/ledger/known_holds")
_KNOWN_RELEASES = Query("ledger/ledger/known_releases")
_KNOWN_REFUSALS = Query("ledger/ledger/known_refusals")
_POST = Query("ledger/ledger/post")
_EXPIRED = Query("ledger/ledger/expired_holds")
_ARCHIVED_CHUNKS = Query("ledger/ledger/archived_chunks")
_CHECKPOINT = Query("ledger/ledger/checkpoint")


async def open_accounts(connection: Connection, accounts: Sequence[LedgerAccount], now: Instant) -> int:
    """Open accounts that are not open yet. Returns how many were new."""
    row = await _OPEN.row(
        connection,
        kinds=[account.kind.value for account in accounts],
        owner_ids=[account.owner_id for account in accounts],
        names=[account.name for account in accounts],
        currencies=[account.currency for account in accounts],
        now=now,
    )
    assert row
    opened: int = row["opened"]
    return opened


@dataclass(frozen=True)
class PostingDecision:
    """The decision on a batch: what to write, and the outcome for each caller."""

    outcomes: list[PostingOutcome]
    posted: list[Entry]
    refused: list[tuple[Entry, PostingRefusal]]
    unfloored: set[UUID]

    @classmethod
    def of(cls, batch: Sequence[Entry], books: Books, known: Mapping[UUID, EarlierAnswer], now: Instant) -> Self:
        outcomes = decide(batch, books, known, now)
        written = [(entry, outcome.refusal) for entry, outcome in zip(batch, outcomes, strict=True) if outcome.written]
        return cls(
            outcomes,
            posted=[entry for entry, refusal in written if refusal is None],
            refused=[(entry, refusal) for entry, refusal in written if refusal is not None],
            unfloored=books.unfloored,
        )


async def post(transaction: Connection, batch: Sequence[Entry], ids: Ids, now: Instant) -> list[PostingOutcome]:
    """Post a batch in the caller's transaction. One outcome per entry; a refused entry changes nothing."""
    number = await lock(transaction)
    known, books = await answered(transaction, batch, now), Books()
    await look(transaction, batch, books)
    decision = PostingDecision.of(batch, books, known, now)
    assert await write(transaction, number, decision, ids, now) is not None, "under the lock the books stay as they are"
    return decision.outcomes


async def lock(transaction: Connection) -> int:
    """Wait until no other batch is being posted. The returned number changes whenever the books do."""
    assert transaction.is_in_transaction(), "a batch is posted in a transaction, with whatever else belongs to it"
    row = await _LOCK.row(transaction)
    assert row
    number: int = row["number"]
    return number


async def look(transaction: Connection, batch: Sequence[Entry], books: Books) -> None:
    """Add to the books the accounts and holds that a batch names and they lack."""
    account_ids, hold_ids = missing(batch, books)
    holds = await _HOLDS.rows(transaction, ids=list(hold_ids)) if hold_ids else []
    account_ids |= {row["account_id"] for row in holds} - books.accounts.keys()
    accounts = await _ACCOUNTS.rows(transaction, ids=list(account_ids)) if account_ids else []
    for row in accounts:
        books.accounts[row["id"]] = AccountState(row["currency"], row["frozen"], row["available_uc"])
        if row["available_uc"] is None:
            books.unfloored.add(row["id"])
    for row in holds:
        books.holds[row["id"]] = HoldState(row["account_id"], row["left_uc"], row["expires_at"])


async def available_uc(connection: Connection, account: LedgerAccount) -> int:
    """The available balance of an account that never goes below zero; 0 if it is not open."""
    row = await _ACCOUNTS.row(connection, ids=[account.id])
    return row["available_uc"] if row else 0


def missing(batch: Sequence[Entry], books: Books) -> tuple[set[UUID], set[UUID]]:
    """The accounts and holds that a batch names and the books lack."""
    known_accounts, known_holds = books.accounts, books.holds
    accounts: set[UUID] = set()
    holds: set[UUID] = set()
    for entry in batch:
        if isinstance(entry, Transfer):
            if entry.debit_id not in known_accounts:
                accounts.add(entry.debit_id)
            if entry.credit_id not in known_accounts:
                accounts.add(entry.credit_id)
        elif isinstance(entry, Hold):
            if entry.account_id not in known_accounts:
                accounts.add(entry.account_id)
            continue
        if entry.hold_id is not None and entry.hold_id not in known_holds:
            holds.add(entry.hold_id)
    return accounts, holds


async def answered(transaction: Connection, batch: Sequence[Entry], now: Instant) -> dict[UUID, EarlierAnswer]:
    """The earlier answers to entries of this batch. Usually there are none."""
    ids = [row["id"] for row in await _KNOWN.rows(transaction, ids=[entry.id for entry in batch])]
    known = await _archived(transaction, [entry.id for entry in batch], now)
    if not ids:
        return known
    for query, shape in ((_KNOWN_TRANSFERS, Transfer), (_KNOWN_HOLDS, Hold), (_KNOWN_RELEASES, Release)):
        rows = await query.rows(transaction, ids=ids)
        known.update({row["id"]: (shape(**row), None) for row in rows})
    for row in await _KNOWN_REFUSALS.rows(transaction, ids=ids):
        known[row["id"]] = (entry_of(row["entry"]), PostingRefusal[row["refusal"].upper()])
    return known


async def _archived(transaction: Connection, ids: Sequence[UUID], now: Instant) -> dict[UUID, EarlierAnswer]:
    """The earlier answers to archived entries. Only ids too old for new entries can be archived."""
    oldest = first_id_at(Instant(now - OLDEST_US))
    old = sorted(entry_id for entry_id in ids if entry_id < oldest)
    known: dict[UUID, EarlierAnswer] = {}
    for row in await _ARCHIVED_CHUNKS.rows(transaction, ids=old) if old else []:
        offsets = {row["ids"][start : start + 16]: start for start in range(0, len(row["ids"]), 16)}
        for entry_id in old[bisect_left(old, row["first_id"]) : bisect_right(old, row["last_id"])]:
            start = offsets.get(entry_id.bytes)
            if start is not None:
                refusal = row["refusals"].get(str(start // 16))
                known[entry_id] = (
                    row["fingerprints"][start : start + 16],
                    None if refusal is None else PostingRefusal[refusal.upper()],
                )
    return known


async def write(connection: Connection, number: int, decision: PostingDecision, ids: Ids, now: Instant) -> int | None:
    """Write a decision and its event. Returns the new number, or None if the books have changed since the decision."""
    if not decision.posted and not decision.refused:
        return number
    event = LedgerPosted(len(decision.posted), len(decision.refused))
    row = await _POST.row(
        connection,
        seen_number=number,
        now=now,
        event_id=ids.new(now),
        event_kind=event.kind,
        event_subject=event.subject,
        event_body=event.body(),
        event_public=event.public,
        unfloored_ids=uuid_array(list(decision.unfloored)),
        **_columns(decision.posted),
        **_refusals(decision.refused),
    )
    assert row
    connection.mark_appended(())
    posted: int | None = row["number"]
    return posted


async def write_checkpoints(connection: Connection, now: Instant) -> int:
    """Write a checkpoint for each account without a floor that moved, so that its balance is quick to read."""
    row = await _CHECKPOINT.row(connection, now=now)
    assert row
    written: int = row["written"]
    return written


async def expired_holds(connection: Connection, now: Instant, limit: int) -> list[UUID]:
    """Expired holds with something left."""
    return [row["id"] for row in await _EXPIRED.rows(connection, now=now, limit=limit)]


def _columns(posted: Sequence[Entry]) -> dict[str, str]:
    transfers = [entry for entry in posted if isinstance(entry, Transfer)]
    others = _other_columns(posted) if len(transfers) < len(posted) else _NO_OTHERS
    captures = any(entry.hold_id for entry in transfers)
    return {
        "transfer_ids": uuid_array([entry.id for entry in transfers]),
        "debit_ids": uuid_array([entry.debit_id for entry in transfers]),
        "credit_ids": uuid_array([entry.credit_id for entry in transfers]),
        "amounts_uc": bigint_array([entry.amount_uc for entry in transfers]),
        "currencies": text_array([entry.currency for entry in transfers]),
        "kinds": text_array([entry.kind for entry in transfers]),
        "causes": text_array([entry.cause for entry in transfers]),
        "hold_ids": uuid_array([entry.hold_id for entry in transfers] if captures else []),
        **others,
    }


def _other_columns(posted: Sequence[Entry]) -> dict[str, str]:
    holds = [entry for entry in posted if isinstance(entry, Hold)]
    releases = [entry for entry in posted if isinstance(entry, Release)]
    return {
        "placed_ids": uuid_array([entry.id for entry in holds]),
        "placed_account_ids": uuid_array([entry.account_id for entry in holds]),
        "placed_amounts_uc": bigint_array([entry.amount_uc for entry in holds]),
        "placed_currencies": text_array([entry.currency for entry in holds]),
        "placed_until_us": bigint_array([entry.expires_at for entry in holds]),
        "placed_causes": text_array([entry.cause for entry in holds]),
        "release_ids": uuid_array([entry.id for entry in releases]),
        "released_hold_ids": uuid_array([entry.hold_id for entry in releases]),
        "release_causes": text_array([entry.cause for entry in releases]),
    }


_NO_OTHERS = _other_columns([])


def _refusals(refused: Sequence[tuple[Entry, PostingRefusal]]) -> dict[str, str]:
    return {
        "refused_ids": uuid_array([entry.id for entry, _ in refused]),
        "refused_entries": text_array([json.dumps(body(entry)) for entry, _ in refused]),
        "refusals": text_array([refusal.code for _, refusal in refused]),
    }
