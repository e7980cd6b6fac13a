"""The outcome of a batch: each entry is posted or refused, in order, and may rely on earlier ones.

Pure: the caller brings the books' state of the accounts, holds and ids that the batch names, and applies the decision.
Deciding twice with the same books gives the same answer; an id that the books know gets its earlier answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from tidemill.core.clock import DAY, SECOND, Instant
from tidemill.core.ids import first_id_at
from tidemill.core.ledger.entries import Entry, Hold, PostingRefusal, Release, Transfer, fingerprint
from tidemill.core.money import AMOUNT_MAX_UC

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


EarlierAnswer: TypeAlias = tuple[Entry | bytes, PostingRefusal | None]
"""The answer to an id seen before: its entry, or the fingerprint of an archived one; and its refusal, if any."""


@dataclass(slots=True)
class Books:
    """The books' state of everything that a batch names. Deciding changes it: entries may rely on each other."""

    accounts: dict[UUID, AccountState] = field(default_factory=dict)
    unfloored: set[UUID] = field(default_factory=set)
    holds: dict[UUID, HoldState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PostingOutcome:
    """The outcome of one entry, and whether to write it down.

    Earlier answers are not written again. Nor are faults of the call rather than of the entry: an id outside its time,
    for which there may be no partition, or a link of entries that were partly answered. Such an answer is not final:
    called in another way or at another time, the entry may be posted.
    """

    refusal: PostingRefusal | None
    written: bool = True


POSTED = PostingOutcome(None)
POSTED_BEFORE = PostingOutcome(None, written=False)


def decide(
    batch: Sequence[Entry], books: Books, answers: Mapping[UUID, EarlierAnswer], now: Instant
) -> list[PostingOutcome]:
    """One outcome an entry, in the order of the batch. A link that is open at the end of the batch ends there."""
    desk = _BatchDecision(books, answers, now)
    outcomes: list[PostingOutcome] = []
    group: list[Entry] = []
    for entry in batch:
        if not group and not entry.linked:
            outcomes.append(desk.single(entry))
            continue
        group.append(entry)
        if not entry.linked:
            outcomes += desk.linked(group)
            group = []
    if group:
        outcomes += desk.linked(group) if len(group) > 1 else [desk.single(group[0])]
    return outcomes


class _BatchDecision:
    """A batch being decided: the books, the ids answered so far, and the range of valid ids."""

    def __init__(self, books: Books, answers: Mapping[UUID, EarlierAnswer], now: Instant) -> None:
        self.accounts, self.holds, self.now = books.accounts, books.holds, now
        self.known = dict(answers)
        self.oldest = first_id_at(Instant(now - OLDEST_US)).int
        self.newest = first_id_at(Instant(now + AHEAD_US)).int

    def single(self, entry: Entry) -> PostingOutcome:
        earlier = self.known.get(entry.id)
        if earlier is not None:
            return _as_before(entry, earlier)
        if not self.oldest <= entry.id.int <= self.newest:
            return PostingOutcome(PostingRefusal.ID_OUT_OF_TIME, written=False)
        refusal = self.transfer(entry) if isinstance(entry, Transfer) else self.post(entry)
        self.known[entry.id] = (entry, refusal)
        return POSTED if refusal is None else PostingOutcome(refusal)

    def linked(self, group: Sequence[Entry]) -> list[PostingOutcome]:
        """Post all or none. The first refused entry says why; the others say that another was refused."""
        answers = [self.known.get(entry.id) for entry in group]
        if all(answers):
            return [_as_before(entry, before) for entry, before in zip(group, answers, strict=True) if before]
        if any(answers) or len({entry.id for entry in group}) < len(group):
            return [PostingOutcome(PostingRefusal.LINK_REPEATED, written=False)] * len(group)
        late = [at for at, entry in enumerate(group) if not self.oldest <= entry.id.int <= self.newest]
        if late:
            return _broken(group, late[0], PostingRefusal.ID_OUT_OF_TIME, written=False)
        outcomes = [POSTED] * len(group)
        for culprit, entry in enumerate(group):
            refusal = self.post(entry)
            if refusal is not None:
                for undone in reversed(group[:culprit]):
                    self.undo(undone)
                outcomes = _broken(group, culprit, refusal, written=True)
                break
        self.known.update({e.id: (e, outcome.refusal) for e, outcome in zip(group, outcomes, strict=True)})
        return outcomes

    def post(self, entry: Entry) -> PostingRefusal | None:
        """Change the books, unless there is a reason not to: the first, in the order of `PostingRefusal`."""
        if isinstance(entry, Transfer):
            return self.transfer(entry)
        if isinstance(entry, Hold):
            return self.reserve(entry)
        return self.release(entry)

    def transfer(self, entry: Transfer) -> PostingRefusal | None:
        amount_uc = entry.amount_uc
        debit, credit = self.accounts.get(entry.debit_id), self.accounts.get(entry.credit_id)
        refusal = None
        if not 0 < amount_uc <= AMOUNT_MAX_UC:
            refusal = PostingRefusal.AMOUNT_OUT_OF_BOUNDS
        elif entry.debit_id == entry.credit_id:
            refusal = PostingRefusal.SAME_ACCOUNT
        elif debit is None or credit is None:
            refusal = PostingRefusal.UNKNOWN_ACCOUNT
        elif not debit.currency == credit.currency == entry.currency:
            refusal = PostingRefusal.CURRENCY_MISMATCH
        elif debit.frozen or credit.frozen:
            refusal = PostingRefusal.ACCOUNT_FROZEN
        elif entry.hold_id is not None:
            refusal = self.capture(entry, self.holds.get(entry.hold_id))
        elif debit.available_uc is not None:
            if debit.available_uc < amount_uc:
                refusal = PostingRefusal.INSUFFICIENT_FUNDS
            else:
                debit.available_uc -= amount_uc
        if refusal is None and credit is not None and credit.available_uc is not None:
            credit.available_uc += amount_uc
        return refusal

    def capture(self, entry: Transfer, hold: HoldState | None) -> PostingRefusal | None:
        if hold is None:
            return PostingRefusal.UNKNOWN_HOLD
        if hold.account_id != entry.debit_id:
            return PostingRefusal.HOLD_OF_ANOTHER_ACCOUNT
        if hold.left_uc == 0 or hold.expires_at <= self.now:
            return PostingRefusal.HOLD_OVER
        if hold.left_uc < entry.amount_uc:
            return PostingRefusal.HOLD_TOO_SMALL
        hold.left_uc -= entry.amount_uc
        return None

    def reserve(self, entry: Hold) -> PostingRefusal | None:
        if not 0 < entry.amount_uc <= AMOUNT_MAX_UC:
            return PostingRefusal.AMOUNT_OUT_OF_BOUNDS
        account = self.accounts.get(entry.account_id)
        if account is None:
            return PostingRefusal.UNKNOWN_ACCOUNT
        if account.currency != entry.currency:
            return PostingRefusal.CURRENCY_MISMATCH
        if account.frozen:
            return PostingRefusal.ACCOUNT_FROZEN
        if account.available_uc is None or account.available_uc < entry.amount_uc:
            return PostingRefusal.INSUFFICIENT_FUNDS  # accounts without a floor cannot be reserved from
        account.available_uc -= entry.amount_uc
        self.holds[entry.id] = HoldState(entry.account_id, entry.amount_uc, entry.expires_at)
        return None

    def release(self, entry: Release) -> PostingRefusal | None:
        hold = self.holds.get(entry.hold_id)
        if hold is None:
            return PostingRefusal.UNKNOWN_HOLD
        if hold.left_uc == 0:
            return PostingRefusal.HOLD_OVER
        self.move(hold.account_id, hold.left_uc)
        hold.released_uc, hold.left_uc = hold.left_uc, 0
        return None

    def undo(self, entry: Entry) -> None:
        """Exactly what `post` did, in reverse."""
        if isinstance(entry, Transfer):
            self.move(entry.credit_id, -entry.amount_uc)
            if entry.hold_id is None:
                self.move(entry.debit_id, entry.amount_uc)
            else:
                self.holds[entry.hold_id].left_uc += entry.amount_uc
        elif isinstance(entry, Hold):
            del self.holds[entry.id]
            self.move(entry.account_id, entry.amount_uc)
        else:
            hold = self.holds[entry.hold_id]
            hold.left_uc = hold.released_uc
            self.move(hold.account_id, -hold.left_uc)

    def move(self, account_id: UUID, amount_uc: int) -> None:
        account = self.accounts[account_id]
        if account.available_uc is not None:
            account.available_uc += amount_uc


def _broken(group: Sequence[Entry], culprit: int, refusal: PostingRefusal, *, written: bool) -> list[PostingOutcome]:
    reasons = [refusal if at == culprit else PostingRefusal.LINK_BROKEN for at in range(len(group))]
    return [PostingOutcome(reason, written) for reason in reasons]


def _as_before(entry: Entry, earlier: EarlierAnswer) -> PostingOutcome:
    before, refusal = earlier
    if before != (fingerprint(entry) if isinstance(before, bytes) else entry):
        return PostingOutcome(PostingRefusal.ID_REUSED, written=False)
    return POSTED_BEFORE if refusal is None else PostingOutcome(refusal, written=False)
