"""The ledger in PostgreSQL: lock, look, decide, post. One batch at a time, each in one transaction.

A posted or refused entry keeps its answer. Core decides; the database checks the result once more.
"""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self
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
from tidemill.store.query import Connection, Query


class _AccountRow(NamedTuple):
    id: UUID
    currency: str
    frozen: bool
    available_uc: int | None


class _HoldRow(NamedTuple):
    id: UUID
    account_id: UUID
    left_uc: int
    expires_at: Instant


class _RefusalRow(NamedTuple):
    id: UUID
    entry: dict[str, Any]
    refusal: str


class _ChunkRow(NamedTuple):
    first_id: UUID
    last_id: UUID
    ids: bytes
    fingerprints: bytes
    refusals: dict[str, str]


_OPEN = Query("ledger/ledger/open", int)
_LOCK = Query("ledger/ledger/lock", int)
_ACCOUNTS = Query("ledger/ledger/accounts", _AccountRow)
_HOLDS = Query("ledger/ledger/holds", _HoldRow)
_KNOWN = Query("ledger/ledger/known", UUID)
_KNOWN_TRANSFERS = Query("ledger/ledger/known_transfers", Transfer)
_KNOWN_HOLDS = Query("ledger/ledger/known_holds", Hold)
_KNOWN_RELEASES = Query("ledger/ledger/known_releases", Release)
_KNOWN_REFUSALS = Query("ledger/ledger/known_refusals", _RefusalRow)
_POST = Query("ledger/ledger/post", int)
_EXPIRED = Query("ledger/ledger/expired_holds", UUID)
_ARCHIVED_CHUNKS = Query("ledger/ledger/archived_chunks", _ChunkRow)
_CHECKPOINT = Query("ledger/ledger/checkpoint", int)


async def open_accounts(connection: Connection, accounts: Sequence[LedgerAccount], now: Instant) -> int:
    """Open accounts that are not open yet. Returns how many were new."""
    return await _OPEN.only(
        connection,
        kinds=[account.kind.value for account in accounts],
        owner_ids=[account.owner_id for account in accounts],
        names=[account.name for account in accounts],
        currencies=[account.currency for account in accounts],
        now=now,
    )


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
    return await _LOCK.only(transaction)


async def look(transaction: Connection, batch: Sequence[Entry], books: Books) -> None:
    """Add to the books the accounts and holds that a batch names and they lack."""
    account_ids, hold_ids = missing(batch, books)
    holds = await _HOLDS.rows(transaction, ids=list(hold_ids)) if hold_ids else []
    account_ids |= {hold.account_id for hold in holds} - books.accounts.keys()
    accounts = await _ACCOUNTS.rows(transaction, ids=list(account_ids)) if account_ids else []
    for account in accounts:
        books.accounts[account.id] = AccountState(account.currency, account.frozen, account.available_uc)
        if account.available_uc is None:
            books.unfloored.add(account.id)
    for hold in holds:
        books.holds[hold.id] = HoldState(hold.account_id, hold.left_uc, hold.expires_at)


async def available_uc(connection: Connection, account: LedgerAccount) -> int:
    """The available balance of an account that never goes below zero; 0 if it is not open."""
    return await available_by_id(connection, account.id)


async def available_by_id(connection: Connection, account_id: UUID) -> int:
    """The same by the account's id."""
    row = await _ACCOUNTS.row(connection, ids=[account_id])
    if row is None:
        return 0
    assert row.available_uc is not None, "whoever has no floor is never short"
    return row.available_uc


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
    ids = await _KNOWN.rows(transaction, ids=[entry.id for entry in batch])
    known = await _archived(transaction, [entry.id for entry in batch], now)
    if not ids:
        return known
    posted: list[Entry] = [
        *await _KNOWN_TRANSFERS.rows(transaction, ids=ids),
        *await _KNOWN_HOLDS.rows(transaction, ids=ids),
        *await _KNOWN_RELEASES.rows(transaction, ids=ids),
    ]
    known.update({entry.id: (entry, None) for entry in posted})
    for refused in await _KNOWN_REFUSALS.rows(transaction, ids=ids):
        known[refused.id] = (entry_of(refused.entry), PostingRefusal[refused.refusal.upper()])
    return known


async def _archived(transaction: Connection, ids: Sequence[UUID], now: Instant) -> dict[UUID, EarlierAnswer]:
    """The earlier answers to archived entries. Only ids too old for new entries can be archived."""
    oldest = first_id_at(Instant(now - OLDEST_US))
    old = sorted(entry_id for entry_id in ids if entry_id < oldest)
    known: dict[UUID, EarlierAnswer] = {}
    for chunk in await _ARCHIVED_CHUNKS.rows(transaction, ids=old) if old else []:
        offsets = {chunk.ids[start : start + 16]: start for start in range(0, len(chunk.ids), 16)}
        for entry_id in old[bisect_left(old, chunk.first_id) : bisect_right(old, chunk.last_id)]:
            start = offsets.get(entry_id.bytes)
            if start is not None:
                refusal = chunk.refusals.get(str(start // 16))
                known[entry_id] = (
                    chunk.fingerprints[start : start + 16],
                    None if refusal is None else PostingRefusal[refusal.upper()],
                )
    return known


async def write(connection: Connection, number: int, decision: PostingDecision, ids: Ids, now: Instant) -> int | None:
    """Write a decision and its event. Returns the new number, or None if the books have changed since the decision."""
    if not decision.posted and not decision.refused:
        return number
    event = LedgerPosted(len(decision.posted), len(decision.refused))
    posted_number = await _POST.row(
        connection,
        seen_number=number,
        now=now,
        event_id=ids.new(now),
        event_kind=event.kind,
        event_subject=event.subject,
        event_body=event.body(),
        event_public=event.public,
        unfloored_ids=list(decision.unfloored),
        **_columns(decision.posted),
        **_refusals(decision.refused),
    )
    connection.mark_appended(())
    return posted_number


async def write_checkpoints(connection: Connection, now: Instant) -> int:
    """Write a checkpoint for each account without a floor that moved, so that its balance is quick to read."""
    return await _CHECKPOINT.only(connection, now=now)


async def expired_holds(connection: Connection, now: Instant, limit: int) -> list[UUID]:
    """Expired holds with something left."""
    return await _EXPIRED.rows(connection, now=now, limit=limit)


def _columns(posted: Sequence[Entry]) -> dict[str, Sequence[Any]]:
    transfers = [entry for entry in posted if isinstance(entry, Transfer)]
    others = _other_columns(posted) if len(transfers) < len(posted) else _NO_OTHERS
    captures = any(entry.hold_id for entry in transfers)
    return {
        "transfer_ids": [entry.id for entry in transfers],
        "debit_ids": [entry.debit_id for entry in transfers],
        "credit_ids": [entry.credit_id for entry in transfers],
        "amounts_uc": [entry.amount_uc for entry in transfers],
        "currencies": [entry.currency for entry in transfers],
        "kinds": [entry.kind for entry in transfers],
        "causes": [entry.cause for entry in transfers],
        "hold_ids": [entry.hold_id for entry in transfers] if captures else [],
        **others,
    }


def _other_columns(posted: Sequence[Entry]) -> dict[str, Sequence[Any]]:
    holds = [entry for entry in posted if isinstance(entry, Hold)]
    releases = [entry for entry in posted if isinstance(entry, Release)]
    return {
        "placed_ids": [entry.id for entry in holds],
        "placed_account_ids": [entry.account_id for entry in holds],
        "placed_amounts_uc": [entry.amount_uc for entry in holds],
        "placed_currencies": [entry.currency for entry in holds],
        "placed_until_us": [entry.expires_at for entry in holds],
        "placed_causes": [entry.cause for entry in holds],
        "release_ids": [entry.id for entry in releases],
        "released_hold_ids": [entry.hold_id for entry in releases],
        "release_causes": [entry.cause for entry in releases],
    }


_NO_OTHERS = _other_columns([])


def _refusals(refused: Sequence[tuple[Entry, PostingRefusal]]) -> dict[str, Sequence[Any]]:
    return {
        "refused_ids": [entry.id for entry, _ in refused],
        "refused_entries": [json.dumps(body(entry)) for entry, _ in refused],
        "refusals": [refusal.code for _, refusal in refused],
    }
