"""What becomes of a batch: each entry is posted or refused, in order, and a later one may rely on an earlier.

Pure: the caller brings what the books say of the accounts, holds and ids that the batch names, and applies what is
decided. Deciding twice with the same books gives the same answer; an id that the books know gets the answer it got.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import made_at
from tidemill.core.ledger.entries import AMOUNT_MAX_UC, Entry, Hold, PostingRefusal, Release, Transfer

OLDEST_US = 30 * DAY
"""How old an id may be that the books do not know."""
AHEAD_US = 60 * SECOND


@dataclass(slots=True)
class AccountState:
    """An account as the books have it. `available_uc` is None where no floor applies."""

    currency: str
    frozen: bool
    available_uc: int | None


@dataclass(slots=True)
class HoldState:
    """A hold as the books have it. `released_uc` is what the last release gave back."""

    account_id: UUID
    left_uc: int
    expires_at: Instant
    released_uc: int = 0


@dataclass(frozen=True, slots=True)
class Known:
    """An id that was seen before: with which entry, and what became of it."""

    entry: Entry
    refusal: PostingRefusal | None


@dataclass(slots=True)
class Books:
    """What the books say about everything a batch names. Deciding changes it: entries may rely on each other."""

    accounts: Mapping[UUID, AccountState]
    holds: dict[UUID, HoldState] = field(default_factory=dict)
    known: dict[UUID, Known] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one entry, and whether it is to be written down.

    What was answered before is not written again. Nor is an id outside its time, for which there may be no place: the
    same entry gets the same answer anyway.
    """

    refusal: PostingRefusal | None
    written: bool = True


POSTED = Outcome(None)
POSTED_BEFORE = Outcome(None, written=False)


def decide(batch: Sequence[Entry], books: Books, now: Instant) -> list[Outcome]:
    """One outcome an entry, in the order of the batch. Links that the end of the batch cuts end there."""
    outcomes: list[Outcome] = []
    group: list[Entry] = []
    for entry in batch:
        if not group and not entry.linked:
            outcomes.append(_single(entry, books, now))
            continue
        group.append(entry)
        if not entry.linked:
            outcomes += _linked(group, books, now)
            group = []
    if group:
        outcomes += _linked(group, books, now) if len(group) > 1 else [_single(group[0], books, now)]
    return outcomes


def _single(entry: Entry, books: Books, now: Instant) -> Outcome:
    known = books.known.get(entry.id)
    if known is not None:
        return _as_before(entry, known)
    if _is_out_of_time(entry, now):
        return Outcome(PostingRefusal.ID_OUT_OF_TIME, written=False)
    refusal = _refused(entry, books, now)
    if refusal is None:
        _apply(entry, books)
    books.known[entry.id] = Known(entry, refusal)
    return POSTED if refusal is None else Outcome(refusal)


def _linked(group: Sequence[Entry], books: Books, now: Instant) -> list[Outcome]:
    """All or none. The first that is refused says why; the others say that it was another."""
    known = [books.known.get(entry.id) for entry in group]
    if all(known):
        return [_as_before(entry, before) for entry, before in zip(group, known, strict=True) if before]
    if any(known) or len({entry.id for entry in group}) < len(group):
        return [Outcome(PostingRefusal.LINK_REPEATED, written=False)] * len(group)
    late = next((at for at, entry in enumerate(group) if _is_out_of_time(entry, now)), None)
    if late is not None:
        return _broken(group, late, PostingRefusal.ID_OUT_OF_TIME, written=False)
    applied: list[Entry] = []
    for culprit, entry in enumerate(group):
        refusal = _refused(entry, books, now)
        if refusal is not None:
            for earlier in reversed(applied):
                _undo(earlier, books)
            return _remembered(group, _broken(group, culprit, refusal, written=True), books)
        _apply(entry, books)
        applied.append(entry)
    return _remembered(group, [POSTED] * len(group), books)


def _broken(group: Sequence[Entry], culprit: int, refusal: PostingRefusal, *, written: bool) -> list[Outcome]:
    reasons = [refusal if at == culprit else PostingRefusal.LINK_BROKEN for at in range(len(group))]
    return [Outcome(reason, written) for reason in reasons]


def _remembered(group: Sequence[Entry], outcomes: list[Outcome], books: Books) -> list[Outcome]:
    books.known.update({e.id: Known(e, outcome.refusal) for e, outcome in zip(group, outcomes, strict=True)})
    return outcomes


def _as_before(entry: Entry, known: Known) -> Outcome:
    if known.entry != entry:
        return Outcome(PostingRefusal.ID_REUSED, written=False)
    return POSTED_BEFORE if known.refusal is None else Outcome(known.refusal, written=False)


def _is_out_of_time(entry: Entry, now: Instant) -> bool:
    return not -AHEAD_US <= now - made_at(entry.id) <= OLDEST_US


def _refused(entry: Entry, books: Books, now: Instant) -> PostingRefusal | None:
    """The first reason against an entry, in the order of `PostingRefusal`."""
    if isinstance(entry, Transfer):
        return _transfer_refused(entry, books, now)
    if isinstance(entry, Hold):
        return _malformed(entry) or _debit_refused(entry.account_id, entry.amount_uc, entry.currency, books)
    hold = books.holds.get(entry.hold_id)
    if hold is None:
        return PostingRefusal.UNKNOWN_HOLD
    return PostingRefusal.HOLD_OVER if hold.left_uc == 0 else None


def _malformed(entry: Entry) -> PostingRefusal | None:
    if not isinstance(entry, Release) and not 0 < entry.amount_uc <= AMOUNT_MAX_UC:
        return PostingRefusal.AMOUNT_OUT_OF_BOUNDS
    if isinstance(entry, Transfer) and entry.debit_id == entry.credit_id:
        return PostingRefusal.SAME_ACCOUNT
    return None


def _transfer_refused(entry: Transfer, books: Books, now: Instant) -> PostingRefusal | None:
    if not 0 < entry.amount_uc <= AMOUNT_MAX_UC or entry.debit_id == entry.credit_id:
        return _malformed(entry)
    debit, credit = books.accounts.get(entry.debit_id), books.accounts.get(entry.credit_id)
    if debit is None or credit is None:
        return PostingRefusal.UNKNOWN_ACCOUNT
    if not debit.currency == credit.currency == entry.currency:
        return PostingRefusal.CURRENCY_MISMATCH
    if debit.frozen or credit.frozen:
        return PostingRefusal.ACCOUNT_FROZEN
    if entry.hold_id is not None:
        return _capture_refused(entry, books.holds.get(entry.hold_id), now)
    short = debit.available_uc is not None and debit.available_uc < entry.amount_uc
    return PostingRefusal.INSUFFICIENT_FUNDS if short else None


def _debit_refused(account_id: UUID, amount_uc: int, currency: str, books: Books) -> PostingRefusal | None:
    account = books.accounts.get(account_id)
    if account is None:
        return PostingRefusal.UNKNOWN_ACCOUNT
    if account.currency != currency:
        return PostingRefusal.CURRENCY_MISMATCH
    if account.frozen:
        return PostingRefusal.ACCOUNT_FROZEN
    if account.available_uc is None or account.available_uc < amount_uc:
        return PostingRefusal.INSUFFICIENT_FUNDS  # what has no floor cannot be reserved from
    return None


def _capture_refused(entry: Transfer, hold: HoldState | None, now: Instant) -> PostingRefusal | None:
    if hold is None:
        return PostingRefusal.UNKNOWN_HOLD
    if hold.account_id != entry.debit_id:
        return PostingRefusal.HOLD_OF_ANOTHER_ACCOUNT
    if hold.left_uc == 0 or hold.expires_at <= now:
        return PostingRefusal.HOLD_OVER
    return PostingRefusal.HOLD_TOO_SMALL if hold.left_uc < entry.amount_uc else None


def _apply(entry: Entry, books: Books) -> None:
    if isinstance(entry, Transfer):
        if entry.hold_id is None:
            _move(books, entry.debit_id, -entry.amount_uc)
        else:
            books.holds[entry.hold_id].left_uc -= entry.amount_uc
        _move(books, entry.credit_id, entry.amount_uc)
    elif isinstance(entry, Hold):
        _move(books, entry.account_id, -entry.amount_uc)
        books.holds[entry.id] = HoldState(entry.account_id, entry.amount_uc, entry.expires_at)
    else:
        hold = books.holds[entry.hold_id]
        _move(books, hold.account_id, hold.left_uc)
        hold.released_uc, hold.left_uc = hold.left_uc, 0


def _undo(entry: Entry, books: Books) -> None:
    """Exactly what `_apply` did, backwards."""
    if isinstance(entry, Transfer):
        _move(books, entry.credit_id, -entry.amount_uc)
        if entry.hold_id is None:
            _move(books, entry.debit_id, entry.amount_uc)
        else:
            books.holds[entry.hold_id].left_uc += entry.amount_uc
    elif isinstance(entry, Hold):
        del books.holds[entry.id]
        _move(books, entry.account_id, entry.amount_uc)
    else:
        hold = books.holds[entry.hold_id]
        hold.left_uc = hold.released_uc
        _move(books, hold.account_id, -hold.left_uc)


def _move(books: Books, account_id: UUID, amount_uc: int) -> None:
    account = books.accounts[account_id]
    if account.available_uc is not None:
        account.available_uc += amount_uc
